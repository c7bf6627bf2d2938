"""Roots that are a model call another instrumentation saw too: which span they get below."""

from hypothesis import given
from hypothesis import strategies as st

from core.raws import agent, chat, raw
from turntrace.core.dialects import classify
from turntrace.core.reading import reading_of
from turntrace.core.root_calls import seen_twice
from turntrace.core.turns import assemble


def call(
    span_id, start, end, scope, parent=None, *, tokens=None, answer=None, model="m", trace=None, **fields
):
    """A generation span in a trace of its own unless it has a parent."""
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": model}
    if tokens is not None:
        attributes |= {"gen_ai.usage.input_tokens": tokens[0], "gen_ai.usage.output_tokens": tokens[1]}
    if answer is not None:
        attributes["gen_ai.response.id"] = answer
    return raw(
        span_id, start, end, parent=parent, trace_id=trace or f"t-{span_id}", scope=scope,
        attributes=attributes, **fields,
    )  # fmt: skip


def found(*spans):
    """Which root gets below which span, by id."""
    ordered = sorted(spans, key=lambda span: (span.start_ns, span.span_id))
    rows = {(span.trace_id, span.span_id): row for row, span in enumerate(ordered)}
    readings = [
        reading_of(span, classify(span.scope, span.name, span.kind, span.attributes)) for span in ordered
    ]
    parents = [rows.get((span.trace_id, span.parent_id), -1) for span in ordered]
    into = seen_twice(readings, parents)
    return {ordered[row].span_id: ordered[around].span_id for row, around in into.items()}


def test_one_answer_is_one_call():
    """Equal response ids make one call, whatever the tokens are counted to; others do not."""
    outer = call("a", 0, 100, "one", answer="x", tokens=(5, 2))
    assert found(outer, call("b", 10, 90, "two", answer="x", tokens=(5, 3))) == {"b": "a"}
    assert found(outer, call("b", 10, 90, "two", answer="y", tokens=(5, 2))) == {}


def test_equal_tokens_of_one_model_are_one_call():
    """Without ids the tokens and the model decide, and the span must lie around the root."""
    outer = call("a", 0, 1000, "one", tokens=(5, 2), model="openai/m")
    assert found(outer, call("b", 10, 90, "two", tokens=(5, 2))) == {"b": "a"}
    assert found(outer, call("b", 10, 1050, "two", tokens=(5, 2))) == {"b": "a"}
    for other in (
        call("b", 10, 90, "two", tokens=(5, 3)),
        call("b", 10, 90, "two", tokens=(5, 2), model="other"),
        call("b", 10, 90, "one", tokens=(5, 2)),
        call("b", 10, 1051, "two", tokens=(5, 2)),
        call("b", 1000, 1000, "two", tokens=(5, 2)),
        call("b", 10, 90, "two"),
        call("b", 10, 90, "two", tokens=(5, 2), resource={"service.name": "another"}),
        call("b", 10, 90, "two", parent="gone", tokens=(5, 2)),
        raw("b", 10, 90, trace_id="t-b", scope="two"),
    ):
        assert found(outer, other) == {}, other


def test_without_tokens_both_must_last_as_long():
    """Where neither tells tokens, nine tenths of the time must be shared."""
    outer = call("a", 0, 1000, "one")
    assert found(outer, call("b", 10, 990, "two")) == {"b": "a"}
    assert found(outer, call("b", 10, 890, "two")) == {}
    assert found(outer, call("b", 130, 1040, "two")) == {}
    half = {"gen_ai.operation.name": "chat", "gen_ai.usage.output_tokens": 1}
    spans = [raw(name, 0, 100, trace_id=name, scope=name, attributes=half) for name in "pq"]
    assert found(*spans) == {}


def test_several_instrumentations_make_one_chain():
    """Each root gets below the one that started last, also where only a span in between knows the id."""
    spans = (
        call("a", 0, 100, "one", answer="x", tokens=(5, 3)),
        call("b", 1, 99, "two", tokens=(5, 2)),
        call("c", 2, 98, "three", answer="x", tokens=(5, 2)),
        call("d", 3, 97, "four", parent="c", trace="t-c"),
    )
    assert found(*spans) == {"b": "a", "c": "b"}


