"""One row for each run, and the file they are written to as they finish."""

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, Final, Self, TypeVar

import orjson

from turntrace.errors import TurntraceError

__all__ = ["SCHEMA", "SCHEMA_VERSION", "Header", "ResultError", "Results", "Row", "RowFile", "read_results"]

SCHEMA: Final = "turntrace.bench"
SCHEMA_VERSION: Final = 1


class ResultError(TurntraceError):
    """A result file cannot be read, or is of other runs than the ones asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What all rows of a file share. ``created_at`` is RFC 3339, UTC."""

    suite: str
    suite_sha256: str
    agent: str
    agent_sha256: str
    agent_argv: tuple[str, ...]
    model: str | None
    seed: int
    iterations: int
    tasks: tuple[str, ...]
    start: str
    serial: bool
    isolation: str
    isolation_reason: str
    cannot_stop: tuple[str, ...]
    network: bool
    auth: tuple[str, ...]
    jobs: int
    machine: Mapping[str, Any]
    created_at: str
    agent_version: str | None = None

    def differs(self, other: "Header") -> list[str]:
        """The names of fields that must agree for rows to stand in one file."""
        fields = (
            "suite_sha256",
            "agent_sha256",
            "model",
            "seed",
            "iterations",
            "tasks",
            "start",
            "serial",
            "isolation",
        )
        return [name for name in fields if getattr(self, name) != getattr(other, name)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One run. Times in ns; None is unknown and never 0.

    ``wall_ns``, ``exit``, ``verdict``, ``tokens`` and ``requests`` are the harness's or its model server's;
    what stands in ``self_reported`` is the agent's word. ``failures`` are semantic: the case does not
    pass with them whatever its oracle said. ``samples`` says whether the run counts for latencies.
    """

    task: str
    task_class: str
    tier: str
    iteration: int
    position: int
    seed: int
    start: str
    expect: str | None
    started_at_ns: int
    exit: int | None
    timed_out: bool
    forced: bool
    left_running: bool | None
    interrupted: bool
    error: str
    verdict: str
    reason: str
    passed: bool
    failures: tuple[str, ...]
    outside: tuple[str, ...]
    samples: bool
    throttled: bool
    cached_twice: bool
    wall_ns: int
    set_up_ns: int
    oracle_ns: int
    output_bytes: int
    output_cut_bytes: int
    requests: int | None
    attempts_refused: int | None
    usage: Mapping[str, Any] | None
    overlap: Mapping[str, Any] | None
    trace: str
    trace_issues: tuple[str, ...]
    self_reported: Mapping[str, Any] | None
    fingerprints: tuple[str, ...] = ()
    load_before: Mapping[str, Any] = field(default_factory=dict)
    load_after: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, int]:
        """What a run is known by."""
        return self.task, self.iteration


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """A file: rows in the order they were written, each run once. ``ended``: the last run has been made."""

    header: Header
    rows: tuple[Row, ...]
    ended: bool


class RowFile:
    """``with RowFile.create(path, header, mask) as file: file.add(row)``; a row is on disk when add returns."""

    def __init__(self, file: IO[bytes], mask: Callable[[str], str]) -> None:
        self._file = file
        self._mask = mask

    @classmethod
    def create(cls, path: Path, header: Header, mask: Callable[[str], str]) -> Self:
        """Begin a file.

        Raises:
            ResultError: it is there already, or cannot be made.
        """
        if path.exists():
            raise ResultError(f"{path} is there already; go on with it by --resume {path}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = cls(path.open("xb"), mask)
        except OSError as error:
            raise ResultError(f"cannot write {path}: {error.strerror}") from error
        file._write({"type": "bench", "schema": SCHEMA, "schema_version": SCHEMA_VERSION, **asdict(header)})
        return file

    @classmethod
    def resume(cls, path: Path, mask: Callable[[str], str]) -> Self:
        """Go on with a file: a line that was cut off, and what said that it ended, are taken away."""
        kept = [line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
        kept = [line for line in kept if orjson.loads(line)["type"] != "end"]
        fresh = path.with_name(f"{path.name}.new")
        fresh.write_bytes(b"".join(kept))
        fresh.replace(path)
        return cls(path.open("ab"), mask)

    def add(self, row: Row) -> None:
        """Write a row."""
        self._write({"type": "row", **asdict(row)})

    def end(self) -> None:
        """Say that all runs were made."""
        self._write({"type": "end"})

    def _write(self, record: Mapping[str, Any]) -> None:
        line = orjson.dumps(_masked(record, self._mask)) + b"\n"
        self._file.write(line)
        self._file.flush()
        os.fsync(self._file.fileno())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()


def _masked(found: Any, mask: Callable[[str], str]) -> Any:
    """The same value with every text in it masked, names included."""
    if isinstance(found, str):
        return mask(found)
    if isinstance(found, Mapping):
        return {mask(str(name)): _masked(value, mask) for name, value in found.items()}
    if isinstance(found, list | tuple):
        return [_masked(value, mask) for value in found]
    return found


def read_results(path: Path) -> Results:
    """What is in a result file; a last line that was cut off is left out.

    Raises:
        ResultError: it cannot be read, is no result or of a version that is not known.
    """
    try:
        lines = [line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
        records = [orjson.loads(line) for line in lines]
    except OSError as error:
        raise ResultError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise ResultError(f"{path} is no result of turntrace bench run: {error}") from error
    head = records[0] if records and isinstance(records[0], dict) else {}
    if head.get("schema") != SCHEMA or head.get("schema_version") != SCHEMA_VERSION:
        raise ResultError(f"{path} is no result of turntrace bench run, schema {SCHEMA_VERSION}")
    rows: dict[tuple[str, int], Row] = {}
    for record in records[1:]:
        if record.get("type") == "row":
            row = _record(Row, record, path)
            rows.setdefault(row.key, row)
    ended = any(record.get("type") == "end" for record in records[1:])
    return Results(header=_record(Header, head, path), rows=tuple(rows.values()), ended=ended)


_T = TypeVar("_T", Header, Row)


def _record(kind: type[_T], record: Mapping[str, Any], path: Path) -> _T:
    known = {name: record[name] for name in kind.__dataclass_fields__ if name in record}
    listed: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in known.items()
    }
    try:
        return kind(**listed)
    except TypeError as error:
        raise ResultError(f"{path}: a {record['type']} record is not whole: {error}") from error
