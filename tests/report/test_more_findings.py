"""Findings of caches, repeats, storms, approvals and gaps: with evidence only, and never worth more than the path."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recorded_cases import PATHS, cases_of
from report.random_turns import turns
from report.turns import MS, example, hostile, span, turn
from turntrace.core.model import Event, Usage
from turntrace.report.case import examine
from turntrace.report.findings import find, observe
from turntrace.report.path_parts import held_by, length_ns
from turntrace.report.rounding import SECONDS
from turntrace.report.strings import plain


def found(record, ask=find):
    """The findings as code: (message, ms)."""
    return {one.code: (plain(one.message), one.saves_ns / MS) for one in ask(examine(record), SECONDS)}


def generation(number, first_ms, cached, start, *, tokens=10_000, length=1000, **more):
    """A model call of a round and what it consumed; the first token comes after ``first_ms``."""
    attributes = {} if first_ms is None else {"turntrace.first_token_ms": first_ms}
    made = span(
        f"g{number}", "generation", start, start + length, round=number, attributes=attributes, **more
    )
    return made, Usage(span_id=f"g{number}", input_tokens=tokens, cached_input_tokens=cached, output_tokens=1)


def calls(*made, events=(), wall=4000):
    """A turn of these calls."""
    return turn([one for one, _ in made], wall, usage=tuple(usage for _, usage in made), events=tuple(events))


def prefix(reason):
    """A prefix_hash line."""
    return Event(type="prefix_hash", fields={"invalidation_reason": reason})


WARM = [generation(2, 300, 9000, 1000), generation(3, 310, 9000, 2000), generation(4, 320, 9000, 3000)]


def test_a_cold_first_request_is_worth_what_its_first_token_came_later():
    """Against the median of the warm ones."""
    record = calls(generation(1, 900, 0, 0), *WARM)
    assert found(record)["cold_cache"] == (
        "the first request had 0 % of 10,000 tokens cached, 3 others most",
        590,
    )


def test_a_later_request_that_is_cold_names_what_changed():
    """By the salted hashes stamped with each request; without a hash for each, nothing is said to have changed."""
    cold = generation(4, 800, 100, 3000)
    events = [prefix("initial"), prefix("unchanged"), prefix("unchanged"), prefix("tools,schema")]
    first = generation(1, 300, 9000, 0)
    message, saves = found(calls(first, *WARM[:2], cold, events=events))["cache_break"]
    assert (
        message
        == "the request of round 4 had 1 % of 10,000 tokens cached, 3 others most; changed: tools, schema"
    )
    assert saves == 500
    assert "changed" not in found(calls(first, *WARM[:2], cold, events=events[1:]))["cache_break"][0]
    quiet = [prefix("unchanged")] * 4
    assert "changed" not in found(calls(first, *WARM[:2], cold, events=quiet))["cache_break"][0]


def test_no_cache_is_blamed_without_evidence():
    """No warm request, no first token, few tokens, unknown cached tokens, an earlier first token: no finding."""
    for first in (
        generation(1, None, 0, 0),
        generation(1, 900, 0, 0, tokens=1000),
        generation(1, 900, None, 0),
        generation(1, 200, 0, 0),
        generation(1, 900, 4000, 0),
    ):
        assert found(calls(first, *WARM)) == {}
    assert found(calls(generation(1, 900, 0, 0), generation(2, 300, 0, 1000), wall=2000)) == {}
    missing = dataclasses.replace(generation(1, 900, 0, 0)[1], provenance="missing")
    assert found(calls((generation(1, 900, 0, 0)[0], missing), *WARM)) == {}


def test_a_cold_call_that_the_turn_did_not_wait_for_saves_nothing():
    """Beside a longer tool its first token is off the critical path."""
    record = calls(generation(1, 900, 0, 0, length=900), *WARM)
    beside = span("t", "tool_execution", 0, 1000, tool="x")
    assert "cold_cache" not in found(dataclasses.replace(record, spans=(*record.spans, beside)))


def test_the_first_chunk_stands_in_for_the_first_token():
    """Where only the conventions' attribute is there, in seconds; a call without a round is a later request."""
    one, usage = generation(1, None, 0, 0)
    attributes = {"gen_ai.response.time_to_first_chunk": 0.9}
    record = calls((dataclasses.replace(one, attributes=attributes), usage), *WARM)
    assert found(record)["cold_cache"][1] == 590
    late, usage = generation(5, 900, 0, 4000)
    first = generation(1, 300, 9000, 0)
    record = calls(first, WARM[0], (dataclasses.replace(late, round=None), usage), wall=5000)
    assert found(record)["cache_break"][0].startswith("a later request had 0 %")
    assert "1 others" not in found(calls(generation(1, 900, 0, 0), WARM[0], wall=2000))["cold_cache"][0]


def tool_call(span_id, start, end, stamped="h1", *, tool="search", **more):
    """A tool call with a hash of its name and arguments."""
    attributes = {"turntrace.call_hash": stamped} if stamped else {}
    return span(span_id, "tool_execution", start, end, tool=tool, attributes=attributes, **more)


