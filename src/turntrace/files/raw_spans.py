"""The spans of an input, each id once, the log events and counters beside them, and what is wrong."""

from collections.abc import Iterator, Sized
from typing import Final

from turntrace.core.codec.issues import IssueLog
from turntrace.core.model import Issue, RawEvent, RawPoint, RawSpan

__all__ = ["RawSpans"]

_OMITTED: Final = "issues_omitted"
_MAX_EVENTS: Final = 200_000
"""Events and points of an input that are kept, each; a turn has some dozen."""


class RawSpans:
    """Spans by trace and span id, in the order in which they first came. ``log`` has the issues.

    ``events`` and ``points`` are those of coding agents that can be read.
    """

    __slots__ = ("_spans", "events", "log", "points")

    def __init__(self) -> None:
        self._spans: dict[tuple[str, str], RawSpan] = {}
        self.events: list[RawEvent] = []
        self.points: list[RawPoint] = []
        self.log = IssueLog()

    def issue(self, code: str, message: str, line: int | None, offset: int | None) -> None:
        """Note what is wrong at a 1-based line, whose record starts at ``offset`` bytes."""
        self.log.add(code, message, line, offset)

    def keep(self, span: RawSpan, line: int | None, offset: int | None) -> None:
        """Keep a span; of two with one id the one with the latest end, then with the earliest start.

        A batch that was sent twice is one batch.
        """
        other = self._spans.setdefault((span.trace_id, span.span_id), span)
        if other is span:
            return
        self.issue("duplicate_span", f"span {span.span_id} came before", line, offset)
        if (-span.end_ns, span.start_ns) < (-other.end_ns, other.start_ns):
            self._spans[span.trace_id, span.span_id] = span

    def keep_event(self, event: RawEvent, line: int | None, offset: int | None) -> None:
        """Keep a log event."""
        if self._has_room(self.events, line, offset):
            self.events.append(event)

    def keep_point(self, point: RawPoint, line: int | None, offset: int | None) -> None:
        """Keep a point of a counter."""
        if self._has_room(self.points, line, offset):
            self.points.append(point)

    def _has_room(self, kept: Sized, line: int | None, offset: int | None) -> bool:
        if len(kept) < _MAX_EVENTS:
            return True
        self.issue("issues_omitted", f"more than {_MAX_EVENTS} events; the rest is left out", line, offset)
        return False

    @property
    def spans(self) -> list[RawSpan]:
        """What was kept."""
        return list(self._spans.values())

    @property
    def issues(self) -> list[Issue]:
        """What was wrong, by line."""
        return list(self._all_issues())

    def _all_issues(self) -> Iterator[Issue]:
        yield from self.log.sorted()
        if self.log.omitted:
            yield Issue(code=_OMITTED, message=f"{self.log.omitted} more are not told one by one")
