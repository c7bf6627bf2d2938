"""Coding agents: what of their spans is kept, which roots are one turn, what only their counters tell."""

import pytest

from core.raws import MS, chat, raw
from turntrace.core.agent_plumbing import without_plumbing
from turntrace.core.dialects import Role, classify, describe
from turntrace.core.model import RawEvent, RawPoint
from turntrace.core.turns import assemble
from turntrace.core.usage import total

CLAUDE, CODEX, GEMINI, OPENCODE = "com.anthropic.claude_code.tracing", "codex_exec", "gemini-cli", "opencode"


def gemini(span_id, start_ms, end_ms, operation, *, session="s", tokens=None, **fields):
    """A span of Gemini CLI, each a root of its own trace."""
    attributes = {"gen_ai.operation.name": operation, "gen_ai.agent.name": "gemini-cli"}
    if session:
        attributes["gen_ai.conversation.id"] = session
    if tokens is not None:
        attributes |= {"gen_ai.usage.input_tokens": tokens[0], "gen_ai.usage.output_tokens": tokens[1]}
    fields = {"trace_id": f"t{span_id}", "scope": GEMINI, "name": operation, **fields}
    return raw(span_id, start_ms, end_ms, attributes=attributes, **fields)


def prompt(at_ms, *, session="s"):
    """What Gemini CLI logs of a prompt."""
    attributes = {"session.id": session}
    return RawEvent(name="gemini_cli.user_prompt", at_ns=at_ms * MS, scope=GEMINI, attributes=attributes)


def codex(span_id, start_ms, end_ms, name, **fields):
    """A span of codex."""
    return raw(span_id, start_ms, end_ms, name=name, scope=CODEX, **fields)


