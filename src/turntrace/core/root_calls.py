"""Model calls that are roots of traces of their own though another instrumentation saw the same call.

An instrumentation that does not make its span current leaves the client's span below it without a parent.
Both tell one call: the root is put below the span that another instrumentation made of it.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from turntrace.core.calls import SAME_SHARE, is_one_model, tokens_of
from turntrace.core.reading import Reading
from turntrace.core.tree import NO_ROW

__all__ = ["SLACK_NS", "Process", "process_of", "seen_twice"]

_LOOK_BACK: Final = 64
"""How many calls that started earlier are compared with a root: a bound on the work."""

SLACK_NS: Final = 50_000_000
"""What a span may end after the one around it: some are ended by a callback of their own."""

Process = tuple[str, str, str]


def process_of(resource: Mapping[str, object]) -> Process:
    """What tells the process that a resource describes from others: service, instance and number."""
    name, instance, pid = (
        str(resource.get(key, "")) for key in ("service.name", "service.instance.id", "process.pid")
    )
    return name, instance, pid


def seen_twice(spans: Sequence[Reading], parents: Sequence[int]) -> dict[int, int]:
    """Lead from each root that is a model call to the span that another instrumentation made of that call.

    ``spans`` come by start; ``parents`` holds the row of each one's parent, negative for none. A root and
    a span around it, of one process and two instrumentations, are one call when both tell the same
    response id, or one model and the same tokens in and out, or neither tells tokens and they share nine
    tenths of the longer one. The span that started last is taken, once for each instrumentation, so that roots of several of them make
    one chain. No root gets below itself.
    """
    calls = [row for row, span in enumerate(spans) if span.is_call]
    roots = {row for row in calls if parents[row] < 0 and spans[row].raw.parent_id is None}
    if not roots or len({spans[row].raw.scope for row in calls}) == 1:
        return {}
    tops = _tops(parents)
    ids = {row: spans[row].facts.response_id for row in calls}
    found: dict[int, int] = {}
    taken: set[tuple[int, str]] = set()
    for row, before in _with_those_before(spans, calls):
        around = parents[row]
        if row in roots:
            scope = spans[row].raw.scope
            free = (other for other in before if tops[other] < row and (other, scope) not in taken)
            around = next(
                (other for other in free if _is_same(spans[other], spans[row], ids[other], ids[row])), NO_ROW
            )
            if around >= 0:
                found[row] = around
                taken.add((around, scope))
        if around in ids and ids[around] is None:
            ids[around] = ids[row]  # what one span of a call knows holds for those around it
    return found


def _with_those_before(spans: Sequence[Reading], calls: Sequence[int]) -> Iterator[tuple[int, Iterator[int]]]:
    """Each call, latest first, with those of its process that started before it, latest first."""
    processes: defaultdict[Process, list[int]] = defaultdict(list)
    for row in calls:
        processes[process_of(spans[row].raw.resource)].append(row)
    for row in reversed(calls):
        earlier = processes[process_of(spans[row].raw.resource)]
        earlier.pop()
        yield row, reversed(earlier[-_LOOK_BACK:])


def _tops(parents: Sequence[int]) -> list[int]:
    """The row of the root above each row, its own for a root; a row of a cycle has none below it."""
    tops = list(range(len(parents)))
    for row in range(len(parents)):
        path = []
        at = row
        while parents[at] >= 0 and tops[at] == at:
            path.append(at)
            at = parents[at]
        for step in path:
            tops[step] = tops[at]
    return tops


def _is_same(outer: Reading, inner: Reading, outer_id: str | None, inner_id: str | None) -> bool:
    """Whether ``inner``, which started later, is the same call as ``outer``."""
    ends_ns = outer.end_ns, inner.end_ns - SLACK_NS
    if outer.raw.scope == inner.raw.scope or inner.start_ns >= ends_ns[0] or ends_ns[1] > ends_ns[0]:
        return False
    if outer_id is not None and inner_id is not None:
        return outer_id == inner_id
    tokens = tokens_of(outer.usage)
    if tokens != tokens_of(inner.usage) or not is_one_model(outer.facts.model, inner.facts.model):
        return False
    return _share_their_time(outer, inner) if tokens is None else None not in tokens


def _share_their_time(outer: Reading, inner: Reading) -> bool:
    """Whether two calls overlap by nine tenths of the longer one."""
    shared_ns = min(outer.end_ns, inner.end_ns) - inner.start_ns
    longest_ns = max(outer.end_ns - outer.start_ns, inner.end_ns - inner.start_ns)
    return shared_ns >= SAME_SHARE * longest_ns
