"""The composition root: a request and the environment in, one provider or one attached processor out.

Nothing is exported twice: an OTLP exporter is made only together with a provider of our own.
"""

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from opentelemetry import trace
from opentelemetry.context import attach as attach_context
from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider
from opentelemetry.trace import ProxyTracerProvider, TracerProvider

from turntrace.config import JournalMode, Settings
from turntrace.errors import ConfigurationError
from turntrace.files.out import expand
from turntrace.files.preparation import prepare
from turntrace.files.recovery import finish_dead
from turntrace.otel import slot
from turntrace.otel.delegate import DelegatingProvider, install
from turntrace.otel.exit import at_exit, end, flush_on_sigterm
from turntrace.otel.handle import Handle
from turntrace.otel.options import RecordingOptions
from turntrace.otel.own_tracer import OwnTracer
from turntrace.otel.pipeline import Pipeline, build
from turntrace.otel.processor import TurnSpanProcessor
from turntrace.otel.remote import context_from
from turntrace.otel.run_ids import new_run_id

__all__ = ["Request", "attach", "configure"]

_DISABLED: Final = "nothing is recorded: TURNTRACE_DISABLED or OTEL_SDK_DISABLED is set"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a caller asks of configure(); None leaves it to the environment.

    ``is_run``: it comes from ``turntrace run``, which an application's own configure() gives way to, and
    which makes one turn of all local roots of its trace. ``is_inside``: a process of the run started this
    one, so its local roots are part of a turn that lives elsewhere.
    """

    trace: str | None = None
    mode: Literal["a", "w"] = "a"
    endpoint: str | None = None
    journal: JournalMode | None = None
    threads: bool = False
    metrics: bool | None = None
    content: Literal["drop", "keep"] = "drop"
    agent: str | None = None
    sigterm: bool = False
    is_run: bool = False
    is_inside: bool = False


class _State:
    """What this process has set up; one lock, taken by configure, attach and shutdown only."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.request: Request | None = None
        self.handle: Handle | None = None
        self.delegate: DelegatingProvider | None = None
        self.attached: dict[int, tuple[TracerProvider, Handle]] = {}

    def renew(self) -> None:
        """In a forked child: the lock may have been held by a thread that is not there any more."""
        self.lock = threading.RLock()


_state: Final = _State()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_state.renew)


def configure(request: Request, settings: Settings | None = None) -> Handle:
    """Set recording up once; the same request again gives the same handle.

    Raises:
        ConfigurationError: when it is already set up differently, or a setting cannot be used.
        TraceWriteError: when the file cannot be written.
    """
    settings = settings or Settings.from_env()
    with _state.lock:
        if _state.handle is not None:
            if _state.request is not None and (request == _state.request or _state.request.is_run):
                return _state.handle
            raise ConfigurationError(
                f"configure() was called before with other settings ({_asked(_state.request)}); call shutdown() on the "
                "handle it returned first"
            )
        handle = _set_up(request, settings)
        _state.request, _state.handle = request, handle
        return handle


def _asked(request: Request | None) -> str:
    trace_file = None if request is None else request.trace
    return "no trace file" if trace_file is None else f"trace={trace_file!r}"


def attach(provider: Any, request: Request | None = None, settings: Settings | None = None) -> Handle:
    """Record the spans of an application's own provider; never an OTLP exporter. Idempotent.

    Raises:
        ConfigurationError: when ``provider`` takes no span processors.
    """
    settings = settings or Settings.from_env()
    request = request or Request()
    with _state.lock:
        known = _state.attached.get(id(provider))
        if known is not None:
            return known[1]
        if settings.disabled or settings.sdk_disabled:
            return Handle(None, decision=_DISABLED)
        if not callable(getattr(provider, "add_span_processor", None)):
            raise ConfigurationError(
                f"{type(provider).__name__} takes no span processors; attach an SDK provider"
            )
        processor, path = _processor(request, settings)
        processor.tracer = _tracer(provider)
        provider.add_span_processor(processor)
        handle = _handle(
            processor, settings, path, "your provider exports; turntrace writes the file", lambda: None
        )
        _state.attached[id(provider)] = provider, handle  # the id is its own while it is kept
        return handle


