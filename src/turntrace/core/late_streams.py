"""Streams whose span ended when the response's headers came: put right from what was recorded beside it.

Logfire's client instrumentations end the span of a streamed call when the stream object is handed out, and
write a record without length, with the stream's duration, its answer and its tokens, when it is over. Seen
with logfire 5.4 on the openai client.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from turntrace.core import attributes as names
from turntrace.core.model import RawSpan

__all__ = ["is_stream_record", "with_whole_streams"]

_KIND: Final = "logfire.span_type"
_DURATION: Final = "duration"
_NS_PER_S: Final = 1_000_000_000
_SLACK_NS: Final = 50_000_000
"""Between the headers and the first look at the stream little happens, and durations are measured elsewhere."""

_LOOK_BACK: Final = 64
"""How many calls are looked at for the one of a record: a bound on the work."""

_Key = tuple[str, str | None, str, object]


def with_whole_streams(spans: Iterable[RawSpan]) -> tuple[list[RawSpan], frozenset[tuple[str, str]]]:
    """``spans``, the calls among them as long as their streams, and the keys of those that were put right.

    A record of a stream is left out when the span of its call is there; alone it stands for the call, from
    its duration before it on.
    """
    kept = list(spans)
    records = [span for span in kept if _is_record(span)]
    if not records:
        return kept, frozenset()
    requests = _requests(kept)
    whole: dict[tuple[str, str], RawSpan] = {}
    for record in sorted(records, key=lambda span: (span.start_ns, span.span_id)):
        request = _request_of(record, requests.get(_key(record), []))
        if request is None:
            whole[_id(record)] = replace(record, start_ns=_began_ns(record), attributes=_as_span(record))
        else:
            whole[_id(request)] = _joined(request, record)
    left_out = {_id(record) for record in records} - whole.keys()
    return [whole.get(_id(span), span) for span in kept if _id(span) not in left_out], frozenset(whole)


def _id(span: RawSpan) -> tuple[str, str]:
    return span.trace_id, span.span_id


def is_stream_record(attributes: Mapping[str, object]) -> bool:
    """Whether a span's attributes are those of the record that is written when a stream is over.

    >>> is_stream_record({"logfire.span_type": "log", "gen_ai.operation.name": "chat", "duration": 0.2})
    True
    """
    return (
        attributes.get(_KIND) == "log"
        and names.OPERATION in attributes
        and isinstance(attributes.get(_DURATION), int | float)
    )


def _is_record(span: RawSpan) -> bool:
    return is_stream_record(span.attributes) and 0 <= span.attributes[_DURATION] * _NS_PER_S <= span.start_ns


def _began_ns(record: RawSpan) -> int:
    return record.start_ns - int(record.attributes[_DURATION] * _NS_PER_S)


def _as_span(record: RawSpan) -> dict[str, object]:
    return {**record.attributes, _KIND: "span"}


def _key(span: RawSpan) -> _Key:
    """What the span of a call and the record of its stream have in common."""
    return span.trace_id, span.parent_id, span.scope, span.attributes.get(names.REQUEST_MODEL)


def _requests(spans: Iterable[RawSpan]) -> dict[_Key, list[RawSpan]]:
    found: dict[_Key, list[RawSpan]] = {}
    for span in spans:
        if span.attributes.get(_KIND) == "span" and names.OPERATION in span.attributes:
            found.setdefault(_key(span), []).append(span)
    for group in found.values():
        group.sort(key=lambda span: (span.end_ns, span.span_id))
    return found


def _request_of(record: RawSpan, requests: list[RawSpan]) -> RawSpan | None:
    """The call that ended last before the stream began; it is taken from ``requests``."""
    after = bisect_right(requests, _began_ns(record) + _SLACK_NS, key=lambda span: span.end_ns)
    for index in range(after - 1, max(after - _LOOK_BACK, 0) - 1, -1):
        if names.OUTPUT_TOKENS not in requests[index].attributes:
            return requests.pop(index)
    return None


def _joined(request: RawSpan, record: RawSpan) -> RawSpan:
    return replace(
        request,
        end_ns=max(request.end_ns, record.end_ns),
        status=record.status if request.status == "unset" else request.status,
        attributes={**record.attributes, **request.attributes, names.REQUEST_STREAM: True},
    )
