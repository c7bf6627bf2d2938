"""What OpenTelemetry's auto-instrumentation starts when it is told to use turntrace.

``opentelemetry-instrument`` takes the first distro and configurator it finds when none is named. Ours
stand back then if there is another one: installing turntrace changes nothing until somebody asks.
"""

import logging
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import Any, Final

from opentelemetry.instrumentation.distro import BaseDistro  # type: ignore[attr-defined]  # that module switches mypy off for itself

from turntrace.config import Settings, environment
from turntrace.otel import propagation
from turntrace.otel.instrumentors import installed
from turntrace.otel.launch import AGENT, CONTENT, ENDPOINT, HANDED_PREFIX, INSIDE
from turntrace.otel.setup import Request, configure

__all__ = ["TurntraceConfigurator", "TurntraceDistro"]

_NAME: Final = "turntrace"
_log: Final = logging.getLogger("opentelemetry.instrumentation.auto_instrumentation.turntrace")


class TurntraceDistro(BaseDistro):  # type: ignore[misc]  # as above
    """Keeps trace headers away from model providers, and starts one instrumentation for each library."""

    def _configure(self, **kwargs: object) -> None:
        if self._other is not None:
            self._other.configure(**kwargs)
        else:
            propagation.install(Settings.from_env().propagate_hosts)

    def load_instrumentor(self, entry_point: EntryPoint, **kwargs: object) -> None:
        """Start an instrumentation, unless it is running or would count double; never raises."""
        if self._other is not None:
            self._other.load_instrumentor(entry_point, **kwargs)
        elif (entry_point.name, entry_point.value) not in self._twins:
            _instrument(entry_point, kwargs)

    @cached_property
    def _other(self) -> BaseDistro | None:
        return _other("opentelemetry_distro", "OTEL_PYTHON_DISTRO")

    @cached_property
    def _twins(self) -> frozenset[tuple[str, str]]:
        return frozenset((one.name, one.entry_point.value) for one in installed() if one.verdict == "twin")


class TurntraceConfigurator:
    """Sets recording up with what ``run`` handed over; without ``run`` as ``configure()`` does.

    A configuration file says all of it itself: then the SDK's own configurator reads it.
    """

    def configure(self, **kwargs: object) -> None:
        """Configure this process."""
        other = _other("opentelemetry_configurator", "OTEL_PYTHON_CONFIGURATOR")
        if other is not None:
            other.configure(**kwargs)
        elif _has_file() and not _is_run():
            from opentelemetry.sdk import _configuration as sdk

            sdk._OTelSDKConfigurator().configure()  # type: ignore[no-untyped-call]  # noqa: SLF001 - no public way; what it is given it ignores and logs
        else:
            configure(_request())


def _request() -> Request:
    env = environment()
    is_run = _is_run()
    disabled = env.get("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", "").replace(" ", "").split(",")
    return Request(
        agent=env.get(AGENT),
        endpoint=env.get(ENDPOINT),
        content="keep" if env.get(CONTENT) == "keep" else "drop",
        journal="sync" if is_run else None,
        metrics=False if is_run else None,
        is_run=is_run,
        is_inside=INSIDE in env,
        threads=not {"threading", "*"} & {*disabled} and _has_threading(),
    )


def _is_run() -> bool:
    return any(name.startswith(HANDED_PREFIX) for name in environment())


def _has_file() -> bool:
    return bool(environment().get("OTEL_CONFIG_FILE"))


def _has_threading() -> bool:
    return find_spec("opentelemetry.instrumentation.threading") is not None


def _instrument(entry_point: EntryPoint, options: dict[str, object]) -> None:
    try:
        instrumentor = entry_point.load()()
        if not instrumentor.is_instrumented_by_opentelemetry:
            instrumentor.instrument(**options)
    except ModuleNotFoundError:
        _log.debug("instrumentation %s skipped: its library is not installed", entry_point.name)
    except Exception as error:  # noqa: BLE001 - a broken instrumentation must not stop the others
        _log.warning("instrumentation %s did not start: %s", entry_point.name, type(error).__name__)


def _other(group: str, variable: str) -> Any:  # what an entry point makes
    """The distro or configurator that would be used if turntrace were not installed; None when ours is meant."""
    if environment().get(variable) == _NAME:
        return None
    others = [point for point in entry_points(group=group) if point.name != _NAME]
    return others[0].load()() if others else None
