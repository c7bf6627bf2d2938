"""The provider that turntrace builds when the application has none, and what it exports to."""

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Final, Literal

from opentelemetry.metrics import Meter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter
from opentelemetry.sdk.trace.sampling import _get_from_env_or_default

from turntrace.config import Settings, program_name
from turntrace.core.attributes import METRICS
from turntrace.errors import ConfigurationError
from turntrace.otel.batch import LazyBatchProcessor
from turntrace.otel.content import ContentFreeExporter
from turntrace.otel.exporters import metric_exporter, protocol_of, span_exporter
from turntrace.otel.live_metrics import observe_process
from turntrace.otel.metrics import TurnMetrics
from turntrace.otel.processor import TurnSpanProcessor
from turntrace.otel.quiet import quieten
from turntrace.otel.recording import Recording
from turntrace.otel.sampler import RecordingSampler
from turntrace.version import VERSION

__all__ = ["Pipeline", "build"]

_OTLP_NAMES: Final = frozenset({"otlp", "otlp_proto_grpc", "otlp_proto_http"})
_RESOURCE_CONTENT: Final = frozenset(
    {"process.command", "process.command_args", "process.command_line", "process.executable.path"}
)
"""What resource detectors know of a process and nobody else should: paths and arguments."""

_OWN_NAMES: Final = frozenset({"turntrace", "turntrace_otlp"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """A provider, how to shut its exporters down, and one line on who exports what."""

    provider: TracerProvider
    shutdown: Callable[[], None]
    flush: Callable[[int], bool]
    decision: str


def build(
    endpoint: str | None,
    settings: Settings,
    processor: TurnSpanProcessor,
    *,
    metrics: bool | None,
    content: Literal["drop", "keep"],
) -> Pipeline:
    """A provider whose spans go through ``processor`` to the exporters that were asked for.

    ``metrics``: None sends them over OTLP where spans go, of turns that begin when the process has lived
    for one interval; True from the first turn on; a one-shot process passes False.

    Raises:
        ConfigurationError: for an exporter or protocol that does not exist.
    """
    where = endpoint or settings.endpoint
    makers = _exporter_makers(endpoint, settings)
    keep_content = content == "keep" or settings.capture_content
    guard = processor.recording.guard

    def filtered(make: Callable[[], SpanExporter]) -> Callable[[], SpanExporter]:
        if keep_content:
            return make
        return lambda: ContentFreeExporter(make(), settings.keep_attributes, guard)

    size = settings.queue_size
    recording = processor.recording  # has another writer after a fork
    by_name = {
        name: LazyBatchProcessor(filtered(make), guard, size, lambda: recording.writer.wake())  # noqa: PLW0108 - as said
        for name, make in makers.items()
    }
    batches = list(by_name.values())
    processor.follow_with(batches)
    has_metrics = bool(makers) and where is not None and metrics is not False and _wants_metrics(settings)
    resource = _resource(settings, is_service=has_metrics and metrics is True)
    provider = TracerProvider(
        sampler=RecordingSampler(_get_from_env_or_default()), resource=resource, shutdown_on_exit=False
    )
    provider.add_span_processor(processor)
    meters = None
    if has_metrics:
        meters = _Meters(endpoint, settings, resource, lambda meter: _measure(recording, meter, by_name))
        if metrics is True:
            meters.begin()
    if makers:
        quieten()
    return Pipeline(
        provider=provider,
        shutdown=lambda: _shut_down(batches, meters),
        flush=lambda timeout_ms: meters is None or meters.force_flush(timeout_ms),
        decision=_decision(makers, where, settings),
    )


def _measure(recording: Recording, meter: Meter, batches: Mapping[str, LazyBatchProcessor]) -> None:
    """Let ``recording`` measure on ``meter`` the turns that begin from now on."""
    options = recording.options
    agents = frozenset[str]() if options.agent is None else frozenset({options.agent})
    metrics = TurnMetrics(meter, recording.guard, options.metric_labels, agents)
    observe_process(
        meter,
        metrics.names["agent"],
        recording.guard.dropped,
        lambda: tuple(recording.table.live),
        lambda: [(name, batch.failures, batch.waiting) for name, batch in batches.items()],
    )
    recording.metrics = metrics


def _exporter_makers(endpoint: str | None, settings: Settings) -> Mapping[str, Callable[[], SpanExporter]]:
    """How to make each span exporter; without an endpoint and without a name there is none."""
    names = settings.traces_exporter
    if endpoint is not None or (names is None and settings.endpoint is not None):
        return {"otlp": span_exporter(settings, endpoint)}
    asked = sorted((names or frozenset()) - {"none"} - _OWN_NAMES)
    return {name: _maker(name, settings) for name in asked}


def _maker(name: str, settings: Settings) -> Callable[[], SpanExporter]:
    if name in _OTLP_NAMES:
        return span_exporter(settings, None)
    found = [entry for entry in entry_points(group="opentelemetry_traces_exporter") if entry.name == name]
    if not found:
        raise ConfigurationError(
            f"OTEL_TRACES_EXPORTER={name}: no installed package has an exporter of that name"
        )
    return lambda: _loaded(found[0])


def _loaded(entry: EntryPoint) -> SpanExporter:
    exporter: SpanExporter = entry.load()()
    return exporter


def _wants_metrics(settings: Settings) -> bool:
    names = settings.metrics_exporter
    return names is None or bool(names & _OTLP_NAMES)


def _resource(settings: Settings, *, is_service: bool) -> Resource:
    own: dict[str, str] = {METRICS: "process" if is_service else "collector"}
    if settings.service_name is None and "service.name=" not in settings.resource_attributes:
        own["service.name"] = program_name()
    found = Resource.create({**own})
    return Resource(
        {name: value for name, value in found.attributes.items() if name not in _RESOURCE_CONTENT},
        found.schema_url,
    )


class _Meters:
    """Metrics over OTLP. A process that ends before its first interval sends none, unless begin() was called.

    A counter that appears at 1 and dies moves no dashboard. What such a process did the collector counts.
    """

    def __init__(
        self, endpoint: str | None, settings: Settings, resource: Resource, measure: Callable[[Meter], None]
    ) -> None:
        """``measure`` is called once, with the meter of our instruments, when measuring begins."""
        self._measure: Callable[[Meter], None] | None = measure
        self._pid = os.getpid()
        self._is_down = False
        reader = PeriodicExportingMetricReader(metric_exporter(settings, endpoint))
        self._provider = MeterProvider([reader], resource=resource, shutdown_on_exit=False)
        self._interval = threading.Timer(settings.metric_interval_s, self.begin)
        self._interval.daemon = True
        self._interval.start()

    def begin(self) -> None:
        """Measure from now on."""
        self._interval.cancel()
        measure, self._measure = self._measure, None
        if measure is not None:
            measure(self._provider.get_meter("turntrace", VERSION))

    def force_flush(self, timeout_ms: int) -> bool:
        """Send what was measured so far."""
        return self._provider.force_flush(timeout_ms)

    def shutdown(self) -> None:
        """Send the last figures of a process that lived long enough; a forked child's are a copy."""
        if os.getpid() == self._pid and not self._is_down:
            self._is_down = True
            self._interval.cancel()
            self._provider.shutdown()


def _shut_down(batches: list[LazyBatchProcessor], meters: _Meters | None) -> None:
    for batch in batches:
        batch.shutdown()
    if meters is not None:
        meters.shutdown()


def _decision(makers: Mapping[str, object], where: str | None, settings: Settings) -> str:
    if not makers:
        return "turntrace writes the file; nothing is exported (OTEL_EXPORTER_OTLP_ENDPOINT is not set)"
    if where is None:
        return f"turntrace exports spans through {', '.join(makers)}"
    return f"turntrace exports spans to {where} ({protocol_of(where, settings.protocol)})"
