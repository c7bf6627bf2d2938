"""Random turns for property tests: nested, parallel, back-dated, outside their window."""

from hypothesis import strategies as st

from turntrace.core.model import Span, Turn

PHASES = [
    "generation",
    "tool_execution",
    "permission_wait",
    "retry_wait",
    "plan",
    "stream_consume",
    "compaction",
    None,
]


@st.composite
def turns(draw):
    """A turn of up to 25 spans with odd nanoseconds everywhere."""
    wall = draw(st.integers(0, 10**10))
    spans = []
    for number in range(draw(st.integers(0, 25))):
        start = draw(st.integers(-(10**8), 10**10))
        parents = ["root", None, *(f"s{before:02}" for before in range(number))]
        spans.append(
            Span(
                span_id=f"s{number:02}",
                parent_id=draw(st.sampled_from(parents)),
                name=f"span {number}",
                phase=draw(st.sampled_from(PHASES)),
                start_ns=start,
                end_ns=start + draw(st.integers(-5, 3 * 10**9)),
                tool=draw(st.sampled_from(["search", "fetch", None])),
                model=draw(st.sampled_from(["m-1", "m-2", None])),
                round=draw(st.sampled_from([1, 2, None])),
            )
        )
    return Turn(
        run_id=draw(st.sampled_from(["r1", "r2"])),
        spans=tuple(spans),
        span_id="root",
        root_name="turn",
        started_ns=0,
        completed_ns=wall,
        session_id="s",
    )
