"""TRACEPARENT and TRACESTATE, in and out."""

import pytest
from opentelemetry.context import Context
from opentelemetry.trace import get_current_span

from turntrace.otel.remote import context_from, headers_of

PARENT = f"00-{0xABC:032x}-{0xDEF:016x}-01"


@pytest.mark.parametrize("text", [None, "", "nonsense", f"00-{0:032x}-{1:016x}-01"])
def test_what_is_no_traceparent_is_no_context(text):
    """A variable that is missing, empty or wrong is no parent and no error."""
    assert context_from(text, "a=b") is None


@pytest.mark.parametrize("state", [None, "a=b"])
def test_a_context_from_the_environment_goes_into_a_childs(state):
    """What came in goes out again, in upper case, with the state where there is one."""
    context = context_from(PARENT, state)
    found = get_current_span(context).get_span_context()
    assert (found.trace_id, found.span_id, found.is_remote) == (0xABC, 0xDEF, True)
    given = {"TRACEPARENT": PARENT, **({"TRACESTATE": state} if state else {})}
    assert headers_of(context) == given


def test_without_a_span_a_child_gets_nothing():
    """No current span, no variables."""
    assert headers_of(Context()) == {}