def test_the_id_of_a_call_inside_a_root_is_the_roots():
    """A root without an id has that of the span of the same call below it."""
    spans = (
        call("a", 0, 100, "one", answer="x", tokens=(5, 3)),
        call("b", 1, 99, "two", tokens=(5, 2)),
        call("c", 2, 98, "three", parent="b", trace="t-b", answer="x"),
    )
    assert found(*spans) == {"b": "a"}


def test_each_instrumentation_tells_a_call_once():
    """Four equal calls at once, each seen twice, are four."""
    pairs = [
        (call(f"a{n}", n, 100 + n, "one", tokens=(5, 2)), call(f"b{n}", n + 5, 90 + n, "two", tokens=(5, 2)))
        for n in range(4)
    ]
    into = found(*(span for pair in pairs for span in pair))
    assert (set(into), len(set(into.values()))) == ({"b0", "b1", "b2", "b3"}, 4)


def test_a_root_never_gets_below_itself():
    """Neither in its own tree, nor by way of another root."""
    assert (
        found(
            call("a", 0, 100, "one", answer="x"), call("b", 1, 99, "two", parent="a", trace="t-a", answer="x")
        )
        == {}
    )
    assert found(call("a", 5, 9, "one", answer="x"), call("b", 5, 9, "two", answer="x")) == {"b": "a"}


def test_the_call_counts_once_in_its_turn():
    """The root is folded into the span around it, and the turn warns of both."""
    turn, *rest = assemble(
        [
            agent("r", 0, 100, trace_id="t"),
            call("a", 10, 90, "one", parent="r", trace="t", tokens=(5, 2)),
            call("b", 11, 89, "two", tokens=(5, 2)),
        ]
    )
    assert (rest, turn.counters["model_requests"], len(turn.usage)) == ([], 1, 1)
    assert [span.span_id for span in turn.spans] == ["a"]
    assert {warn.code: warn.span_ids for warn in turn.warnings} == {
        "folded": ("b",),
        "parent_inferred": ("b",),
    }


SPANS = st.lists(
    st.tuples(
        st.integers(0, 30), st.integers(1, 30), st.sampled_from("pqr"), st.sampled_from("xyz"), st.integers(0, 3)
    ),
    max_size=12,
)  # fmt: skip


@given(SPANS)
def test_any_roots_stay_a_forest(shapes):
    """Whatever comes, no span is lost, none is on a cycle, and one span has one root of each scope at most."""
    spans = []
    for n, (start, length, scope, answer, above) in enumerate(shapes):
        up = spans[above] if above < n else None
        where = {} if up is None else {"parent": up.span_id, "trace": up.trace_id}
        spans.append(call(f"s{n:02}", start, start + length, scope, answer=answer, **where))
    into = found(*spans)
    scopes = {span.span_id: span.scope for span in spans}
    assert len({(around, scopes[root]) for root, around in into.items()}) == len(into)
    above = {span.span_id: span.parent_id for span in spans} | into
    for span in spans:
        seen = set()
        at = span.span_id
        while at is not None and at not in seen:
            seen.add(at)
            at = above.get(at)
        assert at is None
    assert {span.span_id for turn in assemble(spans) for span in turn.spans} <= set(scopes)


def test_the_last_calls_are_compared():
    """A root among very many others is compared with a bounded number of them."""
    calls = [call(f"a{n:04}", n, 9000, "one", answer=f"x{n}") for n in range(200)]
    assert found(*calls, call("b", 300, 400, "two", answer="x199")) == {"b": "a0199"}
    assert found(*calls, call("b", 300, 400, "two", answer="x0")) == {}


def test_chat_alone_is_left_alone():
    """With one instrumentation there is nothing to compare."""
    assert found(chat("g", 0, 9), chat("h", 1, 8)) == {}
