"""Blocks of the API in odd places: across yields, unsampled, with errors of our own."""

import contextlib
import contextvars
import gc
import logging
import threading

import pytest
from opentelemetry.context import attach, get_current
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

import turntrace as tt
from recordings import Recorded
from turntrace.files.fragments import read_parts
from turntrace.otel import slot


class BrokenError(Exception):
    """An error of ours."""


def codes(turn):
    """The warnings of a turn so far."""
    return [warning.code for warning in turn.report().turn.warnings]


def apart(function):
    """Run ``function`` in a context of its own: what it leaves attached stays there."""
    return contextvars.copy_context().run(function)


def test_a_phase_held_across_a_yield_ends_once_and_says_so(caplog):
    """A plain generator closed elsewhere: one span, one warning on the turn, nothing in the log."""

    def held():
        with tt.phase("verification"):
            yield

    def scene():
        with tt.turn("a") as turn:
            generator = held()
            next(generator)
            thread = threading.Thread(target=generator.close)
            thread.start()
            thread.join()
            return codes(turn)

    with Recorded() as recorded:
        assert apart(scene) == ["context_moved"]
    names = [span.name for span in recorded.exporter.get_finished_spans()]
    assert names == ["verification", "invoke_agent a"]
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_leaving_twice_ends_once():
    """A block whose exit is called again has nothing left to end."""
    with Recorded() as recorded, tt.turn("a"):
        phase = tt.phase("verification")
        phase.__enter__()
        phase.__exit__(None, None, None)
        phase.__exit__(None, None, None)
        phase.set("turntrace.reason", "late")
    assert [span.name for span in recorded.exporter.get_finished_spans()] == [
        "verification",
        "invoke_agent a",
    ]


def test_a_block_that_is_dropped_open_is_no_error(caplog):
    """An entered block that nobody leaves is the reader's to tell, not the log's."""

    def scene():
        with tt.turn("a"):
            tt.phase("verification").__enter__()
            gc.collect()

    with Recorded() as recorded:
        apart(scene)
    assert [span.name for span in recorded.exporter.get_finished_spans()] == ["invoke_agent a"]
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_what_is_not_recorded_is_not_in_the_way():
    """A provider whose sampler drops everything leaves blocks that do nothing."""
    with Recorded(sampler=ALWAYS_OFF) as recorded, tt.turn("a") as turn:
        with tt.generation(model="m") as g:
            items = [1]
            assert g.stream(items) is items
            g.usage(input_tokens=1)
            g.finish_reasons("stop")
        with tt.phase("verification") as phase:
            phase.set("turntrace.reason", "x")
        assert turn.report() is None
        assert turn.run_id == ""
    assert recorded.exporter.get_finished_spans() == ()


@pytest.mark.parametrize("method", ["begin", "end"])
def test_an_error_of_ours_is_counted_and_never_raised(monkeypatch, caplog, method):
    """Entering and leaving survive a recorder that fails; the cause is said once."""
    with Recorded() as recorded:
        with contextlib.suppress(LookupError), tt.turn("a"):

            def fail(*arguments):
                raise BrokenError("secret")

            with monkeypatch.context() as patch:
                patch.setattr(recorded.processor, method, fail)
                for _ in range(2):
                    with tt.phase("verification"):
                        done = True
                with tt.phase("verification"):
                    raise LookupError
        assert done
        assert recorded.guard.dropped["error"] == 3
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(said) == 1
    assert "BrokenError" in said[0]
    assert "secret" not in said[0]


def test_marks_and_counters_reach_the_turn():
    """Outside every span of the turn but with its context, and inside one: both are the turn's."""
    with Recorded(), tt.turn("a") as turn:
        tt.count("retry_count", 2)
        tt.mark("first_useful")
        with tt.tool("t", call_id="c", kind="extension", attributes={"turntrace.reason": "r"}):
            tt.mark("first_visible")
            tt.mark("first_visible")
        report = turn.report()
    assert report.turn.counters["retry_count"] == 2
    marks = {mark.name for mark in report.turn.marks}
    assert marks == {"first_useful", "first_visible"}


