"""G1, G2 and the cost of exclusive time plus journal, against the bare SDK with a batch processor.

Workload: one turn of 40 parents with nine children each, four attributes a span (two strings, two integers), a
discarding exporter. phase() sets phase, outcome and round itself, which with one of the caller's are
four as well; its exclusive time comes on top. ``python tests/benchmarks/bench_spans.py`` prints the figures.
"""

import contextlib
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from measure import calibrated_ns, interleaved

__all__ = ["run"]

GROUPS = 40
SPANS = GROUPS * 10
OWN_ATTRIBUTES = {"turntrace.attempt": 1}
"""With the phase, outcome and round that phase() sets itself: two strings and two integers."""
ATTRIBUTES = {
    "gen_ai.tool.name": "bash",
    "gen_ai.tool.call.id": "c1",
    "turntrace.attempt": 1,
    "server.port": 443,
}
VARIANTS = (
    "nullcontext", "disabled", "sdk_bsp", "phase_bsp", "phase_more_bsp", "phase_bsp_journal_thread", "phase_bsp_journal_sync",
    "foreign_bsp", "foreign_bsp_journal_thread", "turns_bsp", "phase_bsp_metrics",
)  # fmt: skip


def _provider(processor=None):
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

    class Discard(SpanExporter):
        def export(self, spans):
            return SpanExportResult.SUCCESS

    provider = TracerProvider(shutdown_on_exit=False)
    if processor is not None:
        provider.add_span_processor(processor)
    provider.add_span_processor(BatchSpanProcessor(Discard(), max_queue_size=1 << 20))
    return provider


def _native(journal: str | None, attributes=OWN_ATTRIBUTES, *, measured: bool = False) -> Callable[[], None]:
    import turntrace as tt
    from turntrace.otel import slot
    from turntrace.otel.options import RecordingOptions
    from turntrace.otel.own_tracer import OwnTracer
    from turntrace.otel.processor import TurnSpanProcessor

    out = None if journal is None else str(Path(tempfile.mkdtemp()) / "t.ndjson")
    processor = TurnSpanProcessor(RecordingOptions(out=out, journal=journal or "off"))
    processor.tracer = OwnTracer(_provider(processor).get_tracer("turntrace", "0"))
    slot.fill(processor)
    if measured:
        from opentelemetry.sdk.metrics import MeterProvider

        from turntrace.otel.metrics import TurnMetrics

        recording = processor.recording
        recording.metrics = TurnMetrics(MeterProvider().get_meter("turntrace"), recording.guard)

    def work() -> None:
        with tt.turn("a"):
            for _ in range(GROUPS):
                with tt.phase("tool_execution", attributes=attributes):
                    for _ in range(9):
                        with tt.phase("tool_planning", attributes=attributes):
                            pass

    return work


def _turns() -> Callable[[], None]:
    _native(None)
    import turntrace as tt

    def work() -> None:
        for _ in range(SPANS):
            with tt.turn("a"):
                pass

    return work


def _foreign(journal: str | None, *, ours: bool = True) -> Callable[[], None]:
    from turntrace.otel.options import RecordingOptions
    from turntrace.otel.processor import TurnSpanProcessor

    out = None if journal is None else str(Path(tempfile.mkdtemp()) / "t.ndjson")
    processor = TurnSpanProcessor(RecordingOptions(out=out, journal=journal or "off")) if ours else None
    tracer = _provider(processor).get_tracer("app")
    root = {**ATTRIBUTES, "gen_ai.operation.name": "invoke_agent"}

    def work() -> None:
        with tracer.start_as_current_span("turn", attributes=root):
            for _ in range(GROUPS):
                with tracer.start_as_current_span("a", attributes=ATTRIBUTES):
                    for _ in range(9):
                        with tracer.start_as_current_span("p", attributes=ATTRIBUTES):
                            pass

    return work


def _nullcontext() -> None:
    for _ in range(SPANS):
        with contextlib.nullcontext():
            pass


def _disabled() -> Callable[[], None]:
    from turntrace import phase

    def work() -> None:
        for _ in range(SPANS):
            with phase("tool_planning", attributes=ATTRIBUTES):
                pass

    return work


def _work(variant: str) -> Callable[[], None]:
    makers: dict[str, Callable[[], Callable[[], None]]] = {
        "nullcontext": lambda: _nullcontext,
        "disabled": _disabled,
        "sdk_bsp": lambda: _foreign(None, ours=False),
        "phase_bsp": lambda: _native(None),
        "phase_more_bsp": lambda: _native(None, ATTRIBUTES),
        "phase_bsp_journal_thread": lambda: _native("thread"),
        "phase_bsp_journal_sync": lambda: _native("sync"),
        "turns_bsp": _turns,
        "phase_bsp_metrics": lambda: _native(None, measured=True),
        "foreign_bsp": lambda: _foreign(None),
        "foreign_bsp_journal_thread": lambda: _foreign("thread"),
    }
    return makers[variant]()


def run(rounds: int) -> list[tuple[str, str, float, float]]:
    """Goal id, what, figure and goal (ratios of thread CPU)."""
    ns = interleaved(Path(__file__), VARIANTS, rounds)
    base, null = ns["sdk_bsp"], ns["nullcontext"]
    return [
        ("G1", "disabled phase(name, attributes=d) / nullcontext()", ns["disabled"] / null, 0.9),
        ("G2", "phase() with exclusive time + BSP / SDK + BSP", ns["phase_bsp"] / base, 1.0),
        (
            "-",
            "phase() with exclusive time and four attributes of the caller's / SDK + BSP",
            ns["phase_more_bsp"] / base,
            0.0,
        ),
        ("core", "phase() + journal on the thread / SDK + BSP", ns["phase_bsp_journal_thread"] / base, 1.25),
        ("core", "phase() + journal in sync mode / SDK + BSP", ns["phase_bsp_journal_sync"] / base, 1.25),
        ("G3", "third-party spans with exclusive time / SDK + BSP", ns["foreign_bsp"] / base, 1.1),
        (
            "-",
            "third-party spans + journal on the thread / SDK + BSP",
            ns["foreign_bsp_journal_thread"] / base,
            0.0,
        ),
        ("-", "an empty turn() with the whole answer on its span / SDK + BSP", ns["turns_bsp"] / base, 0.0),
        ("-", "phase() with metrics / SDK + BSP", ns["phase_bsp_metrics"] / base, 0.0),
        ("-", "SDK + BSP, ns a span here", base, 0.0),
    ]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        work = _work(sys.argv[1])
        work()
        print(json.dumps(calibrated_ns(work, SPANS)))
    else:
        for goal, what, figure, bound in run(9):
            print(f"{goal:5} {what}: {figure:.2f}" + (f" (goal {bound:g})" if bound else ""))
