"""The batch processor that starts late and drops with a count."""

import threading

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext, TraceFlags

from otlp_receiver import wait_for
from turntrace.otel.batch import LazyBatchProcessor, _LateExporter
from turntrace.otel.guard import Guard


def span(*, sampled=True, number=1):
    """An ended span."""
    flags = TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT)
    return ReadableSpan(f"s{number}", context=SpanContext(1, number, False, flags), start_time=1, end_time=2)


class Held(InMemorySpanExporter):
    """Exports when it is let; fails when it is told to."""

    def __init__(self):
        super().__init__()
        self.let = threading.Event()
        self.asked = threading.Event()
        self.result = SpanExportResult.SUCCESS
        self.is_down = False

    def export(self, spans):
        """Wait, then export."""
        self.asked.set()
        assert self.let.wait(10)
        super().export(spans)
        return self.result

    def shutdown(self):
        """Note the end."""
        self.is_down = True


class Batched:
    """A processor with what it made and counted."""

    def __init__(self, queue_size=10):
        self.exporter, self.guard = Held(), Guard()
        self.made, self.begun = [], []
        self.batch = LazyBatchProcessor(self.make, self.guard, queue_size, lambda: self.begun.append(1))

    def make(self):
        """Make the exporter, late."""
        self.made.append(threading.current_thread().name)
        return self.exporter

    def names(self):
        """What was exported."""
        return [span.name for span in self.exporter.get_finished_spans()]


@pytest.fixture
def batched():
    """A batch that is shut down in the end."""
    made = Batched()
    yield made
    made.exporter.let.set()
    made.batch.shutdown()


def test_nothing_is_made_before_the_first_span(batched):
    """No exporter, no thread; flush and shutdown have nothing to do and are done."""
    batched.batch.on_start(None)
    assert batched.batch.force_flush()
    batched.batch.shutdown()
    assert (batched.made, batched.begun) == ([], [])
    assert (batched.batch.failures, batched.batch.waiting) == (0, 0)


@pytest.mark.parametrize("ended", [span(sampled=False), ReadableSpan("no ids")])
def test_a_span_that_is_not_sampled_starts_nothing(batched, ended):
    """What the sampler dropped for exporters is not exported."""
    batched.batch.on_end(ended)
    assert (batched.made, batched.begun) == ([], [])


def test_the_exporter_is_built_on_a_thread_of_its_own(batched):
    """No agent waits for imports; whoever is to run at the exit is told once."""
    batched.exporter.let.set()
    for number in (1, 2):
        batched.batch.on_end(span(number=number))
    assert wait_for(lambda: batched.made)
    assert batched.batch.force_flush()
    assert batched.names() == ["s1", "s2"]
    assert batched.begun == [1]
    assert len(batched.made) == 1
    batched.batch.shutdown()
    assert batched.exporter.is_down


def test_a_full_queue_drops_the_newest_with_a_count():
    """No log line for each, no span that waits for another; what was taken makes room."""
    batched = Batched(queue_size=2)
    for number in range(5):
        batched.batch.on_end(span(number=number))
    assert batched.guard.dropped == {"export_queue": 3}
    assert batched.batch.waiting in {1, 2}  # one may be with the exporter, which waits
    batched.exporter.let.set()
    assert batched.batch.force_flush()
    batched.batch.on_end(span(number=9))
    assert batched.batch.force_flush()
    assert batched.names() == ["s0", "s1", "s9"]
    batched.batch.shutdown()


def test_a_failed_export_is_counted(batched):
    """Spans that the exporter could not send are told in dropped."""
    batched.exporter.let.set()
    batched.exporter.result = SpanExportResult.FAILURE
    batched.batch.on_end(span())
    assert batched.batch.force_flush()
    assert sum(batched.guard.dropped.values()) == 1
    assert (batched.batch.failures, batched.batch.waiting) == (1, 0)


def test_a_forked_child_begins_anew(batched):
    """The copied queue and connection are the parent's; the child's first span makes its own."""
    batched.exporter.let.set()
    batched.batch.on_end(span())
    assert batched.batch.force_flush()
    first = batched.batch._batch
    batched.batch.renew()
    assert batched.batch.force_flush()
    batched.batch.on_end(span(number=2))
    assert batched.batch.force_flush()
    assert batched.names() == ["s1", "s2"]
    assert len(batched.made) == 2
    first.shutdown()


def test_an_exporter_that_was_never_built_has_nothing_to_flush():
    """At exit nobody builds an exporter in order to end it."""
    late = _LateExporter(lambda: pytest.fail("built"), Guard())
    assert late.force_flush(5)
    late.shutdown()


def test_a_flush_is_the_exporters_once_it_is_built(batched):
    """What the exporter says to a flush is passed on."""
    late = _LateExporter(batched.make, Guard())
    late.built().force_flush = lambda timeout_millis: timeout_millis > 5
    assert (late.force_flush(5), late.force_flush(6)) == (False, True)


def test_two_threads_that_come_first_build_one_batch(batched):
    """Who waited for the other to build it uses what is there."""
    batched.exporter.let.set()
    with batched.batch._lock:
        threads = [threading.Thread(target=batched.batch.on_end, args=(span(number=n),)) for n in (1, 2)]
        for thread in threads:
            thread.start()
    for thread in threads:
        thread.join()
    assert batched.batch.force_flush()
    assert sorted(batched.names()) == ["s1", "s2"]
    assert batched.begun == [1]
