"""Every recorded trace below tests/ that holds a turn: inputs of what has to hold for all of them."""

from functools import cache
from pathlib import Path

from turntrace.core.model import Turn
from turntrace.files.read import read_paths
from turntrace.report.case import Case, examine

__all__ = ["PATHS", "cases_of", "turns_of"]

_TESTS = Path(__file__).parent
_FOLDERS = ("data/ndjson", "data/traces", "frameworks/traces", "agents/traces")
_NO_TURN = {
    "index.json",
    *(f"invalid_{name}.ndjson" for name in ("blank", "empty", "header_only", "not_json")),
    *(f"invalid_{name}.ndjson" for name in ("span_before_header", "truncated_header", "type_padded")),
    "invalid_unknown_before_header.ndjson",
    "weak_counter_fraction.ndjson",
    "weak_counter_missing_value.ndjson",
}
"""Files that hold no turn by design."""


def _is_case(path: Path) -> bool:
    return path.is_file() and path.name not in _NO_TURN and not path.name.endswith(".truth.json")


PATHS = sorted(path for folder in _FOLDERS for path in (_TESTS / folder).rglob("*.*") if _is_case(path))


@cache
def turns_of(path: Path) -> tuple[Turn, ...]:
    """The turns of a recorded trace, at least one."""
    turns = tuple(read_paths([str(path)]).turns)
    assert turns, path
    return turns


@cache
def cases_of(path: Path) -> tuple[Case, ...]:
    """The same, attributed."""
    return tuple(map(examine, turns_of(path)))
