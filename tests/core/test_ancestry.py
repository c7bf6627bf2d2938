"""What a span has from the nearest span above it."""

from hypothesis import given
from hypothesis import strategies as st

from core.raws import raw
from turntrace.core.ancestry import inherited


def brute_force(spans, told):
    """Each span's own walk."""
    by_id = {span.span_id: span for span in spans}
    found = {}
    for span in spans:
        at, seen = span, set()
        while at is not None and at.span_id not in seen and told(at) is None:
            seen.add(at.span_id)
            at = by_id.get(at.parent_id)
        if at is not None and told(at) is not None:
            found[span.trace_id, span.span_id] = told(at)
    return found


@given(st.data())
def test_the_nearest_above_decides(data):
    """Over any parents: rings, missing ones, spans that are their own."""
    count = data.draw(st.integers(0, 8))
    ids = st.sampled_from([None, "none", *(f"s{number}" for number in range(count))])
    spans = [
        raw(
            f"s{number}",
            0,
            1,
            parent=data.draw(ids),
            attributes={"a": data.draw(st.sampled_from([None, 1, 2]))},
        )
        for number in range(count)
    ]

    def told(span):
        return span.attributes["a"]

    assert inherited(spans, told) == brute_force(spans, told)