def test_the_same_call_again_is_worth_the_repeats():
    """All but the first; other arguments, other tools and failed calls are no repeats."""
    record = turn(
        [
            tool_call("a", 0, 100),
            tool_call("b", 100, 250),
            tool_call("c", 250, 300, "h2"),
            tool_call("d", 300, 400, tool="fetch"),
            tool_call("e", 400, 450, None),
            tool_call("f", 450, 500, outcome="error"),
            tool_call("g", 500, 530),
        ],
        530,
    )
    message, saves = found(record)["repeated_call"]
    assert (message, saves) == ("2 calls with arguments that the same turn had called it with before", 180)
    alone = turn([tool_call("a", 0, 100), tool_call("b", 100, 150)], 150)
    assert found(alone)["repeated_call"][0].startswith("1 call with")
    hidden = turn([tool_call("a", 0, 100), tool_call("b", 10, 50), span("p", "plan", 0, 100)], 100)
    assert "repeated_call" not in found(hidden)


def test_three_waits_in_one_call_are_a_storm():
    """By the call they lie in, else by their round; spread over rounds they are not."""

    def waits(parent, rounds):
        call = span("g", "generation", 0, 1000, round=1)
        made = [span(f"w{n}", "retry_wait", n * 100, n * 100 + 50, parent, round=rounds[n]) for n in range(3)]
        return found(turn([call, *made] if parent == "g" else made, 1000))

    assert waits("g", [1, 1, 1])["retry_storm"][0].startswith("3 waits in round 1, 3 of them in one call")
    assert "retry_storm" in waits("root", [2, 2, 2])
    assert "retry" in waits("root", [1, 2, 3])
    assert "retry" in waits("root", [None, None, None])


def test_a_turn_that_mostly_waited_for_approvals_is_told_so():
    """From a quarter of the wall on, beside what is the agent's own to change."""
    asked = turn([span("p", "permission_wait", 0, 300), span("q", "permission_wait", 400, 500)], 1000)
    message, saves = found(asked, observe)["approval_bound"]
    assert message == "2 approvals held the turn for 40.0 % of its wall; ask for less, or for several at once"
    assert saves == 400
    assert found(asked) == {}
    assert "approval_bound" not in found(turn([span("p", "permission_wait", 0, 200)], 1000), observe)


def test_time_that_nothing_accounts_for_is_told():
    """From a twentieth of the wall on; structure around it does not hide it, a phase beside it is no gap."""
    record = turn([span("n", None, 0, 1000, name="node"), span("a", "plan", 0, 500, "n")], 1000)
    [gap] = observe(examine(record), SECONDS)
    assert (gap.code, gap.saves_ns, gap.span_ids) == ("gap", 500 * MS, ("n",))
    assert plain(gap.message) == "no phase covers one stretch, the longest 0.500 s; give it a phase"
    assert found(turn([span("a", "plan", 0, 960)], 1000), observe) == {}
    assert found(dataclasses.replace(record, completed_ns=None), observe) == {}


def test_the_example_has_nothing_more():
    """An approval of a seventh of the wall and 0.7 % unattributed are no findings."""
    assert found(example(), observe) == {}


def assert_within_the_path(case):
    """No finding is worth more than the critical path holds in the spans it names."""
    for finding in (*find(case, SECONDS), *observe(case, SECONDS)):
        assert finding.saves_ns > 0
        held = held_by(case, finding.span_ids)
        below = sum(length_ns(sections) for sections in held.values())
        root_ns = case.attribution.root_critical_ns if finding.code == "gap" else 0
        assert finding.saves_ns <= below + root_ns
        assert finding.saves_ns <= case.attribution.wall_ns


@st.composite
def stamped(draw):
    """Random turns whose calls say what findings are made of."""
    record = draw(turns())
    spans = []
    usage = []
    for one in record.spans:
        attributes = {}
        if one.phase == "tool_execution":
            attributes["turntrace.call_hash"] = draw(st.sampled_from(["h1", "h2"]))
        if one.phase == "generation":
            attributes["turntrace.first_token_ms"] = draw(st.integers(0, 5000))
            cached = draw(st.sampled_from([0, 900, 9000]))
            usage.append(Usage(span_id=one.span_id, input_tokens=10_000, cached_input_tokens=cached))
        spans.append(dataclasses.replace(one, attributes=attributes))
    return dataclasses.replace(record, spans=tuple(spans), usage=tuple(usage))


@settings(max_examples=300, deadline=None)
@given(stamped())
def test_savings_never_exceed_what_the_critical_path_holds(record):
    """For random forests with every kind of evidence."""
    assert_within_the_path(examine(record))


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_savings_in_recorded_turns(path):
    """For whatever real frameworks recorded."""
    for case in cases_of(path):
        assert_within_the_path(case)


def test_the_text_has_them_in_two_lists():
    """What is the agent's own first, then the person and the unknown; Markdown has both too."""
    from turntrace.report.markdown import markdown
    from turntrace.report.text import text
    from turntrace.report.view import turn_view

    record = turn([span("p", "permission_wait", 0, 300), span("w", "retry_wait", 300, 400)], 1000)
    shown = text(turn_view(examine(record)))
    assert shown.index("FIX FIRST") < shown.index(
        "ALSO WAITED FOR (on the critical path, not the agent's to speed up)"
    )
    assert "**Also waited for** (on the critical path" in markdown(turn_view(examine(record)))
    assert "\x1b" not in text(turn_view(examine(hostile())))


def test_a_ring_of_parents_holds_nothing_twice():
    """The walk up ends where parents form a ring."""
    record = turn([span("a", "plan", 0, 5, "b"), span("b", "plan", 5, 9, "a")], 10)
    held = held_by(examine(record), ["a"])
    assert length_ns(held["a"]) == 5 * MS
