"""Fragments: spans of other processes join the turn they hang on, and no other."""

from dataclasses import replace

from turntrace.core.codec.fragments import merge_fragments
from turntrace.core.model import Mark, Span, Turn, Usage, Warn

TRACE_ID = "0" * 31 + "1"


def span(span_id: str, parent_id: str | None) -> Span:
    """A span of which only the ids matter."""
    return Span(span_id=span_id, parent_id=parent_id, name=span_id, phase="plan", start_ns=0, end_ns=1)


def fragment(*spans: Span, **fields) -> Turn:
    """What a process journaled of the trace."""
    return Turn(run_id="", trace_id=TRACE_ID, spans=spans, **fields)


TURN = Turn(run_id="r", trace_id=TRACE_ID, span_id="root", spans=(span("a", "root"),), counters={"x": 1})


def ids(turn: Turn) -> list[str]:
    """The ids of the spans of a turn."""
    return [found.span_id for found in turn.spans]


def test_spans_below_the_turn_join_it():
    """Ancestors may lie in the turn, in the root, or in another fragment, in any order."""
    deep, shallow = fragment(span("d", "c"), span("c", "b")), fragment(span("b", "a"), span("e", "root"))
    assert ids(merge_fragments(TURN, [deep, shallow])) == ["a", "d", "c", "b", "e"]


def test_other_spans_stay_away():
    """Spans that hang on nothing, on an unknown parent, on each other or in another trace do not join."""
    strangers = fragment(span("b", None), span("c", "nobody"), span("d", "e"), span("e", "d"))
    elsewhere = replace(fragment(span("f", "a")), trace_id="0" * 31 + "2")
    assert merge_fragments(TURN, [strangers, elsewhere]) == TURN
    assert ids(merge_fragments(replace(TURN, span_id=None), [fragment(span("b", None))])) == ["a"]


def test_spans_join_once():
    """A fragment that was joined before adds nothing."""
    part = fragment(span("b", "a"), counters={"x": 2}, usage=(Usage(span_id="b"),))
    once = merge_fragments(TURN, [part])
    assert once == merge_fragments(once, [part])


def test_facts_come_with_their_spans():
    """Usage and marks go by span; warnings come with any span."""
    part = fragment(
        span("b", "a"),
        span("z", "nobody"),
        usage=(Usage(span_id="b", input_tokens=1), Usage(span_id="z")),
        marks=(Mark(name="m", at_ns=1, span_id="b"), Mark(name="n", at_ns=1, span_id="z")),
        warnings=(Warn(code="w", message="w"),),
    )
    merged = merge_fragments(TURN, [part, fragment(span("y", "x"), warnings=(Warn(code="v", message="v"),))])
    assert (Usage(span_id="b", input_tokens=1),) == merged.usage
    assert [mark.name for mark in merged.marks] == ["m"]
    assert [warn.code for warn in merged.warnings] == ["w"]


def test_counters_are_added_once_they_are_the_turn_s():
    """Counts of a process that served only this turn are added; others are named and not guessed."""
    own = fragment(span("b", "a"), counters={"x": 2, "y": 3})
    shared = fragment(span("c", "a"), span("z", "nobody"), counters={"x": 100})
    merged = merge_fragments(TURN, [own, shared])
    assert merged.counters == {"x": 3, "y": 3}
    assert [warn.code for warn in merged.warnings] == ["fragment_counters"]


def test_a_span_that_was_open_in_the_block_ends_where_its_fragment_says():
    """A child process that outlives the turn tells the end later; a reader shows that, once."""
    ended = span("b", "a")
    still_open = replace(ended, end_ns=0, outcome="incomplete")
    block = merge_fragments(TURN, [fragment(still_open)])
    merged = merge_fragments(block, [fragment(ended)])
    assert [found for found in merged.spans if found.span_id == "b"] == [ended]
    assert merge_fragments(merged, [fragment(still_open)]) == merged


def timed(span_id: str, start_ns: int, end_ns: int, parent_id: str | None) -> Span:
    """A span of which the times matter too."""
    return replace(span(span_id, parent_id), start_ns=start_ns, end_ns=end_ns)


WINDOW = replace(
    TURN,
    started_ns=0,
    completed_ns=100,
    spans=(timed("a", 10, 90, "root"), timed("b", 20, 60, "a"), timed("c", 70, 80, "a")),
)


def test_a_span_whose_parent_nobody_knows_hangs_on_what_contains_it():
    """A server got the trace and not the span that called it; time tells which it was."""
    part = fragment(timed("x", 25, 50, "gone"), timed("y", 30, 40, "x"), timed("z", 5, 8, "gone"))
    merged = {
        one.span_id: (one.parent_id, one.parent_source) for one in merge_fragments(WINDOW, [part]).spans
    }
    assert merged["x"] == ("b", "inferred")
    assert merged["y"] == ("x", "otel")
    assert merged["z"] == ("root", "inferred")


def test_a_span_that_reaches_out_of_the_turn_is_no_part_of_it():
    """Nor is one beside a turn that has no window or no root."""
    part = fragment(timed("x", 50, 101, "gone"))
    assert merge_fragments(WINDOW, [part]) == WINDOW
    part = fragment(timed("x", 50, 60, "gone"))
    assert ids(merge_fragments(WINDOW, [part]))[-1] == "x"
    for unknown in ({"started_ns": None}, {"completed_ns": None}, {"span_id": None}):
        turn = replace(WINDOW, **unknown)
        assert merge_fragments(turn, [part]) == turn


def test_events_come_along_with_their_fragment():
    """What another process stamped stands in the turn, in the order of the processes."""
    from turntrace.core.model import Event

    one, other = (Event(type="prefix_hash", fields={"tools": text}) for text in ("a", "b"))
    turn = fragment(span("a", "root"), span_id="root", events=(one,))
    assert merge_fragments(turn, [fragment(span("b", "a"), events=(other,))]).events == (one, other)
    assert merge_fragments(turn, [fragment(events=(other,))]).events == (one,)
