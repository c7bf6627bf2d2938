"""The spans of an input, each id once, and what is wrong with the input."""

from collections.abc import Iterator
from typing import Final

from turntrace.core.codec.issues import IssueLog
from turntrace.core.model import Issue, RawSpan

__all__ = ["RawSpans"]

_OMITTED: Final = "issues_omitted"


class RawSpans:
    """Spans by trace and span id, in the order in which they first came. ``log`` has the issues."""

    __slots__ = ("_spans", "log")

    def __init__(self) -> None:
        self._spans: dict[tuple[str, str], RawSpan] = {}
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
