"""turn(), phase(), generation(), tool(), count() and mark() as applications use them."""

import asyncio
import contextlib
import logging
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from opentelemetry import trace
from opentelemetry.context import get_current

import turntrace as tt
from recordings import Recorded
from turntrace.instrument.noop import NOOP


def test_without_configuration_every_call_is_the_same_nothing():
    """Off, every block is one shared object, and the functions do nothing."""
    assert tt.turn("a") is tt.phase("generation") is tt.tool("t") is tt.generation(model="m") is NOOP
    with tt.turn("a") as t, tt.generation(model="m") as g:
        assert t.report() is None
        assert t.run_id == ""
        items = [1]
        assert g.stream(items) is items
        g.usage(input_tokens=1)
        g.finish_reasons("stop")
        g.set("a", 1)
    tt.count("retry_count")
    tt.mark("first_visible")


async def test_the_nothing_is_asynchronous_too():
    """Off, ``async with`` works as well."""
    async with tt.turn("a"), tt.phase("verification"):
        pass


def test_a_phase_outside_a_turn_is_no_span():
    """On, a phase without a turn makes no span and no trace."""
    with Recorded() as recorded, tt.phase("prompt_build") as p:
        p.set("a", 1)
        assert not trace.get_current_span().get_span_context().is_valid
        tt.count("retry_count")
        tt.mark("first_visible")
    assert recorded.exporter.get_finished_spans() == ()


def test_spans_carry_phase_exclusive_time_outcome_and_round():
    """What turntrace makes says where its time went, on the span itself."""
    with Recorded() as recorded, tt.turn("agent", session_id="s1", labels={"prompt": "v7"}):
        with tt.phase("prompt_build"):
            pass
        with tt.generation(model="m-1", provider="openai") as g:
            with tt.phase("provider_connect", attributes={"turntrace.attempt": 1}):
                pass
            g.usage(input_tokens=10, output_tokens=3, cached_input_tokens=None)
            g.finish_reasons("stop")
        with tt.tool("bash", call_id="c1"):
            pass
    spans = recorded.spans()
    root = spans["invoke_agent agent"]
    assert root.attributes["turntrace.phase"] == "turn"
    assert root.attributes["gen_ai.conversation.id"] == "s1"
    assert root.attributes["turntrace.label.prompt"] == "v7"
    chat = spans["chat m-1"].attributes
    assert chat["gen_ai.usage.input_tokens"] == 10
    assert "gen_ai.usage.cache_read.input_tokens" not in chat
    assert chat["gen_ai.response.finish_reasons"] == ("stop",)
    assert [spans[name].attributes["turntrace.round"] for name in ("prompt_build", "chat m-1")] == [1, 1]
    for name in ("prompt_build", "provider_connect", "chat m-1", "execute_tool bash"):
        attributes = spans[name].attributes
        assert attributes["turntrace.outcome"] == "ok"
        assert (
            0 <= attributes["turntrace.exclusive_ms"] <= (spans[name].end_time - spans[name].start_time) / 1e6
        )
    wall = sum(value for name, value in root.attributes.items() if name.startswith("turntrace.wall."))
    assert wall == pytest.approx((root.end_time - root.start_time) / 1e6, abs=1e-6)
    assert root.attributes["turntrace.turn.model_requests"] == 1
    assert root.attributes["turntrace.turn.tool_calls"] == 1
    assert root.attributes["gen_ai.aggregated_usage.input_tokens"] == 10
    assert "gen_ai.aggregated_usage.cache_read.input_tokens" not in root.attributes
    assert "gen_ai.usage.input_tokens" not in root.attributes


@pytest.mark.parametrize(
    ("error", "outcome", "status"),
    [
        (ValueError("secret"), "error", trace.StatusCode.ERROR),
        (KeyboardInterrupt(), "cancelled", trace.StatusCode.UNSET),
        (asyncio.CancelledError(), "cancelled", trace.StatusCode.UNSET),
        (SystemExit(3), "cancelled", trace.StatusCode.UNSET),
        (GeneratorExit(), "abandoned", trace.StatusCode.UNSET),
    ],
)
def test_an_exception_passes_through_and_is_told_by_class_only(error, outcome, status):
    """The same object leaves the block; its message is nowhere."""
    with Recorded() as recorded:
        with pytest.raises(type(error)) as caught, tt.turn("a"), tt.phase("verification"):
            raise error
        assert caught.value is error
    span = recorded.spans()["verification"]
    assert span.attributes["turntrace.outcome"] == outcome
    assert span.attributes["error.type"].endswith(type(error).__name__)
    assert span.status.status_code is status
    assert span.events == ()
    assert "secret" not in span.to_json()
    turn = recorded.spans()["invoke_agent a"].attributes["turntrace.turn.status"]
    assert turn == ("error" if outcome == "error" else "cancelled")


