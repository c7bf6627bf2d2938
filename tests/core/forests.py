"""Spans for the tests of attribution: short builders, and strategies for random forests."""

import random
from dataclasses import replace

from hypothesis import strategies as st

from turntrace.core.model import Span

PHASES = ("generation", "tool_execution", "permission_wait", "stream_consume", "other", None)
HORIZON = 12


def make(span_id, start, end, *, parent=None, phase="generation", **fields):
    """A span called after its id."""
    return Span(
        span_id=span_id,
        parent_id=parent,
        name=f"n{span_id}",
        phase=phase,
        start_ns=start,
        end_ns=end,
        **fields,
    )


@st.composite
def forests(draw, *, phases=PHASES, max_size=8, horizon=HORIZON, least=0):
    """Any spans on a small grid: early, late, overlapping, empty, backwards; parents in any order."""
    size = draw(st.integers(least, max_size))
    moments = st.integers(-3, horizon + 3)
    ids = draw(st.permutations([f"{number:02d}" for number in range(size)]))
    spans = []
    for index, span_id in enumerate(ids):
        parent = draw(st.sampled_from([None, "root", "gone", *ids[:index]]))
        phase = draw(st.sampled_from(phases))
        spans.append(make(span_id, draw(moments), draw(moments), parent=parent, phase=phase))
    return draw(st.permutations(spans))


@st.composite
def windows(draw, horizon=HORIZON):
    """A window, empty at times."""
    low = draw(st.integers(-2, horizon // 2))
    return low, low + draw(st.integers(0, horizon))


def nested_turn(size, seed=0, phases=PHASES):
    """A deterministic turn of ``size`` spans with parallel, overlapping and detached children."""
    rng = random.Random(seed)
    spans = [make("0", 0, 1_000_000, phase=None)]
    for number in range(1, size):
        above = spans[rng.randrange(max(0, number - 50), number)]
        start = rng.randint(above.start_ns, above.end_ns)
        end = start + rng.randint(0, 2 * (above.end_ns - start) // 3 + 2)
        spans.append(make(str(number), start, end, parent=above.span_id, phase=rng.choice(phases)))
    return spans


def moved(spans, factor=1, offset=0):
    """The same spans with every time scaled, then shifted."""
    return [
        replace(span, start_ns=span.start_ns * factor + offset, end_ns=span.end_ns * factor + offset)
        for span in spans
    ]
