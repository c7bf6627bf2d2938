"""A copy of an ended span with more attributes and corrected times, made with public API only.

The SDK freezes a span before its processors see it end, so attributes of other instrumentations' spans
can only be added to a copy.
"""

from collections.abc import Mapping

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.util.types import AttributeValue

__all__ = ["CopiedSpan", "EnrichedSpan", "rebuilt"]


class CopiedSpan(ReadableSpan):
    """A ReadableSpan that keeps the counts of what its original had dropped: attributes, events, links."""

    _dropped: tuple[int, int, int]

    @property
    def dropped_attributes(self) -> int:
        """As the original's."""
        return self._dropped[0]

    @property
    def dropped_events(self) -> int:
        """As the original's."""
        return self._dropped[1]

    @property
    def dropped_links(self) -> int:
        """As the original's."""
        return self._dropped[2]


class EnrichedSpan(CopiedSpan):
    """A copy of a span of this process, with changes."""

    def __init__(self, source: ReadableSpan, **changes: object) -> None:
        fields: dict[str, object] = {
            "name": source.name,
            "context": source.get_span_context(),
            "parent": source.parent,
            "resource": source.resource,
            "attributes": source.attributes,
            "events": source.events,
            "links": source.links,
            "kind": source.kind,
            "status": source.status,
            "start_time": source.start_time,
            "end_time": source.end_time,
            "instrumentation_scope": source.instrumentation_scope,
        }
        super().__init__(**{**fields, **changes})  # type: ignore[arg-type]  # the constructor's own fields
        self._dropped = (source.dropped_attributes, source.dropped_events, source.dropped_links)


def rebuilt(
    span: ReadableSpan,
    attributes: Mapping[str, AttributeValue],
    *,
    start_ns: int | None = None,
    end_ns: int | None = None,
) -> ReadableSpan:
    """``span`` with exactly ``attributes``; times (epoch ns) replaced where given."""
    return EnrichedSpan(
        span,
        attributes=attributes,
        start_time=span.start_time if start_ns is None else start_ns,
        end_time=span.end_time if end_ns is None else end_ns,
    )
