"""Installed instrumentations: which would start, which would see what another one sees too.

Three families make spans of the same model SDKs under the same entry-point names. One of a name starts:
the official one, else OpenLLMetry's, else OpenInference's. None does of an SDK that makes spans itself.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from typing import Final, Literal

from opentelemetry.instrumentation.dependencies import get_dependency_conflicts, get_dist_dependency_conflicts

from turntrace.config import environment

__all__ = ["GROUP", "Instrumentor", "Verdict", "disabled_names", "installed", "judged", "loaded", "native"]

GROUP: Final = "opentelemetry_instrumentor"

Verdict = Literal["starts", "twin", "conflict", "disabled"]

_ALL: Final = "*"
_NATIVE: Final = {"anthropic": "ANTHROPIC_OPEN_TELEMETRY", "mcp": ""}
"""SDKs that make spans themselves in versions that need OpenTelemetry, and the variable that forbids it."""


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


def disabled_names(env: Mapping[str, str]) -> frozenset[str]:
    """What OTEL_PYTHON_DISABLED_INSTRUMENTATIONS names.

    >>> sorted(disabled_names({"OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "httpx, openai"}))
    ['httpx', 'openai']
    """
    text = env.get("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", "").replace(" ", "")
    return frozenset(text.split(",")) if text else frozenset()


def native(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """The SDKs of this Python that make spans themselves, by name, with what to call those spans.

    A client that was told to make none makes none: nobody can see that from here.
    """
    env = environment() if env is None else env
    found: dict[str, str] = {}
    for name, variable in _NATIVE.items():
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue
        needs = [need for need in package.requires or () if "extra ==" not in need]
        is_off = env.get(variable, "").lower() == "false"
        if not is_off and any(need.startswith("opentelemetry-api") for need in needs):
            found[name] = f"the spans of {name} {package.version} itself"
    return found


def installed(
    disabled: frozenset[str] = frozenset(), env: Mapping[str, str] | None = None
) -> tuple[Instrumentor, ...]:
    """Every instrumentation of this Python by name and rank, with what would become of it."""
    return judged(entry_points(group=GROUP), disabled, native(env))


def judged(
    points: Iterable[EntryPoint],
    disabled: frozenset[str] = frozenset(),
    own_spans: Mapping[str, str] | None = None,
) -> tuple[Instrumentor, ...]:
    """The verdict on each of ``points``; of those of one name the first that can start does.

    ``disabled`` holds names, or ``*`` for all of them. ``own_spans``: libraries that make spans themselves.
    """
    starting: dict[str, str] = dict(own_spans or {})
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