def _set_up(request: Request, settings: Settings) -> Handle:
    if settings.disabled or settings.sdk_disabled:
        return Handle(None, decision=_DISABLED)
    current = trace.get_tracer_provider()
    if not isinstance(current, ProxyTracerProvider | DelegatingProvider):
        return attach(current, request, settings)
    processor, path = _processor(request, settings)
    pipeline = build(request.endpoint, settings, processor, metrics=request.metrics, content=request.content)
    processor.tracer = _tracer(pipeline.provider)
    if request.threads:
        _instrument_threads()
    _delegate(pipeline, processor, settings)
    handle = _handle(processor, settings, path, pipeline.decision, pipeline.shutdown, pipeline.flush)
    if request.sigterm:
        flush_on_sigterm(handle.shutdown)
    return handle


def _processor(request: Request, settings: Settings) -> tuple[TurnSpanProcessor, Path | None]:
    out = request.trace or settings.trace
    path = None
    if out is not None and out != "-":
        path = Path(expand(out, run_id=new_run_id(), agent=request.agent)).absolute()
        prepare(path, truncate=request.mode == "w")
        out = str(path)
    journal = settings.journal or request.journal or "thread"
    options = replace(
        RecordingOptions.of(settings, out=out, journal=journal),
        agent=request.agent,
        run_trace=_trace_of(settings) if request.is_run else None,
        is_inside=request.is_inside,
    )
    if path is not None:
        finish_dead(path, options.rotation)
    return TurnSpanProcessor(options), path


def _trace_of(settings: Settings) -> int | None:
    remote = context_from(settings.traceparent, settings.tracestate)
    return None if remote is None else trace.get_current_span(remote).get_span_context().trace_id


def _tracer(provider: TracerProvider) -> OwnTracer:
    from turntrace.otel.span_start import OWN_SCOPE
    from turntrace.version import VERSION

    return OwnTracer(provider.get_tracer(OWN_SCOPE, VERSION))


def _delegate(pipeline: Pipeline, processor: TurnSpanProcessor, settings: Settings) -> None:
    remote = context_from(settings.traceparent, settings.tracestate)
    if remote is not None:
        attach_context(remote)

    def replaced(chosen: TracerProvider) -> None:
        if isinstance(chosen, SdkTracerProvider) or hasattr(chosen, "add_span_processor"):
            chosen.add_span_processor(processor)
            processor.adopted(chosen)
            processor.tracer = _tracer(chosen)
        if _state.delegate is not None:
            _state.delegate.follow(chosen)

    if _state.delegate is None:
        _state.delegate = DelegatingProvider(pipeline.provider, remote)
        install(_state.delegate, replaced)
    else:
        _state.delegate.remote_parent = remote
        _state.delegate.follow(pipeline.provider)


def _instrument_threads() -> None:
    try:
        from opentelemetry.instrumentation.threading import ThreadingInstrumentor
    except ImportError as error:
        from turntrace.errors import MissingExtraError

        raise MissingExtraError("configure(threads=True)", "threads") from error
    instrumentor = ThreadingInstrumentor()
    if not instrumentor.is_instrumented_by_opentelemetry:
        instrumentor.instrument()


def _handle(
    processor: TurnSpanProcessor,
    settings: Settings,
    path: Path | None,
    decision: str,
    shut_exporters: Callable[[], None],
    flush: Callable[[int], bool] = lambda _: True,
) -> Handle:
    slot.fill(processor)

    def shut_down() -> None:
        undo()
        with _state.lock:
            slot.clear(processor)
            end(processor, shut_exporters, settings.exit_timeout_s)
            for key in [key for key, (_, known) in _state.attached.items() if known.processor is processor]:
                del _state.attached[key]
            if _state.handle is not None and _state.handle.processor is processor:
                _state.handle = _state.request = None

    handle = Handle(processor, trace=path, decision=decision, on_shutdown=shut_down, on_flush=flush)
    undo = at_exit(handle.shutdown)
    return handle
