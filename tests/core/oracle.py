"""Attribution by counting: the definitions nanosecond by nanosecond, for small integers only.

Written from the definitions, without any of the package's code; slow and recursive on purpose.
"""

import itertools
from fractions import Fraction


class Oracle:
    """The figures of a turn whose span ids are unique and whose parents form no cycle."""

    def __init__(self, spans, low, high):
        self.low, self.high = low, max(low, high)
        self.wall = self.high - self.low
        self.spans = {span.span_id: span for span in spans}
        self.parent = {
            span.span_id: span.parent_id if span.parent_id in self.spans else None for span in spans
        }
        above = set(self.parent.values())
        self.phase = {
            key: None if span.phase == "other" and key in above else span.phase
            for key, span in self.spans.items()
        }
        self.order = sorted(self.spans, key=lambda key: (self.spans[key].start_ns, key))
        self.moments = range(self.low, self.high)
        self.active = {
            moment: [
                key
                for key in self.order
                if self.spans[key].start_ns <= moment < max(self.spans[key].start_ns, self.spans[key].end_ns)
            ]
            for moment in self.moments
        }

    def ancestors(self, key):
        while (key := self.parent[key]) is not None:
            yield key

    def phase_parent(self, key):
        return next((above for above in self.ancestors(key) if self.phase[above]), None)

    def exclusive(self, key):
        return sum(
            key in active and not any(self.parent[other] == key for other in active)
            for active in self.active.values()
        )

    def root_exclusive(self):
        return sum(not any(self.parent[key] is None for key in active) for active in self.active.values())

    def busy(self, key):
        return sum(
            key in active
            and not any(self.phase[other] and self.phase_parent(other) == key for other in active)
            for active in self.active.values()
        )

    def attributed(self):
        return sum(any(self.phase[key] for key in active) for active in self.active.values())

    def frontier(self, moment):
        phases = [key for key in self.active[moment] if self.phase[key]]
        innermost = [key for key in phases if not any(key in self.ancestors(other) for other in phases)]
        others = [key for key in innermost if self.phase[key] != "stream_consume"]
        return others or innermost

    def structure_frontier(self, moment):
        active = self.active[moment]
        if any(self.phase[key] for key in active):
            return []
        return [key for key in active if not any(key in self.ancestors(other) for other in active)]

    def active_ns(self):
        human = sum(
            bool(frontier) and all(self.phase[key] == "permission_wait" for key in frontier)
            for frontier in map(self.frontier, self.moments)
        )
        return self.wall - human

    def exact_share(self, key, frontier_at):
        return sum(
            (Fraction(1, len(frontier)) for frontier in map(frontier_at, self.moments) if key in frontier),
            Fraction(0),
        )

    def shares(self):
        """The rule to the letter: floors of 2^-16 ns between boundaries, the rest in turn."""
        clipped = [self._clip(key) for key in self.order if self.phase[key]]
        edges = sorted({edge for start, end in clipped if start < end for edge in (start, end)})
        units = {}
        for start, end in itertools.pairwise(edges):
            frontier = self.frontier(start)
            for key in frontier:
                units[key] = units.get(key, 0) + ((end - start) << 16) // len(frontier)
        shares = {key: units.get(key, 0) >> 16 for key in self.order}
        served = [key for key in self.order if key in units]
        missing = self.attributed() - sum(shares.values())
        while missing:
            for key in served[:missing]:
                shares[key] += 1
            missing -= min(missing, len(served))
        return shares

    def max_concurrency(self, phase):
        rows = [key for key in self.order if self.phase[key] == phase]
        counted = [key for key in rows if not any(key in self.ancestors(other) for other in rows)]
        return max((sum(key in active for key in counted) for active in self.active.values()), default=0)

    def gaps(self, least):
        free = [not any(self.phase[key] for key in self.active[moment]) for moment in self.moments]
        found, start = [], None
        for moment, is_free in zip([*self.moments, self.high], [*free, False], strict=True):
            if is_free and start is None:
                start = moment
            if not is_free and start is not None:
                if moment - start >= least:
                    found.append((start, moment))
                start = None
        return found

    def critical_path(self):
        self.sections = []
        self._walk(None, self.low, self.high)
        return [section for section in self.sections if section[1] < section[2]]

    def _walk(self, key, start, now):
        children = []
        for child in self.order:
            if self.parent[child] == key:
                cut_start, cut_end = self._cut(child)
                if cut_start < cut_end:
                    children.append((cut_end, cut_start, child))
        while True:
            possible = [child for child in children if child[0] <= now]
            if not possible:
                break
            latest = max(end for end, _, _ in possible)
            latest_start = max(begin for end, begin, _ in possible if end == latest)
            child = min(name for end, begin, name in possible if (end, begin) == (latest, latest_start))
            self.sections.append((key, latest, now))
            self._walk(child, latest_start, latest)
            now = latest_start
            children = [other for other in children if other[2] != child]
        self.sections.append((key, start, now))

    def _clip(self, key):
        span = self.spans[key]
        start = min(max(span.start_ns, self.low), self.high)
        return start, max(start, min(span.end_ns, self.high))

    def _cut(self, key):
        low, high = (self.low, self.high) if self.parent[key] is None else self._cut(self.parent[key])
        span = self.spans[key]
        return max(span.start_ns, low), min(max(span.end_ns, span.start_ns), high)
