"""A running turn for people: as blocks for a screen, as lines for a pipe."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from turntrace.core.model import Span, Turn
from turntrace.core.running import Running
from turntrace.report.blocks import Block, Facts
from turntrace.report.case import Case, examine, phase_name, turn_name
from turntrace.report.facts import facts_of
from turntrace.report.rounding import SECONDS, count_text
from turntrace.report.strings import Data, Words, joined, plain
from turntrace.report.tree import tree_table
from turntrace.report.view import Choice, heading, phase_table

__all__ = ["Changes", "live_view"]


def live_view(found: Running, rows: int) -> tuple[Block, ...]:
    """The turn as it stands: what it does now, where its time went so far, the newest of its spans.

    Args:
        found: the turn with the present as its end.
        rows: how many lines of spans there is room for; none when it is not positive.
    """
    case = examine(found.turn)
    name: list[Words] = [(Data(turn_name(found.turn)),), ("running",)]
    title = replace(heading(case, SECONDS), title=joined(name))
    blocks: list[Block] = [title, facts_of([case]), Facts(parts=((_now(found), ""),))]
    blocks.append(phase_table(case, Choice()))
    if rows > 0:
        blocks.append(tree_table(_newest(case, rows), SECONDS))
    return tuple(blocks)


def _now(found: Running) -> Words:
    """What runs now and for how long."""
    if not found.current:
        return ("now: nothing that has a phase",)
    named = [
        (*_name(span), f" for {SECONDS.with_name(found.now_ns - span.start_ns)}") for span in found.current
    ]
    return joined([("now: ", *named[0]), *named[1:4]], ", ")


def _name(span: Span) -> Words:
    if span.tool:
        return (Data(span.tool),)
    return phase_name(span.phase) if span.phase else (Data(span.name),)


def _newest(case: Case, rows: int) -> Case:
    """The case with its newest spans and all that they lie in."""
    spans = sorted(case.turn.spans, key=lambda span: (span.end_ns, span.start_ns))
    by_id = {span.span_id: span for span in spans}
    kept: set[str] = set()
    for span in reversed(spans):
        chain: list[str] = []
        at: Span | None = span
        while at is not None and at.span_id not in kept and at.span_id not in chain:
            chain.append(at.span_id)
            at = by_id.get(at.parent_id or "")
        if len(kept) + len(chain) > rows:
            break
        kept.update(chain)
    times = tuple(one for one in case.attribution.spans if one.span.span_id in kept)
    return replace(
        case, attribution=replace(case.attribution, spans=times), by_id={t.span.span_id: t for t in times}
    )


class Changes:
    """What changed in turns since it was last asked, a line each."""

    __slots__ = ("_ended", "_opened", "_over", "_started")

    def __init__(self) -> None:
        self._started: set[str] = set()
        self._opened: set[tuple[str, str]] = set()
        self._ended: set[tuple[str, str]] = set()
        self._over: set[str] = set()

    def of(self, turn: Turn, *, is_over: bool) -> Iterator[str]:
        """The lines of one turn; nothing once it is over."""
        if turn.run_id in self._over:
            return
        if turn.run_id not in self._started:
            self._started.add(turn.run_id)
            yield _line(turn, turn.started_ns, ("turn ", Data(turn.run_id), " begins"))
        for _, _, _, at_ns, words in sorted(self._events(turn)):
            yield _line(turn, at_ns, words)
        if is_over:
            self._over.add(turn.run_id)
            yield _end_line(turn)

    def _events(self, turn: Turn) -> Iterator[tuple[int, int, str, int, Words]]:
        """Time, ends before begins, id, time, words of each span that begun or ended since."""
        for span in turn.spans:
            if span.phase is None:
                continue
            key = turn.run_id, span.span_id
            if span.outcome == "incomplete":
                if key not in self._opened:
                    self._opened.add(key)
                    yield (
                        span.start_ns,
                        1,
                        span.span_id,
                        span.start_ns,
                        (*_name(span), " begins", *_round(span)),
                    )
            elif key not in self._ended:
                self._ended.add(key)
                took = f" took {SECONDS.with_name(max(span.end_ns - span.start_ns, 0))}"
                how = "" if span.outcome == "ok" else f", {span.outcome}"
                yield span.end_ns, 0, span.span_id, span.end_ns, (*_name(span), took, how, *_round(span))

    def forget(self, turns: Sequence[Turn]) -> None:
        """Drop what is known of the spans of turns that are over, so that memory does not grow."""
        ids = {turn.run_id for turn in turns}
        self._opened = {key for key in self._opened if key[0] not in ids}
        self._ended = {key for key in self._ended if key[0] not in ids}


def _round(span: Span) -> Words:
    return () if span.round is None else (f" (round {span.round})",)


def _line(turn: Turn, at_ns: int | None, words: Words) -> str:
    offset = "" if at_ns is None or turn.started_ns is None else SECONDS.of(at_ns - turn.started_ns)
    return plain((f"{offset:>9}  ", Data(turn_name(turn)), "  ", *words))


def _end_line(turn: Turn) -> str:
    """How the turn ended, how long it took, what it consumed."""
    case = examine(turn)
    wall_ns = case.attribution.wall_ns
    took = "" if wall_ns is None else f" after {SECONDS.with_name(wall_ns)}"
    tokens = case.usage.known
    known = [
        f", {count_text(count)} {word}"
        for key, word in (("input_tokens", "tokens in"), ("output_tokens", "out"))
        if (count := tokens.get(key)) is not None
    ]
    return _line(turn, turn.completed_ns, ("turn ", Data(turn.run_id), " ", Data(turn.status), took, *known))
