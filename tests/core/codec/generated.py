"""Turns for property tests, and the ways from a turn to its block and back."""

from hypothesis import strategies as st

from turntrace.core.attribution import attribute
from turntrace.core.codec.decode import Block, read_blocks
from turntrace.core.codec.encode import encode_block
from turntrace.core.contract import PHASES
from turntrace.core.model import Event, Mark, Span, Turn, Usage, Warn

STARTED_NS = 1_772_366_400_000_000_000
WALL_NS = 1_000_000_000
ROOT_ID = "00000000000000aa"
IDS = [f"{number:016x}" for number in range(1, 9)]

texts = st.text(max_size=12)
counts = st.integers(-(2**63), 2**63 - 1)
tokens = st.none() | st.integers(0, 10**9)
scalars = (
    texts
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
)
moments = st.none() | st.integers(STARTED_NS, STARTED_NS + WALL_NS)


@st.composite
def spans(draw: st.DrawFn, *, inside: bool) -> tuple[Span, ...]:
    """Spans with every kind of parent; ``inside``: in the window of the turn and after their start."""
    found = []
    for span_id in draw(st.lists(st.sampled_from(IDS), unique=True)):
        low, high = (0, WALL_NS) if inside else (-WALL_NS, 2 * WALL_NS)
        start, end = draw(st.integers(low, high)), draw(st.integers(low, high))
        if inside:
            start, end = sorted((start, end))
        found.append(
            Span(
                span_id=span_id,
                parent_id=draw(st.sampled_from([None, ROOT_ID, "00000000000000ff", *IDS])),
                name=draw(texts),
                phase=draw(st.sampled_from([None, *PHASES])),
                start_ns=STARTED_NS + start,
                end_ns=STARTED_NS + end,
                parent_source=draw(st.sampled_from(["otel", "inferred", "containment"])),
                status=draw(st.sampled_from(["unset", "ok", "error"])),
                outcome=draw(st.sampled_from(["ok", "error", "cancelled", "abandoned", "incomplete"])),
                round=draw(st.none() | st.integers(0, 99)),
                tool=draw(st.none() | texts),
                model=draw(st.none() | texts),
                agent=draw(st.none() | texts),
                run_id=draw(st.none() | texts),
                attributes=draw(st.dictionaries(texts, scalars, max_size=3)),
            )
        )
    return tuple(found)


usages = st.builds(
    Usage,
    span_id=st.sampled_from(IDS),
    provenance=st.sampled_from(["reported", "missing", "estimated"]),
    model=st.none() | texts,
    provider=st.none() | texts,
    input_tokens=tokens,
    cached_input_tokens=tokens,
    cache_write_tokens=tokens,
    output_tokens=tokens,
    reasoning_tokens=tokens,
    raw=st.dictionaries(texts, st.integers(0, 10**9), max_size=2),
)
events = st.one_of(
    st.builds(Event, type=st.just("prefix_hash"), fields=st.just({"tools": "ff", "complete_prefix": "00"})),
    st.builds(Event, type=st.just("output_budget"), fields=st.just({"truncated": True, "original_bytes": 9})),
    st.builds(
        Event, type=st.just("task_state"), fields=st.fixed_dictionaries({"revision": st.integers(0, 9)})
    ),
)
marks = st.builds(
    Mark,
    name=st.sampled_from(["first_token", "mine"]),
    at_ns=st.integers(STARTED_NS, STARTED_NS + WALL_NS),
    span_id=st.none() | st.sampled_from(IDS),
)
warns = st.builds(
    Warn, code=texts, message=texts, span_ids=st.lists(st.sampled_from(IDS), max_size=2).map(tuple)
)


def turns(*, inside: bool = False) -> st.SearchStrategy[Turn]:
    """Turns with everything a block can hold."""
    return st.builds(
        Turn,
        run_id=texts,
        spans=spans(inside=inside),
        started_ns=st.just(STARTED_NS) if inside else st.none() | st.just(STARTED_NS),
        completed_ns=st.just(STARTED_NS + WALL_NS) if inside else st.none() | st.just(STARTED_NS + WALL_NS),
        trace_id=st.sampled_from(["", "0" * 31 + "1"]),
        span_id=st.just(ROOT_ID) if inside else st.none() | st.just(ROOT_ID),
        root_name=texts,
        parent_run_id=st.none() | texts,
        session_id=texts,
        profile=texts,
        agent=st.none() | texts,
        model=st.none() | texts,
        provider=st.none() | texts,
        source=texts,
        turn_source=st.sampled_from(["api", "dialect", "local_root", "run", "rule"]),
        status=st.sampled_from(["ok", "error", "interrupted", "cancelled"]),
        labels=st.dictionaries(texts, texts, max_size=2),
        first_chunk_ns=moments,
        first_token_ns=moments,
        first_visible_ns=moments,
        first_useful_ns=moments,
        rounds=st.none() | st.integers(0, 99),
        counters=st.dictionaries(
            st.sampled_from(["tool_calls", "model_requests", "input_tokens", "x"]), counts
        ),
        usage=st.lists(usages, max_size=3, unique_by=lambda usage: usage.span_id).map(tuple),
        marks=st.lists(marks, max_size=3).map(tuple),
        events=st.lists(events, max_size=3).map(tuple),
        warnings=st.lists(warns, max_size=2).map(tuple),
        sampled=st.none() | st.booleans(),
        dropped=st.integers(0, 99),
    )


def encoded(turn: Turn) -> list[bytes]:
    """The block of a turn with its own attribution."""
    attribution = attribute(
        turn.spans, started_ns=turn.started_ns, completed_ns=turn.completed_ns, root_id=turn.span_id
    )
    return encode_block(turn, attribution)


def only_block(lines: list[bytes], *, strict: bool = True) -> Block:
    """The one block of ``lines``."""
    [block] = read_blocks(lines, strict=strict)
    return block
