"""Calls: one model call and one tool call count once, however many spans show them."""

import pytest

from turntrace.core.calls import Generation, ToolSpan, count_tools, fold
from turntrace.core.model import Usage


def generation(row, start, end, *, above=None, tokens=None, by="a", last=None, **fields):
    usage = (
        None if tokens is None else Usage(span_id=str(row), input_tokens=tokens[0], output_tokens=tokens[1])
    )
    fields = {"model": "m", "usage": usage, **fields}
    return Generation(
        row=row,
        last=row if last is None else last,
        above=above,
        start_ns=start,
        end_ns=end,
        instrumentation=by,
        **fields,
    )


def test_nested_generations_are_one_call():
    """A generation in a generation is the same call: the outermost stays, the richest tells the tokens."""
    rich = Usage(span_id="1", input_tokens=9, output_tokens=2, cached_input_tokens=4)
    found = fold(
        [
            generation(0, 0, 100, tokens=(9, 2), last=2),
            generation(1, 1, 99, above=0, usage=rich, by="b", last=2),
            generation(2, 2, 98, above=1, by="c"),
        ]
    )
    assert ((0,), {1: 0, 2: 0}, {0: rich}) == (found.rows, found.into, found.usages)
    assert found.retries is None


def test_the_inner_usage_wins_between_equals():
    """Of two reports that say as much the one nearer to the wire counts: OpenLLMetry adds up what a stream repeats."""
    found = fold([generation(0, 0, 9, tokens=(9, 2), last=1), generation(1, 1, 8, above=0, tokens=(8, 2))])
    assert found.usages[0].input_tokens == 8


def test_several_answers_inside_make_a_wrapper():
    """A generation around two calls with tokens of their own is no call, and its sum is not added."""
    found = fold(
        [
            generation(0, 0, 100, tokens=(113, 11), last=2),
            generation(1, 1, 40, above=0, tokens=(56, 5)),
            generation(2, 50, 90, above=0, tokens=(57, 6)),
        ]
    )
    assert ((1, 2), {0}, {}) == (found.rows, found.wrappers, found.into)
    assert [found.usages[row].input_tokens for row in found.rows] == [56, 57]


def test_a_wrapper_around_a_wrapper():
    """What lies around a wrapper is a wrapper too."""
    found = fold(
        [
            generation(0, 0, 100, last=3),
            generation(1, 0, 100, above=0, last=3),
            generation(2, 1, 40, above=1, tokens=(56, 5)),
            generation(3, 50, 90, above=1, tokens=(57, 6)),
        ]
    )
    assert ((2, 3), {0, 1}) == (found.rows, found.wrappers)


def test_one_answer_seen_twice_inside():
    """Two spans inside with one response id are one answer."""
    found = fold(
        [
            generation(0, 0, 100, last=2),
            generation(1, 1, 90, above=0, tokens=(5, 1), response_id="r"),
            generation(2, 2, 80, above=0, tokens=(5, 1), response_id="r"),
        ]
    )
    assert ((0,), set()) == (found.rows, found.wrappers)
    assert found.usages[0].input_tokens == 5


def test_retries_are_told_by_any_span():
    """Retries: what a span says, the attempts below it less one, or the tries inside it less one."""
    assert fold([generation(0, 0, 9, last=1), generation(1, 0, 9, above=0, resends=2)]).retries == 2
    assert fold([generation(0, 0, 9, attempts=3)]).retries == 2
    assert fold([generation(0, 0, 9, attempts=1)]).retries == 0
    assert (
        fold(
            [
                generation(0, 0, 9, last=2),
                generation(1, 0, 3, above=0),
                generation(2, 4, 9, above=0, tokens=(1, 1)),
            ]
        ).retries
        == 1
    )
    assert fold([generation(0, 0, 9, resends=2), generation(1, 20, 29, resends=1)]).retries == 3


def test_side_by_side_with_equal_tokens():
    """A span of another instrumentation with the same tokens inside the call is the call again."""
    found = fold([generation(0, 0, 100, tokens=(5, 1)), generation(1, 60, 100, tokens=(5, 1), by="b")])
    assert (found.rows, found.into) == ((0,), {1: 0})


def test_side_by_side_by_time():
    """Without tokens on one side the same model and nine tenths of overlap are needed."""
    inside = generation(1, 5, 98, by="b")
    assert fold([generation(0, 0, 100, tokens=(5, 1)), inside]).rows == (0,)
    assert fold([generation(0, 0, 100), inside]).rows == (0,)
    assert fold([generation(0, 0, 100), generation(1, 11, 100, by="b")]).rows == (0, 1)
    assert fold([generation(0, 0, 100), generation(1, 100, 200, by="b")]).rows == (0, 1)


