"""Installed instrumentations: which would start, which would see what another one sees too.

Three families make spans of the same model SDKs under the same entry-point names. One of a name starts:
the official one, else OpenLLMetry's, else OpenInference's.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from typing import Final, Literal

from opentelemetry.instrumentation.dependencies import get_dependency_conflicts, get_dist_dependency_conflicts

__all__ = ["GROUP", "Instrumentor", "Verdict", "installed", "judged", "loaded"]

GROUP: Final = "opentelemetry_instrumentor"

Verdict = Literal["starts", "twin", "conflict", "disabled"]

_ALL: Final = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Instrumentor:
    """An entry point that instruments a library.

    ``twin``: it would count double beside the one that ``reason`` names. ``conflict``: its library is
    not there, or not in a version it knows. ``disabled``: OTEL_PYTHON_DISABLED_INSTRUMENTATIONS says so.
    """

    name: str
    package: str
    version: str
    verdict: Verdict
    reason: str
    entry_point: EntryPoint


def installed(disabled: frozenset[str] = frozenset()) -> tuple[Instrumentor, ...]:
    """Every instrumentation of this Python by name and rank, with what would become of it."""
    return judged(entry_points(group=GROUP), disabled)


def judged(points: Iterable[EntryPoint], disabled: frozenset[str] = frozenset()) -> tuple[Instrumentor, ...]:
    """The verdict on each of ``points``; of those of one name the first that can start does.

    ``disabled`` holds names, or ``*`` for all of them.
    """
    starting: dict[str, str] = {}
    found: list[Instrumentor] = []
    for point in sorted(points, key=lambda point: (point.name, _rank(point), _package(point))):
        verdict, reason = _verdict(point, starting, disabled)
        if verdict == "starts":
            starting[point.name] = _package(point)
        found.append(
            Instrumentor(
                name=point.name,
                package=_package(point),
                version="" if point.dist is None else point.dist.version,
                verdict=verdict,
                reason=reason,
                entry_point=point,
            )
        )
    return tuple(found)


def loaded(one: Instrumentor) -> Instrumentor:
    """``one`` with what only its code knows: packages for several libraries tell each one's need there."""
    if one.verdict != "starts":
        return one
    try:
        needs = one.entry_point.load()().instrumentation_dependencies()
    except ImportError as error:
        return replace(one, verdict="conflict", reason=str(error))
    conflict = get_dependency_conflicts(needs)
    return one if conflict is None else replace(one, verdict="conflict", reason=str(conflict))


def _verdict(point: EntryPoint, starting: dict[str, str], disabled: frozenset[str]) -> tuple[Verdict, str]:
    if disabled & {point.name, _ALL}:
        return "disabled", "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS"
    conflict = None if point.dist is None else get_dist_dependency_conflicts(point.dist)
    if conflict is not None:
        return "conflict", str(conflict)
    if point.name in starting:
        return "twin", starting[point.name]
    return "starts", ""


def _package(point: EntryPoint) -> str:
    return "" if point.dist is None else point.dist.name.lower().replace("_", "-")


_RANKS: Final[Sequence[tuple[str, str, int]]] = (
    ("opentelemetry-instrumentation-genai-", "", 0),
    ("opentelemetry-instrumentation-", "-v2", 1),
    ("openinference-", "", 3),
)
_OTHER_RANK: Final = 2


def _rank(point: EntryPoint) -> int:
    """0 official, 1 official in its older packages, 2 OpenLLMetry and everything else, 3 OpenInference."""
    package = _package(point)
    return next(
        (rank for start, end, rank in _RANKS if package.startswith(start) and package.endswith(end)),
        _OTHER_RANK,
    )
