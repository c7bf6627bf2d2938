"""Which one source of spans a model SDK has: its own spans, an instrumentation of it, or our adapter."""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution
from typing import Any, Final, Literal

from opentelemetry.instrumentation.dependencies import get_dependency_conflicts

from turntrace.config import environment
from turntrace.otel.instrumentors import Instrumentor, disabled_names, installed, loaded, native

__all__ = ["ADAPTERS", "Source", "sources", "start_adapters"]

Kind = Literal["native", "instrumentation", "adapter", "none"]

_MODULE: Final = "turntrace.instrument.adapters.instrumentors"
ADAPTERS: Final = {
    name: EntryPoint(name=name, value=f"{_MODULE}:{kind}", group="turntrace_adapter")
    for name, kind in (("openai", "OpenAIAdapter"), ("anthropic", "AnthropicAdapter"))
}
"""Our own, by the name that instrumentations of the same SDK have; loaded when one is needed."""

_SDKS: Final = ("anthropic", "mcp", "openai")
_HTTP: Final = ("httpx2", "httpx")
_WITHOUT: Final = "it makes none itself"
_log: Final = logging.getLogger("opentelemetry.instrumentation.auto_instrumentation.turntrace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Who makes the spans of an SDK that is installed, and why nobody better does.

    ``package`` is the instrumentation's, else empty.
    """

    sdk: str
    version: str
    kind: Kind
    package: str = ""
    reason: str


def sources(
    env: Mapping[str, str],
    instrumentors: Iterable[Instrumentor],
    runs: Callable[[Instrumentor], bool] = lambda _: True,
) -> tuple[Source, ...]:
    """The source of each SDK that is installed, with ``env`` and ``instrumentors`` as they are.

    Args:
        env: the environment.
        instrumentors: the instrumentations, with their verdicts.
        runs: whether one that should start did.
    """
    own_spans, disabled = native(env), disabled_names(env)
    started = {one.name: one for one in instrumentors if one.verdict == "starts" and runs(one)}
    return tuple(
        _source(name, version, own_spans, started.get(name), is_off=bool({name, "*"} & disabled))
        for name in _SDKS
        if (version := _version(name)) is not None
    )


def _source(
    name: str, version: str, own_spans: Mapping[str, str], instrumentor: Instrumentor | None, *, is_off: bool
) -> Source:
    kind: Kind = "none"
    package, reason = "", f"{_WITHOUT} and no instrumentation of it can start"
    if name in own_spans:
        kind, reason = "native", "this version makes them"
    elif instrumentor is not None:
        kind, package, reason = "instrumentation", instrumentor.package, _WITHOUT
    elif is_off:
        reason = "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS says so"
    elif name in ADAPTERS:
        conflict = get_dependency_conflicts(_adapter(name).instrumentation_dependencies())
        kind = "adapter" if conflict is None else "none"
        reason = reason if conflict is None else str(conflict)
    return Source(sdk=name, version=version, kind=kind, package=package, reason=reason)


def start_adapters() -> None:
    """Start our adapter for each SDK that has no other source; after the instrumentations, never raises."""
    try:
        env = environment()
        instrumentors = tuple(loaded(one) for one in installed(disabled_names(env)) if one.name in _NAMES)
        running = {one.name for one in instrumentors if _runs(one)}
        for source in sources(env, instrumentors, _runs):
            if source.kind == "adapter":
                attempts = _http_library(source.sdk) not in running
                _adapter(source.sdk).instrument(skip_dep_check=True, attempts=attempts)
    except Exception as error:  # noqa: BLE001 - the agent runs, with these spans or without them
        _log.warning("turntrace's adapters did not start: %s", type(error).__name__)


_NAMES: Final = frozenset({*_SDKS, *_HTTP})


def _runs(one: Instrumentor) -> bool:
    if one.verdict != "starts":
        return False
    return bool(one.entry_point.load()().is_instrumented_by_opentelemetry)


def _adapter(name: str) -> Any:  # an instrumentor, made by a layer above
    return ADAPTERS[name].load()()


def _version(name: str) -> str | None:
    try:
        return distribution(name).version
    except PackageNotFoundError:
        return None


def _http_library(name: str) -> str:
    """The HTTP client that an SDK sends its requests with."""
    needs = " ".join(distribution(name).requires or ())
    return next((library for library in _HTTP if library in needs), "")