@pytest.mark.parametrize(
    "other",
    [
        {"by": "a"},
        {"model": "other"},
        {"tokens": (6, 1)},
        {"response_id": "r2"},
    ],
)
def test_told_apart(other):
    """One instrumentation, or another model, response or count: two calls."""
    found = fold(
        [
            generation(0, 0, 100, tokens=(5, 1), response_id="r1"),
            generation(1, 1, 99, **{"tokens": (5, 1), "by": "b", **other}),
        ]
    )
    assert found.rows == (0, 1)


def test_models_with_and_without_provider():
    """A model is the same with its provider in front."""
    found = fold([generation(0, 0, 100, model="openai/m"), generation(1, 1, 99, by="b", model="m")])
    assert found.rows == (0,)


def test_parallel_calls_pair_off():
    """Calls in parallel that look alike pair off one by one; none takes two of one instrumentation."""
    spans = [generation(row, row, 100 + row, tokens=(5, 1), by="ab"[row % 2]) for row in range(6)]
    found = fold(spans)
    assert len(found.rows) == 3
    assert len(set(found.into.values())) == 3


def test_one_call_has_one_span_of_an_instrumentation():
    """A second span of an instrumentation that has seen the call already is another call."""
    spans = [generation(row, row, 100 - row, tokens=(5, 1), by=by) for row, by in enumerate("abb")]
    found = fold(spans)
    assert (found.rows, found.into) == ((0, 2), {1: 0})


def test_three_instrumentations_side_by_side():
    """A third instrumentation of the same call folds into it as well."""
    spans = [
        generation(row, row, 100 - row, tokens=(5, 1), by=by, resends=row) for row, by in enumerate("abc")
    ]
    found = fold(spans)
    assert (found.rows, found.into, found.retries) == ((0,), {1: 0, 2: 0}, 2)


def test_a_tool_between_makes_two_calls():
    """A call in the tree of another with a tool between is a call of its own, however alike."""
    found = fold([generation(0, 0, 100, last=2), generation(2, 1, 99, by="b")])
    assert found.rows == (0, 2)


def test_a_child_that_starts_before_its_parent_is_not_folded_over_it():
    """Clocks that differ do not turn a tree upside down."""
    found = fold([generation(0, 2, 100, last=2), generation(2, 0, 99, by="b")])
    assert found.rows == (0, 2)


def test_folding_in_two_steps_leads_to_the_end():
    """A nested span of a span that folds sideways leads to the call that stays."""
    found = fold(
        [
            generation(0, 0, 100, tokens=(5, 1)),
            generation(1, 1, 99, tokens=(5, 1), by="b", last=2),
            generation(2, 2, 98, above=1, by="c"),
        ]
    )
    assert found.into == {1: 0, 2: 0}


def refused(row, start, end, **fields):
    return generation(row, start, end, **{"is_refused": True, "request": 7, "parent": 9, **fields})


def test_tries_one_after_another():
    """A refused try and the same request again are one call with a retry; the last try stands for it."""
    answered = generation(2, 20, 30, tokens=(5, 1), request=7, parent=9)
    found = fold([refused(0, 0, 5), refused(1, 10, 15), answered])
    assert (found.rows, found.retried, found.retries) == ((2,), {0: 2, 1: 2}, 2)


@pytest.mark.parametrize(
    "before",
    [
        refused(0, 0, 5, request=8),
        refused(0, 0, 5, request=None),
        refused(0, 0, 25),
        refused(0, 0, 5, parent=8),
        refused(0, 0, 5, by="b"),
        refused(0, 0, 5, is_refused=False),
    ],
)
def test_tries_that_are_no_retry(before):
    """Another request, parent or instrumentation, an answered or a still running call: no retry."""
    answered = generation(2, 20, 30, tokens=(5, 1), request=7, parent=9)
    assert fold([before, answered]).rows == (0, 2)


@pytest.mark.slow
def test_long_chains():
    """A chain of 100,000 nested generations is one call, found without recursion."""
    size = 100_000
    spans = [
        generation(row, row, 2 * size - row, above=row - 1 if row else None, last=size - 1)
        for row in range(size)
    ]
    found = fold(spans)
    assert ((0,), size - 1) == (found.rows, len(found.into))
    assert {0} == set(found.into.values())


def tools(*spans):
    return count_tools([ToolSpan(row=row, above=above, tool=tool) for row, above, tool in spans])


def test_tool_calls():
    """A tool in itself counts once, a tool in another twice, a batch without a name not at all."""
    assert tools((0, None, "a"), (1, None, "a")) == 2
    assert tools((0, None, "a"), (1, 0, "a"), (2, 1, "a")) == 1
    assert tools((0, None, "a"), (1, 0, None)) == 1
    assert tools((0, None, "ask"), (1, 0, "search")) == 2
    assert tools((0, None, None), (1, 0, "a"), (2, 0, "a")) == 2
    assert tools((0, None, None)) == 1
    assert tools() == 0
