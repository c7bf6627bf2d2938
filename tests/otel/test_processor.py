"""What the processor makes of spans: turns, phases, exclusive time and the answer on the turn's span."""

import contextvars
import os
import threading

import pytest
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags
from opentelemetry.trace import set_span_in_context as with_span

import turntrace as tt
from otel.fakes import AGENT, CHAT, HTTP, MS, START_NS, TOOL, Exported, a_chat, a_tool, an_agent
from recordings import Recorded
from turntrace.otel.options import RecordingOptions
from turntrace.otel.processor import TurnSpanProcessor
from turntrace.otel.slot import TURN_KEY


def walls(span):
    """The wall times on a turn's span, in ms."""
    cut = len("turntrace.wall.")
    return {
        name[cut:-3]: value for name, value in span.attributes.items() if name.startswith("turntrace.wall.")
    }


def phases(turn):
    """The phases of a turn's spans by the spans' names."""
    return {span.name: span.phase for span in turn.spans}


def run_agent(tracer, clock):
    """One turn of a foreign agent: 100 ms, of which 50 model (30 connecting), 20 tool, 30 nothing."""
    with an_agent(tracer):
        clock.wait(10)
        with a_chat(tracer) as chat:
            clock.wait(5)
            with tracer.start_as_current_span("POST", kind=SpanKind.CLIENT, attributes=HTTP):
                clock.wait(30)
            clock.wait(15)
            chat.set_attributes({"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 2})
        with tracer.start_as_current_span("graph node"):
            clock.wait(5)
            with a_tool(tracer):
                clock.wait(20)
        clock.wait(15)


def test_an_agent_span_of_any_instrumentation_is_a_turn(tmp_path, clock):
    """Rule (b): the span that its dialect names as an agent is the root; its block tells the rest."""
    with Recorded(tmp_path / "t.ndjson", clock=clock) as recorded:
        run_agent(recorded.tracer(), clock)
    (block,) = recorded.blocks()
    turn = block.turn
    assert (turn.turn_source, turn.source, turn.agent) == ("dialect", "otel_genai", "coder")
    assert (turn.model, turn.provider, turn.status, turn.rounds) == ("m-1", "openai", "ok", 1)
    assert (turn.started_ns, turn.completed_ns) == (START_NS, START_NS + 100 * MS)
    assert turn.root_name == "invoke_agent coder"
    assert turn.span_id not in {span.span_id for span in turn.spans}
    assert turn.counters["model_requests"] == turn.counters["tool_calls"] == 1
    assert turn.usage[0].input_tokens == 10
    assert phases(turn) == {
        "chat m-1": "generation",
        "POST": "provider_connect",
        "graph node": None,
        "execute_tool bash": "tool_execution",
    }


def test_the_answer_on_the_turns_span_adds_up_to_its_duration(clock):
    """Wall time by phase, unattributed included, is the whole duration; counts and words stand beside it."""
    with Recorded(clock=clock) as recorded, Exported(recorded) as exported:
        run_agent(recorded.tracer(), clock)
        spans = exported.spans()
    root = spans["invoke_agent coder"]
    assert walls(root) == {
        "generation": 20.0,
        "provider_connect": 30.0,
        "tool_execution": 20.0,
        "unattributed": 30.0,
    }
    assert sum(walls(root).values()) == (root.end_time - root.start_time) / MS
    told = root.attributes
    assert told["turntrace.phase"] == "turn"
    assert told["turntrace.turn.coverage"] == 0.7
    assert told["turntrace.turn.active_ms"] == 100.0
    assert told["turntrace.turn.dominant_phase"] == "provider_connect"
    assert told["turntrace.turn.usage_complete"] is True
    assert told["turntrace.flag.low_coverage"] is True
    assert told["turntrace.flag.serial_tools"] is False
    assert told["gen_ai.aggregated_usage.output_tokens"] == 2
    assert told["turntrace.exclusive_ms"] == 25.0


def test_every_exported_span_says_its_phase_and_its_own_time(clock):
    """Copies carry exclusive time, outcome and round beside what their instrumentation put on them."""
    with Recorded(clock=clock) as recorded, Exported(recorded) as exported:
        run_agent(recorded.tracer(), clock)
        spans = exported.spans()
    names = ("chat m-1", "POST", "graph node", "execute_tool bash")
    exclusive = {name: spans[name].attributes["turntrace.exclusive_ms"] for name in names}
    assert exclusive == {"chat m-1": 20.0, "POST": 30.0, "graph node": 5.0, "execute_tool bash": 20.0}
    assert [spans[name].attributes.get("turntrace.phase") for name in names] == [
        "generation",
        "provider_connect",
        None,
        "tool_execution",
    ]
    assert {spans[name].attributes["turntrace.round"] for name in names} == {1}
    assert {spans[name].attributes["turntrace.outcome"] for name in names} == {"ok"}
    assert spans["POST"].attributes["http.request.method"] == "POST"


def test_what_the_application_exports_itself_is_left_as_it_is(clock):
    """A processor adds nothing to spans on other processors' way."""
    with Recorded(clock=clock) as recorded:
        run_agent(recorded.tracer(), clock)
    assert not any("turntrace" in name for s in recorded.spans().values() for name in s.attributes)


def test_an_http_call_outside_a_model_call_is_no_connect(tmp_path, clock):
    """An HTTP client span is an attempt to reach a model only below a model call; elsewhere it is other."""
    with Recorded(tmp_path / "t.ndjson", clock=clock) as recorded:
        tracer = recorded.tracer()
        get = tracer.start_as_current_span("GET", kind=SpanKind.CLIENT, attributes=HTTP)
        with an_agent(tracer), get:
            clock.wait(1)
    assert phases(recorded.blocks()[0].turn) == {"GET": "other"}


@pytest.mark.parametrize("kind", [SpanKind.SERVER, SpanKind.CONSUMER])
def test_plumbing_is_structure_even_as_a_leaf(tmp_path, clock, kind):
    """A SERVER or CONSUMER span is no phase: its time stays unattributed."""
    with Recorded(tmp_path / "t.ndjson", clock=clock) as recorded:
        tracer = recorded.tracer()
        with an_agent(tracer), tracer.start_as_current_span("POST /mcp", kind=kind):
            clock.wait(10)
    (block,) = recorded.blocks()
    assert phases(block.turn) == {"POST /mcp": None}
    assert block.turn.completed_ns - block.turn.started_ns == 10 * MS


def test_generations_that_wrap_each_other_are_one_call(tmp_path, clock):
    """A framework's model span around the SDK's is the same call: one request, one round, one usage."""
    with Recorded(tmp_path / "t.ndjson", clock=clock) as recorded, Exported(recorded) as exported:
        tracer = recorded.tracer()
        with an_agent(tracer):
            with tracer.start_as_current_span("outer", attributes=CHAT):
                clock.wait(1)
                with tracer.start_as_current_span("inner", attributes=CHAT) as inner:
                    clock.wait(8)
                    inner.set_attributes({"gen_ai.usage.input_tokens": 7, "gen_ai.usage.output_tokens": 1})
            with tracer.start_as_current_span("again", attributes=CHAT) as again:
                clock.wait(1)
                again.set_attributes({"gen_ai.usage.input_tokens": 2, "gen_ai.usage.output_tokens": 1})
        told = exported.spans()["invoke_agent coder"].attributes
    turn = recorded.blocks()[0].turn
    assert told["turntrace.turn.model_requests"] == turn.counters["model_requests"] == 2
    assert told["turntrace.turn.rounds"] == turn.rounds == 2
    assert told["gen_ai.aggregated_usage.input_tokens"] == 9
    assert [usage.input_tokens for usage in turn.usage] == [7, 2]
    assert told["turntrace.wall.generation_ms"] == 10.0


def test_tools_that_wrap_each_other_are_one_call(clock):
    """A tool span inside the span of the same call is not a second one, nor two at once."""
    with Recorded(clock=clock) as recorded, Exported(recorded) as exported:
        tracer = recorded.tracer()
        with an_agent(tracer):
            for _ in range(2):
                with a_tool(tracer), tracer.start_as_current_span("inner", attributes=TOOL):
                    clock.wait(1)
        told = exported.spans()["invoke_agent coder"].attributes
    assert told["turntrace.turn.tool_calls"] == 2
    assert told["turntrace.flag.serial_tools"] is True


def test_an_agent_below_an_agent_is_a_nested_turn(tmp_path, clock):
    """Below a turn an agent span is structure with an id and rounds of its own; its calls count above."""
    with Recorded(tmp_path / "t.ndjson", clock=clock) as recorded, Exported(recorded) as exported:
        tracer = recorded.tracer()
        with an_agent(tracer):
            with a_chat(tracer):
                clock.wait(1)
            named = {**AGENT, "gen_ai.agent.name": "critic"}
            critic = tracer.start_as_current_span("invoke_agent critic", attributes=named)
            with a_tool(tracer), critic:
                with a_chat(tracer, "sub chat"):
                    clock.wait(3)
                with a_tool(tracer, "sub tool"):
                    clock.wait(1)
        spans = exported.spans()
    (block,) = recorded.blocks()
    inner = next(span for span in block.turn.spans if span.name == "invoke_agent critic")
    assert (inner.phase, inner.agent) == (None, "critic")
    assert inner.run_id
    assert inner.run_id != block.turn.run_id
    told = spans["invoke_agent coder"].attributes
    for name, count in (("model_requests", 2), ("tool_calls", 2)):
        assert block.turn.counters[name] == told[f"turntrace.turn.{name}"] == count
    assert spans["sub chat"].attributes["turntrace.round"] == 1
    assert not walls(spans["invoke_agent critic"])


def test_a_lone_model_call_is_a_turn_without_a_root(tmp_path, clock):
    """Rule (c): a chat span that nothing surrounds is a turn over its own interval, itself one of the spans."""
    with Recorded(tmp_path / "t.ndjson", clock=clock) as recorded, Exported(recorded) as exported:
        with a_chat(recorded.tracer()):
            clock.wait(40)
        span = exported.spans()["chat m-1"]
    (block,) = recorded.blocks()
    turn = block.turn
    assert (turn.turn_source, turn.span_id, turn.status) == ("local_root", None, "ok")
    assert (turn.started_ns, turn.completed_ns) == (START_NS, START_NS + 40 * MS)
    assert phases(turn) == {"chat m-1": "generation"}
    assert span.attributes["turntrace.phase"] == "generation"
    assert not walls(span)


def test_a_request_with_a_model_call_below_is_a_turn(tmp_path, clock):
    """Rule (c): a SERVER span without an agent below it is the root of the phases below it."""
    with Recorded(tmp_path / "t.ndjson", clock=clock) as recorded, Exported(recorded) as exported:
        tracer = recorded.tracer()
        with tracer.start_as_current_span("POST /chat", kind=SpanKind.SERVER):
            clock.wait(5)
            with a_chat(tracer):
                clock.wait(20)
        root = exported.spans()["POST /chat"]
    (block,) = recorded.blocks()
    assert (block.turn.turn_source, block.turn.root_name) == ("local_root", "POST /chat")
    assert block.turn.span_id == f"{root.context.span_id:016x}"
    assert walls(root) == {"generation": 20.0, "unattributed": 5.0}
    assert root.attributes["turntrace.phase"] == "turn"


def test_a_request_around_an_agent_stays_outside_the_turn(tmp_path, clock):
    """Below a SERVER span the agent span is the root; the request is no turn of its own."""
    with Recorded(tmp_path / "t.ndjson", clock=clock) as recorded:
        tracer = recorded.tracer()
        with tracer.start_as_current_span("POST /chat", kind=SpanKind.SERVER):
            clock.wait(5)
            run_agent(tracer, clock)
    (block,) = recorded.blocks()
    assert block.turn.root_name == "invoke_agent coder"
    assert block.turn.started_ns == START_NS + 5 * MS


def test_a_local_root_without_a_phase_leaves_nothing(tmp_path, clock):
    """Spans of an application that calls no model are no turn: no block, no journal, no attributes."""
    with Recorded(tmp_path / "t.ndjson", clock=clock) as recorded, Exported(recorded) as exported:
        tracer = recorded.tracer()
        with tracer.start_as_current_span("cron"), tracer.start_as_current_span("SELECT"):
            clock.wait(5)
        root = exported.spans()["cron"]
    assert list(tmp_path.iterdir()) == []
    assert "turntrace.phase" not in root.attributes
    assert not walls(root)


def test_a_tool_that_a_thread_made_a_root_joins_the_only_turn(tmp_path, clock):
    """A lone root that is no request and no agent belongs to the one live turn, marked as inferred."""
    with Recorded(tmp_path / "t.ndjson", clock=clock) as recorded:
        tracer = recorded.tracer()
        with an_agent(tracer):
            tracer.start_span("execute_tool bash", Context(), attributes=TOOL).end()
            tracer.start_span("GET /health", Context(), kind=SpanKind.SERVER).end()
    (block,) = recorded.blocks()
    assert [(span.name, span.parent_source) for span in block.turn.spans] == [
        ("execute_tool bash", "inferred")
    ]


def test_a_span_whose_parent_is_gone_is_found_by_its_trace(tmp_path, clock):
    """A span below one that never was recorded here belongs to the live turn of its trace."""
    with Recorded(tmp_path / "t.ndjson", clock=clock) as recorded:
        tracer = recorded.tracer()
        with an_agent(tracer) as root:
            lost = SpanContext(root.get_span_context().trace_id, 77, False, TraceFlags(TraceFlags.SAMPLED))
            parent = with_span(NonRecordingSpan(lost), Context())
            tracer.start_span("execute_tool bash", parent, attributes=TOOL).end()
    (block,) = recorded.blocks()
    assert [(span.name, span.parent_id) for span in block.turn.spans] == [("execute_tool bash", f"{77:016x}")]


def test_a_context_that_carries_a_turn_leads_a_foreign_span_to_it(tmp_path, clock):
    """A span in another trace, started in a context of a turn, belongs to that turn."""
    with Recorded(tmp_path / "t.ndjson", clock=clock) as recorded:
        tracer = recorded.tracer()
        for name in "xy":
            with tracer.start_as_current_span(name, attributes={**AGENT, "gen_ai.agent.name": name}) as root:
                opened = recorded.processor.recording.table.open_spans[root.get_span_context().span_id]
                carrying = Context({TURN_KEY: opened.sink})
                tracer.start_span("execute_tool bash", carrying, attributes=TOOL).end()
    assert [[span.tool for span in block.turn.spans] for block in recorded.blocks()] == [["bash"], ["bash"]]


def test_a_pending_copy_of_a_span_is_not_recorded(tmp_path, clock):
    """What a dialect marks as a copy of another span is left out, which is no loss to count."""
    with Recorded(tmp_path / "t.ndjson", clock=clock) as recorded:
        tracer = recorded.tracer()
        with an_agent(tracer):
            tracer.start_span("copy", attributes={"logfire.span_type": "pending_span"}).end()
    (block,) = recorded.blocks()
    assert block.turn.spans == ()
    assert recorded.guard.dropped == {}


def test_attributes_that_come_late_decide_the_phase(tmp_path, clock):
    """A span is what its attributes say when it ends, if they were not there when it started."""
    with Recorded(tmp_path / "t.ndjson", clock=clock) as recorded:
        tracer = recorded.tracer()
        with an_agent(tracer), tracer.start_as_current_span("work") as span:
            clock.wait(1)
            span.set_attributes(TOOL)
            span.update_name("execute_tool bash")
    (span,) = recorded.blocks()[0].turn.spans
    assert (span.name, span.phase, span.tool) == ("execute_tool bash", "tool_execution", "bash")


@pytest.mark.parametrize(
    ("attributes", "status", "outcome"),
    [
        ({}, StatusCode.UNSET, "ok"),
        ({}, StatusCode.OK, "ok"),
        ({}, StatusCode.ERROR, "error"),
        ({"turntrace.outcome": "cancelled"}, StatusCode.ERROR, "cancelled"),
        ({"turntrace.outcome": "nonsense"}, StatusCode.UNSET, "ok"),
    ],
)
def test_the_outcome_is_the_stamped_one_else_the_status(tmp_path, clock, attributes, status, outcome):
    """What a span says of its outcome wins over its status; an unknown word says nothing."""
    with Recorded(tmp_path / "t.ndjson", clock=clock) as recorded:
        tracer = recorded.tracer()
        with an_agent(tracer):
            span = tracer.start_span("execute_tool bash", attributes={**TOOL, **attributes})
            span.set_status(Status(status))
            span.end()
    (span,) = recorded.blocks()[0].turn.spans
    assert (span.outcome, span.status) == (outcome, status.name.lower())


def test_a_root_that_failed_makes_the_turn_an_error(tmp_path, clock):
    """The status of a foreign root is the turn's."""
    with Recorded(tmp_path / "t.ndjson", clock=clock) as recorded:
        tracer = recorded.tracer()
        with pytest.raises(ValueError, match="told"), an_agent(tracer):
            raise ValueError("told")
    assert recorded.blocks()[0].turn.status == "error"


def test_first_moments_come_from_the_model_call_that_says_them(tmp_path, clock):
    """Time to the first chunk on a model span is a mark of the turn; the first one counts."""
    with Recorded(tmp_path / "t.ndjson", clock=clock) as recorded:
        tracer = recorded.tracer()
        with an_agent(tracer):
            for _ in range(2):
                clock.wait(10)
                with tracer.start_as_current_span("chat", attributes=CHAT) as chat:
                    clock.wait(30)
                    chat.set_attribute("gen_ai.response.time_to_first_chunk", 0.02)
    turn = recorded.blocks()[0].turn
    assert turn.first_chunk_ns == START_NS + 30 * MS
    assert [mark.name for mark in turn.marks] == ["first_chunk"]


def test_a_clock_that_steps_back_never_yields_a_negative_span(tmp_path, clock):
    """A stepped wall clock is subtracted from the stamps that come after it, in file and copy alike."""
    with Recorded(tmp_path / "t.ndjson", clock=clock) as recorded, Exported(recorded) as exported:
        tracer = recorded.tracer()
        with an_agent(tracer), a_chat(tracer):
            clock.wait(10)
            clock.step(-5000)
            clock.wait(10)
        chat = exported.spans()["chat m-1"]
    turn = recorded.blocks()[0].turn
    assert (turn.spans[0].start_ns, turn.spans[0].end_ns) == (START_NS, START_NS + 20 * MS)
    assert (chat.start_time, chat.end_time) == (START_NS, START_NS + 20 * MS)
    assert turn.completed_ns == START_NS + 20 * MS


@pytest.mark.parametrize("sampled", [True, False])
def test_the_header_says_whether_the_turn_was_sampled(tmp_path, clock, sampled):
    """A turn that no exporter sends is in the file all the same, and says so."""
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON

    from turntrace.otel.sampler import RecordingSampler

    sampler = RecordingSampler(ALWAYS_ON if sampled else ALWAYS_OFF)
    out = tmp_path / "t.ndjson"
    with Recorded(out, clock=clock, sampler=sampler) as recorded, Exported(recorded) as exported:
        run_agent(recorded.tracer(), clock)
        assert len(exported.spans()) == (5 if sampled else 0)
    assert recorded.blocks()[0].turn.sampled is sampled
    assert f'"sampled":{str(sampled).lower()}'.encode() in out.read_bytes()


def test_labels_of_options_and_spans_reach_the_block(tmp_path, clock):
    """Labels of every turn come from the options; what the root says overrules them."""
    with Recorded(tmp_path / "t.ndjson", clock=clock, labels={"team": "a", "x": "1"}) as recorded:
        attributes = {**AGENT, "turntrace.label.team": "b"}
        recorded.tracer().start_span("invoke_agent coder", attributes=attributes).end()
    assert recorded.blocks()[0].turn.labels == {"team": "b", "x": "1"}


def test_an_unnamed_agent_has_the_name_of_the_options(tmp_path, clock):
    """The name given for the process stands where a turn names no agent."""
    with Recorded(tmp_path / "t.ndjson", clock=clock, agent="shop") as recorded:
        recorded.tracer().start_span("chat m-1", attributes=CHAT).end()
    assert recorded.blocks()[0].turn.agent == "shop"


def test_an_error_of_ours_never_reaches_the_application(clock, monkeypatch, caplog):
    """Starts and ends that fail inside are counted and said once; the span goes on."""
    with Recorded(clock=clock) as recorded:
        processor = recorded.processor

        class Broken:
            def started(self, span, context):
                raise RuntimeError("secret")

            def ended(self, span):
                raise RuntimeError("secret")

        monkeypatch.setattr(processor, "_start", Broken())
        monkeypatch.setattr(processor, "_end", Broken())
        for _ in range(2):
            recorded.tracer().start_span("x").end()
    assert recorded.guard.dropped["error"] == 4
    assert [record.getMessage() for record in caplog.records] == [
        "turntrace lost a record in on_start: RuntimeError",
        "turntrace lost a record in on_end: RuntimeError",
    ]


def test_a_span_without_a_context_is_let_through():
    """An ended span that has no ids cannot be known; it is counted and nothing else."""
    processor = TurnSpanProcessor(RecordingOptions())
    processor.on_end(ReadableSpan("x"))
    assert processor.recording.guard.dropped == {"unseen_start": 1}


def test_a_processor_that_was_set_up_late_lets_open_spans_pass(clock):
    """A span that started before the processor was there ends without a trace of us."""
    with Recorded(clock=clock) as recorded:
        other = TurnSpanProcessor(RecordingOptions(), clock=clock)
        span = recorded.tracer().start_span("invoke_agent coder", attributes=AGENT)
        recorded.provider.add_span_processor(other)
        span.end()
    assert other.recording.guard.dropped == {"unseen_start": 1}


def test_the_recorder_tells_where_it_writes_and_what_it_lies_in(tmp_path, clock):
    """What the recording API asks: strictness, the file, and whether the parent lives elsewhere."""
    out = str(tmp_path / "t.ndjson")
    assert TurnSpanProcessor(RecordingOptions(out="-")).out is None
    processor = TurnSpanProcessor(RecordingOptions(out=out, strict=True), clock=clock)
    assert (processor.out, processor.strict) == (out, True)
    remote = SpanContext(5, 6, True, TraceFlags(TraceFlags.SAMPLED))
    local = SpanContext(5, 6, False, TraceFlags(TraceFlags.SAMPLED))
    assert processor.is_remote(with_span(NonRecordingSpan(remote), Context()))
    assert not processor.is_remote(with_span(NonRecordingSpan(local), Context()))
    assert not processor.is_remote(Context())
    processor.recording.table.inherited_traces = frozenset({5})
    assert processor.is_remote(with_span(NonRecordingSpan(local), Context()))


def test_the_sink_of_a_context_is_the_turn_of_its_current_span(clock):
    """A current span decides; then the turn that the context carries, of the same trace; then the only one."""
    with Recorded(clock=clock) as recorded:
        tracer, sink_of = recorded.tracer(), recorded.processor.sink
        spans = [tracer.start_span(name, Context(), attributes=AGENT) for name in "xy"]
        contexts = [with_span(span, Context()) for span in spans]
        first, second = (sink_of(context) for context in contexts)
        assert first is not second
        assert sink_of(Context()) is None, "two turns live: a bare thread belongs to neither"
        carrying = Context({TURN_KEY: first})
        assert sink_of(carrying) is first
        assert sink_of(with_span(spans[1], carrying)) is second
        unknown = SpanContext(first.trace_id, 99, False, TraceFlags(TraceFlags.SAMPLED))
        assert sink_of(with_span(NonRecordingSpan(unknown), carrying)) is first
        assert sink_of(with_span(NonRecordingSpan(unknown), Context())) is first
        stranger = SpanContext(98, 99, False, TraceFlags(TraceFlags.SAMPLED))
        assert sink_of(with_span(NonRecordingSpan(stranger), carrying)) is None
        spans[0].end()
        assert sink_of(Context()) is second
        spans[1].end()


def test_a_span_of_ours_that_no_turn_can_be_found_for_is_said_once_a_turn():
    """With two turns live a bare thread's tool is lost: counted each time, a warning on each turn once."""

    def bare():
        for _ in range(2):
            with tt.tool("bash"):
                pass

    with Recorded() as recorded, tt.turn("outer") as first:
        context = contextvars.Context()
        second = context.run(lambda: tt.turn("other").__enter__())
        thread = threading.Thread(target=bare)
        thread.start()
        thread.join()
        warnings = [turn.report().turn.warnings for turn in (first, second)]
        assert [[warning.code for warning in found] for found in warnings] == [["no_turn"]] * 2
        assert recorded.guard.dropped == {"no_turn": 2}


def test_a_thread_without_context_adds_own_spans_to_the_only_turn():
    """Told by the recording API, a span without a parent is the turn's, inferred; nested ones are not."""

    def bare():
        with tt.tool("outer"), tt.generation(model="m"):
            pass

    with Recorded() as recorded, tt.turn("a") as turn:
        thread = threading.Thread(target=bare)
        thread.start()
        thread.join()
        recorded.processor.flush()
        report = turn.report()
    assert {times.span.name: times.parent_source for times in report.spans} == {
        "execute_tool outer": "inferred",
        "chat m": "otel",
    }


def test_a_processor_that_was_added_twice_records_once(tmp_path, clock, capsys):
    """A provider that has it twice is told once; every span stands in the file once."""
    with Recorded(tmp_path / "t.ndjson", clock=clock) as recorded:
        recorded.provider.add_span_processor(recorded.processor)
        run_agent(recorded.tracer(), clock)
    assert len(recorded.blocks()[0].turn.spans) == 4
    assert capsys.readouterr().err.count("has the same processor twice") == 1


def test_a_model_call_that_failed_before_any_answer_reports_nothing(tmp_path, clock):
    """There was nothing to report: the call counts, its usage is not even missing."""
    with Recorded(tmp_path / "t.ndjson", clock=clock) as recorded:
        tracer = recorded.tracer()
        with an_agent(tracer):
            chat = tracer.start_span("chat m-1", attributes=CHAT)
            chat.set_status(Status(StatusCode.ERROR))
            chat.end()
    turn = recorded.blocks()[0].turn
    assert (turn.usage, turn.counters["model_requests"]) == ((), 1)


def test_caught_errors_of_the_recording_api_are_counted_too():
    """The API's own failures go through the same guard."""
    processor = TurnSpanProcessor(RecordingOptions())
    processor.caught("phase", ValueError("secret"))
    assert processor.recording.guard.dropped == {"error": 1}


def test_a_processor_that_is_gone_is_not_renewed_by_a_fork():
    """The fork hook holds no processor alive, and does nothing once it is gone."""
    import gc
    import os
    import weakref

    hooks = []
    patched = pytest.MonkeyPatch()
    patched.setattr(os, "register_at_fork", lambda *, after_in_child: hooks.append(after_in_child))
    try:
        processor = TurnSpanProcessor(RecordingOptions())
    finally:
        patched.undo()
    before = processor.recording.writer
    hooks[0]()
    assert processor.recording.writer is not before
    known = weakref.ref(processor)
    del processor, before
    gc.collect()
    assert known() is None
    hooks[0]()


def test_in_a_forked_child_the_parents_turns_are_the_parents(tmp_path, clock):
    """After a fork a child has no live turn, closes nothing of its parent's and ends no copy of its spans."""
    out = tmp_path / "t.ndjson"
    with Recorded(out, clock=clock, journal="thread") as recorded, Exported(recorded) as exported:
        processor, tracer = recorded.processor, recorded.tracer()
        processor.recording.keep_exclusive()[5] = 1
        span = tracer.start_span("invoke_agent coder", attributes=AGENT)
        turn = processor.sink(with_span(span, Context()))
        assert processor.force_flush()
        processor._renew()  # what os.fork() calls in the child
        assert processor.sink(with_span(span, Context())) is None
        assert processor.is_remote(with_span(span, Context()))
        assert processor.recording.exclusive_of == {}
        span.end()
        assert exported.spans() == {}
        assert turn.closed
        assert turn.finish("ok", 1) == {}
        assert not out.exists()


def test_a_provider_that_exports_over_otlp_is_not_exported_twice(clock):
    """When the application sets a provider with an OTLP exporter, ours gets no more spans."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    class OTLPSpanExporter(InMemorySpanExporter):
        """Named like the official one."""

    for exporter, names in ((OTLPSpanExporter(), set()), (InMemorySpanExporter(), {"chat m-1"})):
        with Recorded(clock=clock) as recorded, Exported(recorded) as exported:
            theirs = TracerProvider(shutdown_on_exit=False)
            recorded.processor.adopted(theirs)
            theirs.add_span_processor(SimpleSpanProcessor(exporter))
            recorded.tracer().start_span("chat m-1", attributes=CHAT).end()
            assert set(exported.spans()) == names
            assert recorded.processor.recording.enriches is bool(names)


def test_own_and_foreign_spans_share_one_turn(tmp_path):
    """turn() around a foreign agent is the root; the agent is a nested turn, its calls are the turn's."""
    with Recorded(tmp_path / "t.ndjson") as recorded:
        tracer = recorded.tracer()
        with tt.turn("mine") as mine, an_agent(tracer):
            with tt.generation(model="m"):
                pass
            with a_chat(tracer):
                pass
    (block,) = recorded.blocks()
    assert block.turn.run_id == mine.run_id
    assert block.turn.counters["model_requests"] == 2
    assert [span.name for span in block.turn.spans if span.run_id] == ["invoke_agent coder"]
    assert trace.get_current_span().get_span_context().is_valid is False


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_renewal_that_fails_after_a_fork_spoils_no_other_and_prints_nothing(caplog, capfd):
    """The child records with a writer of its own, whatever went wrong; what went wrong is counted."""

    class Broken(SpanProcessor):
        def renew(self):
            raise ValueError("secret")

    processor = TurnSpanProcessor(RecordingOptions())
    batches = (Broken(), Broken())
    processor.follow_with(batches)
    writer = processor.recording.writer
    processor._renew()
    assert processor.recording.writer is not writer
    assert processor.recording.guard.dropped["error"] == 2
    assert "secret" not in caplog.text
    assert capfd.readouterr().err == ""
