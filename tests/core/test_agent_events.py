"""Log events of coding agents: they fill the spans that tell the same, and make those that are missing."""

import pytest

from core.raws import MS, raw
from turntrace.core.event_table import EVENTS, event_name
from turntrace.core.model import RawEvent
from turntrace.core.turns import assemble
from turntrace.core.usage import total

CLAUDE, CODEX, GEMINI = "com.anthropic.claude_code.events", "codex_otel.log_only", "gemini-cli"
SESSIONS = {CLAUDE: "session.id", CODEX: "conversation.id", GEMINI: "session.id"}


def event(scope, name, at_ms, *, session="s", **attributes):
    """A log event; a name of an attribute has its dots as double underscores."""
    named = {key.replace("__", "."): value for key, value in attributes.items()}
    ids = {key: named.pop(key) for key in ("trace_id", "span_id") if key in named}
    return RawEvent(
        name=name, at_ns=at_ms * MS, scope=scope, attributes={SESSIONS[scope]: session, **named}, **ids
    )


def claude(name, at_ms, **attributes):
    """An event of Claude Code."""
    return event(CLAUDE, f"claude_code.{name}", at_ms, **attributes)


def codex(name, at_ms, **attributes):
    """An event of codex."""
    return event(CODEX, f"codex.{name}", at_ms, **attributes)


def completed(at_ms, tokens_in=100, tokens_out=10, **attributes):
    """The end of an answer of codex, whose numbers are texts."""
    counts = {"input_token_count": str(tokens_in), "output_token_count": str(tokens_out)}
    return codex("sse_event", at_ms, event__kind="response.completed", **counts, **attributes)