def test_unknown_names_outside_a_turn_are_nothing():
    """Without a turn there is nobody to warn."""
    with Recorded() as recorded:
        tt.count("retries")
        tt.mark("visible")
        with tt.phase("promptbuild"):
            pass
    assert recorded.exporter.get_finished_spans() == ()


def test_a_report_of_a_turn_that_never_opened_is_none():
    """Before the block there is nothing to report."""
    with Recorded():
        assert tt.turn("a").report() is None


def test_a_recorder_clears_only_its_own_slot():
    """Who was replaced does not switch off the next one."""
    with Recorded() as recorded:
        slot.clear(object())
        assert slot.recorder is recorded.processor


def test_a_phase_below_a_span_of_another_process_is_a_fragment(tmp_path):
    """Without a turn here, but with a parent elsewhere, its spans are kept for the turn that joins them."""
    parent = SpanContext(trace_id=0xAB, span_id=0xCD, is_remote=True, trace_flags=TraceFlags(1))

    def scene():
        attach(set_span_in_context(NonRecordingSpan(parent)))
        with tt.phase("verification"):
            with tt.tool("t"):
                pass
            parts.extend(read_parts(tmp_path / "t.ndjson"))  # before it ends and finds no turn elsewhere

    parts = []
    with Recorded(tmp_path / "t.ndjson") as recorded:
        apart(scene)
    [part] = parts
    spans = recorded.spans()
    assert spans["verification"].parent.span_id == 0xCD
    assert spans["execute_tool t"].parent.span_id == spans["verification"].context.span_id
    assert part.journal.fragment
    assert part.journal.turn.trace_id == f"{0xAB:032x}"
    assert [span.tool for span in part.journal.turn.spans if span.tool] == ["t"]


_UNUSABLE = [
    lambda: tt.turn("a", labels=5),
    lambda: tt.phase([]),
    lambda: tt.generation(model="m", attributes=5),
    lambda: tt.tool("t", attributes=5),
    lambda: tt.count([]),
    lambda: tt.mark([]),
]


@pytest.mark.parametrize("call", _UNUSABLE)
def test_arguments_that_cannot_be_used_never_stop_the_agent(call, caplog):
    """The call does nothing and is said once; in strict mode it is the agent's error."""
    with Recorded() as recorded, tt.turn("a"):
        for _ in range(2):
            block = call()
            with block or contextlib.nullcontext():
                pass
        assert recorded.guard.dropped["error"] == 2
    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) == 1
    with Recorded(strict=True), tt.turn("a"), pytest.raises((TypeError, AttributeError)):
        call()


@pytest.mark.parametrize("amount", ["1", 1.5, 2**63, None])
def test_an_amount_that_is_no_integer_is_left_out(amount):
    """A warning on the turn, or an error in strict mode; the counter stays what it was."""
    with Recorded(), tt.turn("a") as turn:
        tt.count("retry_count", 1)
        tt.count("retry_count", amount)
        assert codes(turn) == ["count_invalid"]
        assert turn.report().turn.counters["retry_count"] == 1
    with Recorded(strict=True), tt.turn("a"), pytest.raises(ValueError, match="retry_count"):
        tt.count("retry_count", amount)


def test_blocks_left_out_of_order_give_the_first_context_back():
    """A block left before the one inside it ends once; after the inner one the context is the turn's."""

    def scene():
        with tt.turn("a") as turn:
            before = get_current()
            outer, inner = tt.phase("verification"), tt.phase("retrieval")
            outer.__enter__()
            inner.__enter__()
            outer.__exit__(None, None, None)
            inner.__exit__(None, None, None)
            assert get_current() is before
            return codes(turn)

    with Recorded() as recorded:
        assert apart(scene) == ["context_moved"]
    names = [span.name for span in recorded.exporter.get_finished_spans()]
    assert names == ["verification", "retrieval", "invoke_agent a"]
