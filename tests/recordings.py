"""Recordings for tests: a real SDK provider, a processor of ours, spans caught as they are exported."""

from pathlib import Path

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from turntrace.core.codec.decode import read_blocks
from turntrace.otel import slot
from turntrace.otel.options import RecordingOptions
from turntrace.otel.own_tracer import OwnTracer
from turntrace.otel.processor import TurnSpanProcessor

__all__ = ["Recorded", "blocks_of"]


class Recorded:
    """``with Recorded(out) as recorded``: the API is on; afterwards everything is written and off."""

    def __init__(self, out: Path | None = None, *, sampler=None, clock=None, **options):
        options.setdefault("journal", "sync")
        self.options = RecordingOptions(out=None if out is None else str(out), **options)
        self.processor = TurnSpanProcessor(self.options, clock=clock)
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False, sampler=sampler)
        self.provider.add_span_processor(self.processor)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.processor.tracer = OwnTracer(self.provider.get_tracer("turntrace", "test"))
        self.out = out

    def __enter__(self):
        slot.fill(self.processor)
        return self

    def __exit__(self, *error):
        slot.clear(self.processor)
        self.provider.shutdown()
        self.processor.recording.writer.stop(5)

    @property
    def guard(self):
        """Counts of what was dropped."""
        return self.processor.recording.guard

    def tracer(self, scope="app"):
        """A tracer of another instrumentation."""
        return self.provider.get_tracer(scope)

    def spans(self):
        """The exported spans by name; the last of a name wins."""
        return {span.name: span for span in self.exporter.get_finished_spans()}

    def blocks(self):
        """What stands in the file."""
        return blocks_of(self.out)


def blocks_of(out: Path):
    """The blocks of a file, read strictly."""
    with out.open("rb") as file:
        return list(read_blocks(file, strict=True, path=str(out)))