def spans_of(turn):
    """Phase, start and end (ms) of what is no structure."""
    return [(one.phase, one.start_ns // MS, one.end_ns // MS) for one in turn.spans if one.phase]


def tokens_of(turn):
    """The tokens of a turn."""
    found = total(turn.usage, turn.counters["model_requests"])
    return found.input_tokens, found.output_tokens


def sampling(span_id, start_ms, end_ms, **fields):
    """The span of a model call of codex."""
    attributes = {"codex.turn.phase": "sampling", "conversation.id": "s"}
    return raw(
        span_id, start_ms, end_ms, scope="codex_exec", name="codex.sampling", attributes=attributes, **fields
    )


def dispatch(span_id, start_ms, end_ms, call, **fields):
    """The span of a tool of codex."""
    attributes = {"codex.tool.phase": "dispatch", "tool_name": "shell", "call_id": call}
    return raw(span_id, start_ms, end_ms, scope="codex_exec", name="shell", attributes=attributes, **fields)


def turn_of_codex(span_id, start_ms, end_ms, **fields):
    """The span of a turn of codex."""
    return raw(span_id, start_ms, end_ms, scope="codex_exec", name="session_task.turn", **fields)


def test_events_with_durations_become_spans():
    """A turn of Claude Code that sends no spans: from the prompt to the last answer."""
    (turn,) = assemble(
        [],
        events=[
            claude("user_prompt", 100),
            claude("api_request", 500, duration_ms="300", model="m", input_tokens="7", output_tokens="3", cache_read_tokens="100"),
            claude("tool_result", 900, duration_ms=350, tool_name="Bash", tool_use_id="c", success="true"),
            claude("api_request", 1500, duration_ms=550.4, model="m", input_tokens=1, output_tokens=2),
        ],
    )  # fmt: skip
    assert spans_of(turn) == [
        ("generation", 200, 500),
        ("tool_execution", 550, 900),
        ("generation", 949, 1500),
    ]
    assert (turn.started_ns, turn.completed_ns) == (100 * MS, 1500 * MS)
    assert (turn.agent, turn.session_id, turn.turn_source, turn.rounds) == ("claude", "s", "dialect", 2)
    assert tokens_of(turn) == (108, 5)
    assert [one.tool for one in turn.spans if one.phase == "tool_execution"] == ["Bash"]


def test_what_a_span_tells_is_not_told_twice():
    """The same call as span and as event is one, with what either says of it."""
    call = raw("a", 190, 510, scope="com.anthropic.claude_code.tracing", attributes={"span.type": "llm_request", "session.id": "s", "input_tokens": 7, "model": "m"})  # fmt: skip
    (turn,) = assemble(
        [call],
        events=[claude("api_request", 500, duration_ms=300, input_tokens="7", output_tokens=3, model="n")],
    )
    assert spans_of(turn) == [("generation", 190, 510)]
    assert (tokens_of(turn), turn.model) == ((7, 3), "m")


def test_calls_that_run_together_are_told_apart_by_their_tokens():
    """One of which only an event tells lies within the span of another one: its tokens are not that one's."""
    call = raw("a", 190, 510, scope="com.anthropic.claude_code.tracing", attributes={"span.type": "llm_request", "session.id": "s", "input_tokens": 7, "output_tokens": 1})  # fmt: skip
    events = [
        claude("api_request", 400, duration_ms=200, input_tokens=99, output_tokens=3),
        claude("api_request", 500, duration_ms=300, input_tokens=7, output_tokens=1),
    ]
    (turn,) = assemble([call], events=events)
    assert spans_of(turn) == [("generation", 190, 510), ("generation", 200, 400)]
    assert tokens_of(turn) == (106, 4)


def test_what_threads_of_an_agent_do_at_once_is_told_apart_by_what_is_above():
    """Codex's report of a call names no thread; the plumbing above it does."""
    spans = [
        one
        for name, (start, end), tokens in (("1", (0, 300), 1200), ("2", (10, 200), 90))
        for one in (
            raw(f"t{name}", start, end + 5, scope="codex_core", name="session_task.turn", attributes={"conversation.id": name}),
            raw(f"r{name}", start, end + 4, scope="codex_core", name="run_turn", parent=f"t{name}"),
            raw(f"c{name}", start, end, scope="codex_core", name="codex.sampling", parent=f"r{name}", attributes={"codex.turn.phase": "sampling"}),
            raw(f"h{name}", end, end, scope="codex_core", name="handle_responses", parent=f"r{name}", attributes={"gen_ai.usage.input_tokens": str(tokens)}),
        )
    ]  # fmt: skip
    first, second = assemble(spans)
    assert [tokens_of(first)[0], tokens_of(second)[0]] == [1200, 90]


def test_calls_of_which_one_has_no_span_stay_two():
    """Neighbours are not one call, and neither are those of another session."""
    first = sampling("a", 0, 100)
    (turn,) = assemble([first], events=[codex("api_request", 110, duration_ms=5), completed(200)])
    assert [one for one in spans_of(turn) if one[0] == "generation"] == [
        ("generation", 0, 100),
        ("generation", 105, 200),
    ]
    other = [codex("api_request", 10, duration_ms=5, session="o"), completed(100, session="o")]
    assert sum(turn.counters["model_requests"] for turn in assemble([first], events=other)) == 2


def test_two_events_of_a_kind_are_two_calls():
    """A span stands for one of them."""
    events = [claude("api_request", at, duration_ms=100, output_tokens=1) for at in (200, 240)]
    span = raw(
        "a", 100, 200, scope="com.anthropic.claude_code.tracing", attributes={"span.type": "llm_request"}
    )
    (turn,) = assemble([span], events=events)
    assert turn.counters["model_requests"] == 2


def test_an_event_that_came_twice_is_one():
    """A batch is sent again."""
    one = claude("api_request", 500, duration_ms=300, output_tokens=3)
    (turn,) = assemble([], events=[one, one])
    assert turn.counters["model_requests"] == 1


def test_tools_are_matched_by_their_call_then_by_time_and_name():
    """Two tools at once keep what is theirs; one of another name is another."""
    spans = [
        turn_of_codex("t", 0, 1000),
        dispatch("a", 100, 500, "c1", parent="t"),
        dispatch("b", 101, 501, "c2", parent="t"),
    ]
    events = [
        codex("tool_result", 505, duration_ms=400, tool_name="shell", call_id="c2", success="false"),
        codex("tool_result", 500, duration_ms=400, tool_name="patch"),
    ]
    (turn,) = assemble(spans, events=events)
    assert sorted(one.tool for one in turn.spans if one.phase == "tool_execution") == [
        "patch",
        "shell",
        "shell",
    ]


def test_a_model_call_of_codex_runs_from_its_first_attempt_to_the_end_of_its_answer():
    """Attempts lie below it, a refused one is followed by a wait; text is a number here."""
    (turn,) = assemble(
        [],
        events=[
            codex("user_prompt", 5),
            codex("api_request", 60, duration_ms="50", http__response__status_code="500", success="false"),
            codex("api_request", 120, duration_ms="20", http__response__status_code="200", success="true"),
            codex("sse_event", 130, event__kind="response.created", duration_ms=1),
            completed(400),
        ],
    )
    assert spans_of(turn) == [
        ("generation", 10, 400),
        ("provider_connect", 10, 60),
        ("retry_wait", 60, 100),
        ("provider_connect", 100, 120),
    ]
    assert turn.counters == {"model_requests": 1, "tool_calls": 0, "retry_count": 1}
    assert tokens_of(turn) == (100, 10)


def test_a_call_that_was_never_answered_has_failed():
    """Its last attempt was refused, or the agent was stopped."""
    (turn,) = assemble([], events=[codex("api_request", 60, duration_ms=50, success="false")])
    assert [(one.phase, one.outcome) for one in turn.spans] == [
        ("generation", "error"),
        ("provider_connect", "error"),
    ]


def test_an_attempt_outside_every_call_stays_where_it_is():
    """The span of the call begins later than the events tell."""
    spans = [turn_of_codex("t", 0, 1000), sampling("a", 100, 200, parent="t")]
    (turn,) = assemble(spans, events=[codex("api_request", 60, duration_ms=50), completed(210)])
    assert spans_of(turn) == [("provider_connect", 10, 60), ("generation", 100, 200)]
    assert assemble([], events=[codex("api_request", 60, duration_ms="no")]) == []


def test_an_end_without_a_start_only_fills():
    """How long the call took is unknown, so that it makes no span."""
    (turn,) = assemble([sampling("a", 0, 100)], events=[completed(120)])
    assert spans_of(turn) == [("generation", 0, 100)]
    assert tokens_of(turn) == (100, 10)
    assert assemble([], events=[completed(120)]) == []
    assert assemble([turn_of_codex("t", 0, 9)], events=[completed(500)])[0].spans == ()


def test_plumbing_that_tells_tokens_fills_the_call_it_lies_in():
    """Codex says what a call consumed on a span beside it."""
    told = {"gen_ai.usage.input_tokens": "50", "gen_ai.usage.output_tokens": "5"}
    report = raw("r", 95, 101, scope="codex_exec", name="handle_responses", attributes=told)
    (turn,) = assemble([turn_of_codex("t", 0, 200), sampling("a", 0, 100, parent="t"), report])
    assert (len(turn.spans), tokens_of(turn), turn.warnings) == (1, (50, 5), ())


def test_an_approval_is_a_wait_inside_its_tool():
    """From the start of the tool to the decision, when a person made it."""
    spans = [
        turn_of_codex("t", 0, 1000),
        sampling("a", 0, 100, parent="t"),
        dispatch("b", 110, 900, "c1", parent="t"),
    ]
    asked = codex("tool_decision", 600, source="User", decision="approved", call_id="c1")
    (turn,) = assemble(spans, events=[asked])
    assert ("permission_wait", 110, 600) in spans_of(turn)
    (wait,) = [one for one in turn.spans if one.phase == "permission_wait"]
    assert wait.parent_id == "b"
    by_rule = codex("tool_decision", 600, source="Config", decision="approved", call_id="c1")
    assert len(assemble(spans, events=[by_rule])[0].spans) == 2


def test_approvals_without_a_tools_span_begin_where_the_call_ended():
    """The second is asked for when the first is decided; before any call there is none."""
    events = [
        claude("tool_decision", 5, source="user_reject", tool_use_id="c0"),
        claude("api_request", 500, duration_ms=300, output_tokens=3),
        claude("tool_decision", 900, source="user_temporary", tool_use_id="c1"),
        claude("tool_decision", 1000, source="user_temporary"),
        claude("tool_result", 1300, duration_ms=300, tool_name="Bash", tool_use_id="c1"),
    ]
    (turn,) = assemble([], events=events)
    assert spans_of(turn) == [
        ("generation", 200, 500),
        ("permission_wait", 500, 900),
        ("permission_wait", 900, 1000),
        ("tool_execution", 1000, 1300),
    ]


def test_a_wait_that_a_span_tells_is_not_told_again():
    """Claude Code has a span for it in newer versions."""
    scope = "com.anthropic.claude_code.tracing"
    spans = [
        raw("t", 0, 2000, scope=scope, attributes={"span.type": "interaction"}),
        raw("g", 0, 500, scope=scope, attributes={"span.type": "llm_request", "session.id": "s"}, parent="t"),
        raw("w", 505, 900, scope=scope, attributes={"span.type": "tool.blocked_on_user"}, parent="t"),
    ]
    (turn,) = assemble(spans, events=[claude("tool_decision", 902, source="user_temporary")])
    assert spans_of(turn) == [("generation", 0, 500), ("permission_wait", 505, 900)]


def test_an_event_hangs_where_it_was_written():
    """Below the span it names, if that one came."""
    turn_span = turn_of_codex("t", 0, 1000)
    sent = {"duration_ms": 100, "tool_name": "shell", "trace_id": "t1"}
    (turn,) = assemble([turn_span], events=[codex("tool_result", 500, span_id="t", **sent)])
    assert [one.parent_id for one in turn.spans] == ["t"]
    assert [one.parent_source for one in turn.spans] == ["otel"]
    (turn,) = assemble([turn_span], events=[codex("tool_result", 500, span_id="gone", **sent)])
    assert [one.parent_source for one in turn.spans] == ["inferred"]


@pytest.mark.parametrize("duration", [None, "soon", -1, True, float("nan"), 10**30, [3]])
def test_a_duration_that_is_none_makes_no_span(duration):
    """Odd values are not believed; they never raise."""
    events = [claude("tool_result", 1300, duration_ms=duration, tool_name="Bash")]
    found = assemble([], events=events)
    assert found == [] or spans_of(found[0]) == [("tool_execution", 1299, 1300)]


def test_events_that_no_row_knows_say_nothing():
    """A file may hold any log."""
    assert assemble([], events=[event(CLAUDE, "other", 5, duration_ms=3)]) == []
    assert assemble([], events=[claude("user_prompt", 5)]) == []


def test_the_name_of_an_event_is_where_each_agent_puts_it():
    """An attribute, a field, or the text of the record; an unknown text is not kept."""
    assert event_name(CLAUDE, "tool_result", None) == "claude_code.tool_result"
    assert event_name("x", "", "claude_code.tool_result") == "claude_code.tool_result"
    assert event_name("x", "codex.sse_event", "any text") == "codex.sse_event"
    assert event_name("x", "", "a prompt") is None
    assert event_name("x", "", 5) is None


def test_every_event_that_becomes_a_span_has_a_phase_of_its_dialect():
    """The table of events and that of dialects say the same."""
    from turntrace.core.dialects import classify

    scopes = {"claude_code": CLAUDE, "codex": CODEX, "gemini_cli": GEMINI}
    for row in (row for rows in EVENTS.values() for row in rows if row.phase):
        verdict = classify(scopes[row.dialect], row.name, "internal", {})
        assert (verdict.dialect, verdict.phase) == (row.dialect, row.phase)