def windows(turns):
    """Start and end (ms) of the outer turns, the ids of their spans, and how each was found."""
    return [
        (one.started_ns // MS, one.completed_ns and one.completed_ns // MS, [span.span_id for span in one.spans], one.turn_source)
        for one in turns
        if one.parent_run_id is None
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("scope", "name", "attributes", "role", "phase"),
    [
        (CLAUDE, "claude_code.interaction", {"span.type": "interaction"}, Role.TURN, None),
        (CLAUDE, "x", {"span.type": "llm_request", "gen_ai.operation.name": "chat"}, Role.PHASE, "generation"),
        (CLAUDE, "x", {"span.type": "tool", "gen_ai.operation.name": "execute_tool"}, Role.STRUCTURE, None),
        (CLAUDE, "claude_code.hook", {"span.type": "hook"}, Role.STRUCTURE, None),
        (CODEX, "codex.sampling", {"codex.turn.phase": "sampling"}, Role.PHASE, "generation"),
        (CODEX, "codex.tool_blocking", {"codex.turn.phase": "tool_blocking"}, Role.STRUCTURE, None),
        ("codex_tui", "session_task.turn", {}, Role.TURN, None),
        (GEMINI, "schedule_tool_calls", {"gen_ai.operation.name": "schedule_tool_calls"}, Role.PHASE, "permission_wait"),
        (GEMINI, "agent_call", {"gen_ai.operation.name": "agent_call"}, Role.AGENT, None),
        (OPENCODE, "ai.streamText", {"ai.operationId": "ai.streamText"}, Role.STRUCTURE, None),
        (OPENCODE, "SessionPrompt.ensureTitle", {}, Role.AGENT, None),
        (OPENCODE, "Session.get", {}, Role.STRUCTURE, None),
        ("my.codex", "Session.get", {}, Role.LEAF, None),
    ],
)  # fmt: skip
def test_spans_are_known_by_what_each_agent_says(scope, name, attributes, role, phase):
    """What is not named is structure, in these scopes only."""
    verdict = classify(scope, name, "internal", attributes)
    assert (verdict.role, verdict.phase) == (role, phase)


def test_a_turn_that_names_no_agent_is_called_after_its_program():
    """Its own name is that of a function."""
    verdict = classify(CODEX, "session_task.turn", "internal", {})
    assert describe(verdict, "session_task.turn", {}).agent == "codex"


def test_plumbing_goes_and_what_hung_on_it_hangs_above():
    """Chains, roots, rings, and parents that are not here."""
    spans = [
        codex("t", 0, 100, "session_task.turn", parent="p1"),
        codex("p1", 0, 100, "session_loop", parent="far"),
        codex("p2", 1, 90, "run_turn", parent="t"),
        codex("p3", 1, 90, "try_run", parent="p2"),
        codex("a", 2, 50, "codex.sampling", parent="p3", attributes={"codex.turn.phase": "sampling"}),
        codex("b", 3, 4, "codex.sampling", parent="p3", attributes={"codex.turn.phase": "sampling"}),
        codex("r1", 5, 6, "x", parent="r2"),
        codex("r2", 5, 6, "x", parent="r1"),
        codex("c", 7, 8, "codex.sampling", parent="r1", attributes={"codex.turn.phase": "sampling"}),
        codex("d", 7, 8, "codex.tool_result", parent="other"),
    ]
    found = {span.span_id: span.parent_id for span in without_plumbing(spans)}
    assert found == {"t": "far", "a": "t", "b": "t", "c": None, "d": "other"}
    plain = [chat("a", 0, 1)]
    assert without_plumbing(plain) == plain


def test_what_opencode_does_for_a_tool_hangs_below_the_tools_call():
    """It is made where tools were listed; by the id of the call it is found again."""
    spans = [
        raw("r", 0, 900, scope=OPENCODE, name="SessionPrompt.prompt"),
        raw("l", 10, 20, scope=OPENCODE, name="SessionTools.resolve", parent="r"),
        raw("x", 100, 800, scope=OPENCODE, name="Tool.execute", parent="l", attributes={"tool.call_id": "c"}),
        raw("q", 150, 300, scope=OPENCODE, name="Permission.ask", parent="x"),
        raw("y", 810, 820, scope=OPENCODE, name="Tool.execute", parent="l", attributes={"tool.call_id": "e"}),
        raw("z", 810, 820, scope=OPENCODE, name="Tool.execute", parent="l"),
        raw("k", 95, 805, scope=OPENCODE, name="ai.toolCall", parent="r", attributes={"ai.toolCall.id": "c", "ai.toolCall.name": "bash"}),
    ]  # fmt: skip
    (turn,) = assemble(spans)
    assert {one.span_id: (one.phase, one.parent_id) for one in turn.spans} == {
        "l": ("tool_partition", "r"),
        "k": ("tool_execution", "r"),
        "q": ("permission_wait", "k"),
    }


def test_a_tool_of_claude_has_the_name_of_what_lies_around_it():
    """The span of the execution does not name it, and a wait is no part of it."""
    spans = [
        raw("t", 0, 900, scope=CLAUDE, attributes={"span.type": "interaction"}, parent="far"),
        raw(
            "w",
            10,
            800,
            scope=CLAUDE,
            attributes={"span.type": "tool", "gen_ai.tool.name": "Bash"},
            parent="t",
        ),
        raw("e", 300, 790, scope=CLAUDE, attributes={"span.type": "tool.execution"}, parent="w"),
        raw("o", 800, 810, scope=CLAUDE, attributes={"span.type": "tool.execution"}, parent="t"),
    ]
    (turn,) = assemble(spans)
    assert {one.span_id: one.tool for one in turn.spans if one.phase == "tool_execution"} == {
        "e": "Bash",
        "o": None,
    }
    assert turn.status == "ok"


def test_the_roots_of_one_session_are_one_turn():
    """Model calls and tools that are roots of traces of their own, from the prompt to the last end."""
    spans = [
        gemini("a", 100, 300, "llm_call", tokens=(10, 2)),
        gemini("b", 301, 500, "schedule_tool_calls"),
        gemini("c", 310, 490, "tool_call", parent="b", trace_id="tb"),
        gemini("d", 510, 700, "llm_call", tokens=(20, 3)),
    ]
    (turn,) = assemble(spans, events=[prompt(90)])
    assert windows([turn]) == [(90, 700, ["a", "b", "c", "d"], "dialect")]
    assert (turn.agent, turn.counters["model_requests"], turn.rounds) == ("gemini-cli", 2, 2)
    assert windows(assemble(spans)) == [(100, 700, ["a", "b", "c", "d"], "dialect")]


def test_each_prompt_of_a_session_begins_a_turn():
    """Sessions at the same time stay apart; what came before the first prompt belongs to it."""
    spans = [
        gemini("a", 100, 300, "llm_call"),
        gemini("b", 1100, 1300, "llm_call"),
        gemini("o", 150, 350, "llm_call", session="other"),
    ]
    events = [prompt(110), prompt(1000), prompt(1500)]
    assert windows(assemble(spans, events=events)) == [
        (100, 300, ["a"], "dialect"),
        (150, 350, ["o"], "dialect"),
        (1000, 1300, ["b"], "dialect"),
    ]


def test_a_root_without_a_session_is_of_the_only_one():
    """Of two sessions nobody knows which."""
    spans = [gemini("a", 100, 300, "llm_call"), gemini("b", 400, 500, "tool_call", session="")]
    assert len(windows(assemble(spans))) == 1
    spans.append(gemini("c", 600, 700, "llm_call", session="other"))
    assert len(windows(assemble(spans))) == 3


def test_what_lies_in_a_turn_of_its_process_is_part_of_it():
    """A stray root beside a turn that has one; not that of another process, not one that reaches out."""
    home = {"service.name": "codex"}
    turn = codex("t", 0, 1000, "session_task.turn", resource=home)
    stray = codex(
        "g",
        10,
        20,
        "codex.sampling",
        attributes={"codex.turn.phase": "sampling"},
        trace_id="t2",
        resource=home,
    )
    assert windows(assemble([turn, stray])) == [(0, 1000, ["g"], "dialect")]
    far = codex("g", 10, 20, "codex.sampling", attributes={"codex.turn.phase": "sampling"}, trace_id="t2")
    late = codex(
        "g",
        990,
        1020,
        "codex.sampling",
        attributes={"codex.turn.phase": "sampling"},
        trace_id="t2",
        resource=home,
    )
    assert [len(windows(assemble([turn, other]))) for other in (far, late)] == [2, 2]
    assert windows(assemble([turn, far], whole_run=True)) == [(0, 1000, ["g"], "dialect")]


def test_a_turn_without_an_end_takes_nothing_in():
    """Nobody knows what it contains."""
    turn = codex("t", 100, 50, "session_task.turn")
    stray = codex("g", 10, 20, "codex.sampling", attributes={"codex.turn.phase": "sampling"}, trace_id="t2")
    assert [(one.completed_ns, len(one.spans)) for one in assemble([turn, stray])] == [
        (20 * MS, 1),
        (None, 0),
    ]


def test_a_root_that_is_structure_is_a_span_of_the_joined_turn():
    """It lies around its phases."""
    spans = [
        raw(
            "w",
            0,
            100,
            scope=CLAUDE,
            attributes={"span.type": "tool", "session.id": "s", "tool_name": "Bash"},
        ),
        raw("e", 10, 90, scope=CLAUDE, attributes={"span.type": "tool.execution"}, parent="w"),
        raw(
            "g",
            200,
            300,
            scope=CLAUDE,
            attributes={"span.type": "llm_request", "session.id": "s"},
            trace_id="t2",
        ),
    ]
    (turn,) = assemble(spans)
    assert windows([turn]) == [(0, 300, ["w", "e", "g"], "dialect")]
    assert turn.agent == "claude"


def test_a_turn_whose_root_never_came_is_interrupted_and_one():
    """The agent was killed: several traces with no end."""
    spans = [
        raw("a", 0, 90, scope=OPENCODE, name="ai.toolCall", attributes={"session.id": "s"}, parent="gone"),
        raw("b", 100, 190, scope=OPENCODE, name="ai.toolCall", attributes={"session.id": "s"}, parent="lost", trace_id="t2"),
    ]  # fmt: skip
    (turn,) = assemble(spans)
    assert (turn.status, turn.completed_ns, len(turn.spans)) == ("interrupted", None, 2)


def test_whole_runs_join_the_roots_of_any_agent():
    """Three model calls that are roots: one turn of a run, three of a file."""
    spans = [chat(name, at, at + 50, trace_id=f"t{name}") for name, at in (("a", 0), ("b", 100), ("c", 200))]
    assert len(assemble(spans)) == 3
    (turn,) = assemble(spans, whole_run=True)
    assert windows([turn]) == [(0, 250, ["a", "b", "c"], "run")]
    assert turn.agent is None
    assert len(assemble(spans, whole_run=True, rule=lambda span: True)) == 3


def point(name, part, value, at_ms, *, start_ms=0, is_delta=False, session="s", **attributes):
    """A point of a counter."""
    return RawPoint(
        name=name,
        value=value,
        start_ns=start_ms * MS,
        at_ns=at_ms * MS,
        is_delta=is_delta,
        attributes={"type": part, "session.id": session, **attributes},
    )


def used(turn):
    """The tokens of a turn."""
    return total(turn.usage, turn.counters["model_requests"])


TWO = [gemini("a", 100, 300, "llm_call", tokens=(10, 2)), gemini("b", 400, 500, "llm_call")]


def test_a_counter_tells_what_the_one_silent_call_consumed():
    """The latest point of a sum counts, less what the others reported; thoughts are output."""
    points = [
        point("gemini_cli.token.usage", "input", 10, 350),
        point("gemini_cli.token.usage", "input", 45, 600),
        point("gemini_cli.token.usage", "output", 7, 600),
        point("gemini_cli.token.usage", "thought", 1, 600),
        point("gemini_cli.token.usage", "tool", 9, 600),
        point("gen_ai.client.token.usage", "input", 99, 600),
        point("gemini_cli.token.usage", "input", 5, 600, session="other"),
    ]
    (turn,) = assemble(TWO, points=points)
    assert (used(turn).input_tokens, used(turn).output_tokens, turn.warnings) == (45, 8, ())


def test_deltas_add_up_and_models_have_series_of_their_own():
    """Claude Code counts the cache apart from the input."""
    call = raw("a", 0, 100, scope=CLAUDE, attributes={"span.type": "llm_request", "session.id": "s"})
    name = "claude_code.token.usage"
    points = [
        point(name, "input", 3, 50, is_delta=True, model="m"),
        point(name, "input", 4, 90, start_ms=50, is_delta=True, model="m"),
        point(name, "cacheRead", 100, 90, is_delta=True, model="m"),
        point(name, "input", 1, 90, is_delta=True, model="n"),
        point(name, "output", 5, 90, is_delta=True),
    ]
    (turn,) = assemble([call], points=points)
    assert (used(turn).input_tokens, used(turn).cached_input_tokens, used(turn).output_tokens) == (
        108,
        100,
        5,
    )


def test_a_counter_that_cannot_be_fills_nothing():
    """Less than was reported, or half of it: what is unknown stays so."""
    for points in (
        [point("gemini_cli.token.usage", "input", 9, 600), point("gemini_cli.token.usage", "output", 9, 600)],
        [point("gemini_cli.token.usage", "input", 99, 600)],
    ):
        (turn,) = assemble(TWO, points=points)
        assert used(turn).input_tokens is None
    silent = [gemini("a", 100, 300, "llm_call"), gemini("b", 400, 500, "llm_call")]
    (turn,) = assemble(silent, points=[point("gemini_cli.token.usage", "input", 9, 600)])
    assert [one.code for one in turn.warnings] == ["counted_by_session"]
    told = [gemini("a", 100, 300, "llm_call", tokens=(10, 2))]
    assert assemble(told, points=[point("gemini_cli.token.usage", "input", 10, 600)]) == assemble(told)


def test_r52_running_totals_of_a_session_are_no_turns_tokens():
    """A counter that tells 6,000, 14,000, 26,000 so far leaves 12,000 for the third turn, and 26,000 for all."""
    spans = [
        gemini("a", 100, 300, "llm_call", tokens=(6000, 100)),
        gemini("b", 1100, 1300, "llm_call", tokens=(8000, 150)),
        gemini("c", 2100, 2300, "llm_call"),
    ]
    totals = [(350, 6000, 100), (1350, 14000, 250), (2350, 26000, 400)]
    points = [
        point("gemini_cli.token.usage", part, value, at_ms)
        for at_ms, tokens_in, tokens_out in totals
        for part, value in (("input", tokens_in), ("output", tokens_out))
    ]
    turns = assemble(spans, events=[prompt(90), prompt(1000), prompt(2000)], points=points)
    assert [(used(turn).input_tokens, used(turn).output_tokens) for turn in turns] == [
        (6000, 100),
        (8000, 150),
        (12000, 150),
    ]
