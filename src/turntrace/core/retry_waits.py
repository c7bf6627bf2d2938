"""The back-off between two attempts of a model call, which no instrumentation makes a span of.

An SDK sleeps between an attempt that was refused and the next one. What HTTP instrumentations record are
the attempts; the pause belongs to the call's time unless it is told apart.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final

from turntrace.core import attributes as names
from turntrace.core.model import Span

__all__ = ["is_retry_wait", "with_retry_waits"]

_ATTEMPT: Final = "provider_connect"
_CALL: Final = "generation"
_STATUSES: Final = (names.HTTP_STATUS, "http.status_code")
_FIRST_REFUSAL: Final = 400


def is_retry_wait(span: Span) -> bool:
    """Whether a span is one that ``with_retry_waits`` made."""
    return span.phase == "retry_wait" and span.parent_source == "inferred"


def with_retry_waits(spans: Sequence[Span]) -> tuple[Span, ...]:
    """``spans`` with a ``retry_wait`` from the end of each refused attempt to the next one of its call.

    Where a refused try stands beside the call that took its place, the wait is between them. With a wait
    the result is in order of start and id.

    A pause in which a span of the call's own lies is none: whoever made that span knows better. The new
    spans are ``inferred``; their ids follow from those of the attempts around them.

    >>> call = Span(span_id="c", parent_id=None, name="chat", phase="generation", start_ns=0, end_ns=90)
    >>> first = Span(
    ...     span_id="a", parent_id="c", name="POST", phase="provider_connect", start_ns=1, end_ns=5,
    ...     status="error",
    ... )
    >>> second = Span(
    ...     span_id="b", parent_id="c", name="POST", phase="provider_connect", start_ns=30, end_ns=80
    ... )
    >>> wait = with_retry_waits([call, first, second])[2]
    >>> wait.phase, wait.parent_id, wait.start_ns, wait.end_ns, wait.parent_source
    ('retry_wait', 'c', 5, 30, 'inferred')
    """  # fmt: skip
    waits: list[Span] = []
    for parent_id, inside in _by_parent(spans).items():
        inside.sort(key=lambda span: (span.start_ns, span.end_ns, span.span_id))
        waits += _between(parent_id, inside)
    return (
        tuple(sorted((*spans, *waits), key=lambda span: (span.start_ns, span.span_id)))
        if waits
        else tuple(spans)
    )


def _by_parent(spans: Iterable[Span]) -> dict[str, list[Span]]:
    """The spans directly below each span that has attempts; below phases other than calls there are none."""
    others = {span.span_id for span in spans if span.phase not in {_CALL, None}}
    found: defaultdict[str, list[Span]] = defaultdict(list)
    for span in spans:
        if span.parent_id is not None and span.parent_id not in others:
            found[span.parent_id].append(span)
    return {
        parent: inside for parent, inside in found.items() if any(one.phase == _ATTEMPT for one in inside)
    }


def _between(parent_id: str, inside: Sequence[Span]) -> Iterable[Span]:
    """The waits below one span, of whose children each starts after those before it ended."""
    latest: Span | None = None
    for span in inside:
        if (
            latest is not None
            and _is_refused(latest)
            and span.phase in {_ATTEMPT, _CALL}
            and span.start_ns > latest.end_ns
        ):
            yield _wait(parent_id, latest, span)
        if latest is None or span.end_ns >= latest.end_ns:
            latest = span


def _is_refused(span: Span) -> bool:
    if span.phase != _ATTEMPT:
        return False
    return span.outcome == "error" or span.status == "error" or _status(span) >= _FIRST_REFUSAL


def _status(span: Span) -> int:
    found = next((span.attributes[name] for name in _STATUSES if name in span.attributes), 0)
    return found if isinstance(found, int) else 0


def _wait(parent_id: str, before: Span, after: Span) -> Span:
    status = _status(before)
    return Span(
        span_id=blake2b(f"{before.span_id} {after.span_id}".encode(), digest_size=8).hexdigest(),
        parent_id=parent_id,
        name="retry_wait",
        phase="retry_wait",
        start_ns=before.end_ns,
        end_ns=after.start_ns,
        parent_source="inferred",
        round=before.round,
        attributes={names.REASON: str(status)} if status else {},
    )
