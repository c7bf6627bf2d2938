"""One span and what its dialect says of it."""

from dataclasses import dataclass
from typing import Final

from turntrace.core.dialects import Description, Role, Verdict, describe, has_failed, reports_usage, usage_of
from turntrace.core.model import RawSpan, Usage

__all__ = ["Reading", "reading_of"]

_WRAPPERS: Final = frozenset({Role.TURN, Role.AGENT, Role.STRUCTURE})
"""The roles of spans that only lie around others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A raw span and what its dialect says of it.

    ``end_ns`` is never before the start; ``has_bad_end`` tells that the span's own end was. Usage is
    read from model calls, ``repeats_usage`` from the spans around them.
    """

    raw: RawSpan
    verdict: Verdict
    facts: Description
    usage: Usage | None
    end_ns: int
    has_bad_end: bool
    repeats_usage: bool

    @property
    def start_ns(self) -> int:
        """The start of the span."""
        return self.raw.start_ns

    @property
    def is_call(self) -> bool:
        """Whether the span is a model call."""
        return self.verdict.phase == "generation"


def reading_of(span: RawSpan, verdict: Verdict) -> Reading:
    """Read one span by the verdict on it."""
    is_backwards = span.end_ns < span.start_ns
    return Reading(
        raw=span,
        verdict=verdict,
        facts=describe(verdict, span.name, span.attributes),
        usage=usage_of(
            verdict,
            span.span_id,
            span.attributes,
            failed=has_failed(verdict, span.status, (name for _, name, _ in span.events)),
        ),
        end_ns=span.start_ns if is_backwards else span.end_ns,
        has_bad_end=is_backwards,
        repeats_usage=verdict.role in _WRAPPERS and reports_usage(verdict, span.attributes),
    )