def test_an_unknown_phase_is_other_with_a_warning_and_an_error_in_strict_mode():
    """A misspelt name never stops an agent; under TURNTRACE_STRICT it is a ValueError."""
    with Recorded() as recorded, tt.turn("a") as t, tt.phase("promptbuild"):
        assert t.report().turn.warnings[0].code == "unknown_phase"
    assert recorded.spans()["other"].attributes["turntrace.phase"] == "other"
    with Recorded(strict=True), tt.turn("a"):
        with pytest.raises(ValueError, match="prompt_build"):
            tt.phase("promptbuild")
        with pytest.raises(ValueError, match="retry_count"):
            tt.count("retries")
        with pytest.raises(ValueError, match="first_visible"):
            tt.mark("visible")
        with pytest.raises(TypeError, match="input_tokens"), tt.generation(model="m") as g:
            g.usage(prompt_tokens=1)
        with pytest.raises(ValueError, match="labels"):
            tt.turn("a", labels={str(n): "x" for n in range(9)})


def test_unknown_counters_and_marks_are_left_out_with_a_warning():
    """Outside strict mode a wrong name costs a warning."""
    with Recorded(), tt.turn("a") as t:
        tt.count("retries")
        tt.mark("visible")
        with tt.generation(model="m") as g:
            g.usage(prompt_tokens=1)
        report = t.report()
    assert {warning.code for warning in report.turn.warnings} == {"unknown_counter", "unknown_mark"}


def test_labels_beyond_the_bound_are_cut():
    """At most eight labels of at most 64 characters reach the span."""
    labels = {str(number): "x" * 100 for number in range(10)}
    with Recorded() as recorded, tt.turn("a", labels=labels):
        pass
    kept = {k: v for k, v in recorded.spans()["invoke_agent a"].attributes.items() if "label" in k}
    assert len(kept) == 8
    assert set(kept.values()) == {"x" * 64}


def test_the_context_is_what_it_was_after_each_block():
    """Entering and leaving blocks leaves the caller's context alone, errors included."""
    with Recorded():
        before = get_current()
        with contextlib.suppress(ValueError), tt.turn("a"):
            with tt.phase("verification"):
                pass
            raise ValueError
        assert get_current() is before


async def test_siblings_in_gather_have_one_parent():
    """Complaint 16: gather(a, b) makes siblings, not a chain."""

    async def work(name):
        async with tt.tool(name):
            await asyncio.sleep(0.01)

    with Recorded() as recorded:
        async with tt.turn("a"):
            await asyncio.gather(work("x"), work("y"))
            async with asyncio.TaskGroup() as group:
                group.create_task(work("z"))
    spans = recorded.spans()
    root = spans["invoke_agent a"].context.span_id
    assert {spans[f"execute_tool {name}"].parent.span_id for name in "xyz"} == {root}
    assert root not in {None}
    assert spans["invoke_agent a"].attributes["turntrace.flag.serial_tools"] is False


def test_a_thread_without_context_joins_the_only_turn_of_the_process():
    """Complaint 15: tools in a bare pool are spans of the turn, marked as inferred, none a turn."""

    def work(name):
        with tt.tool(name):
            pass

    with Recorded() as recorded, tt.turn("a") as t:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(work, "xy"))
        report = t.report()
    tools = [times for times in report.spans if times.span.tool]
    assert len(tools) == 2
    assert {times.parent_source for times in tools} == {"inferred"}
    assert recorded.spans()["invoke_agent a"].attributes["turntrace.turn.tool_calls"] == 2


def test_two_live_turns_are_never_mixed_up():
    """With two live turns a span without context belongs to neither."""
    ready, done = threading.Barrier(3), threading.Event()
    reports = []

    def agent(name):
        with tt.turn(name) as t:
            with tt.tool(name):
                ready.wait()
                done.wait()
            reports.append(t.report())

    with Recorded():
        threads = [threading.Thread(target=agent, args=(name,), daemon=True) for name in "xy"]
        for thread in threads:
            thread.start()
        ready.wait()
        with tt.tool("lost"):
            assert not trace.get_current_span().get_span_context().is_valid
        done.set()
        for thread in threads:
            thread.join()
    assert {(r.turn.agent, tuple(s.span.tool for s in r.spans)) for r in reports} == {
        ("x", ("x",)),
        ("y", ("y",)),
    }


def test_a_turn_in_a_turn_is_structure_and_a_turn_of_its_own():
    """A sub-agent's time is inside the outer turn; its calls count there too."""
    with Recorded() as recorded, tt.turn("outer") as t:
        with tt.turn("inner") as sub:
            with tt.generation(model="m") as g:
                g.usage(input_tokens=1, output_tokens=1)
            assert sub.run_id != t.run_id
        report = t.report()
    [inner] = [times for times in report.spans if times.span.run_id]
    assert inner.phase is None
    assert inner.span.agent == "inner"
    assert report.turn.counters["model_requests"] == 1
    attributes = recorded.spans()["invoke_agent inner"].attributes
    assert not any(name.startswith("turntrace.wall.") for name in attributes)


def test_no_attribute_is_ever_none(caplog):
    """Complaint 34: unknown values are left out; the SDK has nothing to say about types."""
    with Recorded(), tt.turn("a", session_id=None), tt.generation(model="m", provider=None) as g:
        g.usage(input_tokens=None, output_tokens=None)
        g.set("x", None)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
