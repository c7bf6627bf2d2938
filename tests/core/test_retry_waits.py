"""Back-off that is told by the attempts around it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.raws import agent, chat, raw
from turntrace.core.attribution import attribute
from turntrace.core.model import Span
from turntrace.core.retry_waits import with_retry_waits
from turntrace.core.turns import assemble

MS = 1_000_000


def attempt(span_id, start_ms, end_ms, status=None, *, parent="g", **fields):
    """An HTTP client span with its answer's status."""
    attributes = {"http.request.method": "POST"}
    if status is not None:
        attributes["http.response.status_code"] = status
    return raw(
        span_id, start_ms, end_ms, name="POST", parent=parent, kind="client", attributes=attributes, **fields
    )


def waits(*spans, tokens=(10, 2)):
    """(start ms, end ms, reason) of the waits of a turn with one call of 10 to 900 ms."""
    (turn,) = assemble([agent("r", 0, 1000), chat("g", 10, 900, parent="r", tokens=tokens), *spans])
    found = [span for span in turn.spans if span.phase == "retry_wait"]
    return [
        (span.start_ns // MS, span.end_ns // MS, span.attributes.get("turntrace.reason"))
        for span in found
        if span.parent_source == "inferred"
    ]


def test_complaint_05_attempts_and_back_off_stand_beside_the_time_of_the_model():
    """500, then 429, then an answer: three attempts, two waits, two retries, and neither is generation's."""
    spans = [
        agent("r", 0, 1000),
        chat("g", 10, 900, parent="r"),
        attempt("a", 20, 50, 500),
        attempt("b", 150, 180, 429),
        attempt("c", 580, 700, 200),
    ]
    (turn,) = assemble(spans)
    found = attribute(
        turn.spans, started_ns=turn.started_ns, completed_ns=turn.completed_ns, root_id=turn.span_id
    )
    exclusive = {
        phase: sum(one.exclusive_ns for one in found.spans if one.span.phase == phase) // MS
        for phase in ("generation", "provider_connect", "retry_wait")
    }
    assert exclusive == {"generation": 210, "provider_connect": 180, "retry_wait": 500}
    assert turn.counters["retry_count"] == 2
    assert [span.attributes["turntrace.reason"] for span in turn.spans if span.phase == "retry_wait"] == [
        "500",
        "429",
    ]
    assert sum(1 for span in turn.spans if span.phase == "provider_connect") == 3


def test_a_connection_that_failed_is_an_attempt_that_failed():
    """Without a status there is no reason, but a wait."""
    assert waits(attempt("a", 20, 50, status_code := None), attempt("b", 80, 90)) == []
    assert status_code is None
    failed = raw(
        "a",
        20,
        50,
        name="POST",
        parent="g",
        kind="client",
        status="error",
        attributes={"http.method": "POST"},
    )
    assert waits(failed, attempt("b", 80, 90)) == [(50, 80, None)]


def test_older_names_of_the_status_are_known():
    """Instrumentations of before 2024 write http.status_code."""
    old = raw(
        "a",
        20,
        50,
        name="POST",
        parent="g",
        kind="client",
        attributes={"http.method": "POST", "http.status_code": 503},
    )
    assert waits(old, attempt("b", 80, 90)) == [(50, 80, "503")]


@pytest.mark.parametrize(
    "spans",
    [
        (attempt("a", 20, 50, 200), attempt("b", 80, 90, 200)),
        (attempt("a", 20, 50, 429), attempt("b", 40, 90, 200)),
        (attempt("a", 20, 50, 429), attempt("b", 50, 90, 200)),
        (attempt("a", 20, 50, 429),),
        (attempt("a", 20, 50, 429, parent="r"), attempt("b", 80, 90, 200, parent="r")),
        (
            attempt("a", 20, 50, 429),
            raw(
                "w",
                55,
                75,
                name="sleep",
                parent="g",
                attributes={"turntrace.phase": "retry_wait"},
                scope="turntrace",
            ),
            attempt("b", 80, 90, 200),
        ),
    ],
    ids=["answered", "overlapping", "at once", "last", "in no call", "told by its own span"],
)
def test_what_is_no_pause_after_a_refusal_is_none(spans):
    """Only what the attempts say."""
    assert waits(*spans) == []


def test_attempts_in_structure_of_the_call():
    """A library's own span around its requests."""
    inner = raw("i", 15, 800, name="request", parent="g")
    assert waits(inner, attempt("a", 20, 50, 429, parent="i"), attempt("b", 80, 90, 200, parent="i")) == [
        (50, 80, "429")
    ]


SPANS = st.lists(
    st.builds(
        lambda number, phase, start, length, status: Span(
            span_id=f"{number:016x}",
            parent_id="g",
            name="x",
            phase=phase,
            start_ns=start,
            end_ns=start + length,
            status=status,
        ),
        st.integers(1, 2**32),
        st.sampled_from(["provider_connect", "other", None]),
        st.integers(0, 60),
        st.integers(0, 20),
        st.sampled_from(["unset", "error"]),
    ),
    max_size=12,
    unique_by=lambda span: span.span_id,
)


@given(SPANS)
def test_waits_lie_between_attempts_and_overlap_nothing(spans):
    """Whatever the spans: a wait starts where a refused attempt ended and ends where one starts."""
    call = Span(span_id="g", parent_id=None, name="chat", phase="generation", start_ns=0, end_ns=100)
    found = [span for span in with_retry_waits([call, *spans]) if span.phase == "retry_wait"]
    ends = {span.end_ns for span in spans if span.phase == "provider_connect" and span.status == "error"}
    starts = {span.start_ns for span in spans if span.phase == "provider_connect"}
    for wait in found:
        assert (wait.start_ns in ends, wait.end_ns in starts) == (True, True)
        assert wait.start_ns < wait.end_ns
        assert not any(span.start_ns < wait.end_ns and span.end_ns > wait.start_ns for span in spans)
    assert len({wait.span_id for wait in found}) == len(found)


def test_a_refused_try_beside_the_call_that_took_its_place():
    """Where every try is a span, the refused one is an attempt, and the wait lies between the two."""
    sent = {"gen_ai.input.messages": "[1]"}
    refused = chat("f", 10, 40, parent="r", tokens=None, status="error", attributes=sent)
    again = chat("g", 100, 300, parent="r", attributes=sent)
    (turn,) = assemble([agent("r", 0, 1000), refused, again])
    assert [(span.phase, span.start_ns // MS, span.end_ns // MS) for span in turn.spans] == [
        ("provider_connect", 10, 40),
        ("retry_wait", 40, 100),
        ("generation", 100, 300),
    ]
    assert (turn.counters["model_requests"], turn.counters["retry_count"]) == (1, 1)
