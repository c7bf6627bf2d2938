"""turntrace: where did the turn go?

``configure()`` switches recording on; ``turn``, ``phase``, ``generation`` and ``tool`` mark what an agent
does; ``read`` gives the turns of a file. Importing it loads the OpenTelemetry API and nothing heavier;
what needs more is loaded when it is called.
"""

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

from opentelemetry.trace import TracerProvider

from turntrace.errors import TraceReadError, TurntraceError
from turntrace.instrument.api import count, generation, mark, phase, tool, turn
from turntrace.instrument.turns import TurnSpan
from turntrace.version import VERSION

if TYPE_CHECKING:
    from turntrace.otel.handle import Handle
    from turntrace.otel.wrap import EnrichingExporter
    from turntrace.report.turn_report import TurnReport

__all__ = [
    "TurntraceError",
    "__version__",
    "attach",
    "child_env",
    "configure",
    "count",
    "generation",
    "last",
    "mark",
    "phase",
    "read",
    "stream",
    "tool",
    "turn",
    "wrap",
]


__version__ = VERSION


def configure(  # noqa: PLR0913 - each is a question a user asks
    trace: str | PathLike[str] | None = None,
    *,
    mode: Literal["a", "w"] = "a",
    endpoint: str | None = None,
    journal: Literal["sync", "thread", "off"] | None = None,
    threads: bool = False,
    metrics: bool | None = None,
    content: Literal["drop", "keep"] = "drop",
    flush_on_sigterm: bool = False,
) -> "Handle":
    """Switch recording on; the OTEL_* and TURNTRACE_* variables fill what is not given.

    A provider is built only when the application has none; otherwise this is ``attach``.

    Args:
        trace: the file; ``{run_id} {pid} {date} {time} {agent}`` are expanded, ``-`` is stderr.
        mode: ``a`` appends, ``w`` empties the file first.
        endpoint: an OTLP endpoint, instead of OTEL_EXPORTER_OTLP_ENDPOINT.
        journal: when a span is on disk: ``sync`` before its call returns, ``thread`` within 50 ms.
        threads: carry the context into threads and executors (extra ``threads``).
        metrics: True counts every turn, False none; None, where spans go over OTLP, the turns that begin
            after the first export interval: those before it are the collector's to count.
        content: ``keep`` sends prompts, outputs and messages that instrumentations recorded.
        flush_on_sigterm: flush before dying of SIGTERM; delays death by at most the flush.

    Returns:
        A handle with ``flush()`` and ``shutdown()``; the same one for the same arguments.

    Raises:
        ConfigurationError: when it was configured differently before, or a setting cannot be used.
        TraceWriteError: when the file cannot be written.
    """
    from turntrace.otel.setup import Request
    from turntrace.otel.setup import configure as set_up

    request = Request(
        trace=None if trace is None else str(trace),
        mode=mode,
        endpoint=endpoint,
        journal=journal,
        threads=threads,
        metrics=metrics,
        content=content,
        sigterm=flush_on_sigterm,
    )
    handle = set_up(request)
    # loaded now, so that the first stream of a turn does not wait for it
    import turntrace.instrument.streams  # noqa: F401 - for its effect: it is loaded

    return handle


def attach(provider: TracerProvider, trace: str | PathLike[str] | None = None) -> "Handle":
    """Record the spans of an application's own provider into a file; never an OTLP exporter.

    Raises:
        ConfigurationError: when ``provider`` takes no span processors.
        TraceWriteError: when the file cannot be written.
    """
    from turntrace.otel.setup import Request
    from turntrace.otel.setup import attach as set_up

    return set_up(provider, Request(trace=None if trace is None else str(trace)))


def wrap(exporter: Any) -> "EnrichingExporter":
    """An exporter that adds phase and exclusive time to every span that goes through ``exporter``.

    ``exporter`` is a SpanExporter of the OpenTelemetry SDK.
    """
    from turntrace.otel.wrap import EnrichingExporter

    return EnrichingExporter(exporter)


def read(*paths: str | PathLike[str], strict: bool = False) -> "list[TurnReport]":
    """The turns of trace files, journals beside them included.

    Raises:
        TraceReadError: when a file cannot be opened; with ``strict`` at the first error of any.
    """
    from turntrace.files.read import read_paths
    from turntrace.report.turn_report import TurnReport

    return [TurnReport.of(turn) for turn in read_paths([str(path) for path in paths], strict=strict).turns]


def last(folder: str | PathLike[str] | None = None) -> "TurnReport | None":
    """The newest turn: of what this process records to, else of the newest file in ``folder``.

    ``folder`` is ``.turntrace`` unless it is given. None when there is no turn.
    """
    from pathlib import Path

    from turntrace.files.out import newest
    from turntrace.otel import slot

    recorder = slot.recorder if folder is None else None
    if recorder is not None and recorder.out is not None:
        recorder.flush()
        path: Path | None = Path(recorder.out)
    else:
        path = newest(Path(folder or ".turntrace"))
    try:
        turns = [] if path is None else read(path)
    except TraceReadError:
        turns = []
    return turns[-1] if turns else None


def stream(source: Any) -> Any:
    """Time the items of any sync or async iterator; its ``summary`` says what was measured."""
    from turntrace.instrument.streams import stream as traced

    return traced(source)


def child_env(base: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment for a subprocess: ``base`` (default: this one) with the current span as parent.

    The child gets TRACEPARENT and TURNTRACE_TRACE, which start nothing by themselves.
    """
    from turntrace.config import environment
    from turntrace.otel import slot
    from turntrace.otel.remote import headers_of

    env = {**(environment() if base is None else base), **headers_of()}
    out = None if slot.recorder is None else slot.recorder.out
    return env if out is None else {**env, "TURNTRACE_TRACE": out}


def _present(record: Any) -> "TurnReport":
    from turntrace.report.turn_report import TurnReport

    return TurnReport(*record)


TurnSpan.present = staticmethod(_present)
