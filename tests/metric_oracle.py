"""What the turntrace.* metrics of recorded turns must be, computed from their trace files by plain loops.

Nothing of the code that measures live is used: blocks are read back, times are attributed anew.
"""

from collections import defaultdict

from turntrace.core.attribution import attribute
from turntrace.core.metric_table import METRICS
from turntrace.files.read import read_paths

__all__ = ["EVENTS", "TOKENS", "Histogram", "expected", "labels_of", "measured_in"]

EVENTS = {
    "reconnect_count": "turntrace.reconnects",
    "compaction_count": "turntrace.compactions",
    "compaction_attempts": "turntrace.compaction_attempts",
    "completion_nudges": "turntrace.completion_nudges",
    "acceptance_checks": "turntrace.acceptance_checks",
    "model_switches": "turntrace.model_switches",
}
TOKENS = {
    "input": "input_tokens",
    "cache_read": "cached_input_tokens",
    "cache_write": "cache_write_tokens",
    "output": "output_tokens",
    "reasoning": "reasoning_tokens",
}
REASONS = {
    "429": "429",
    "500": "5xx",
    "503": "5xx",
    "ReadTimeout": "timeout",
    "refused connection": "connect",
}


class Histogram:
    """The values of one label set."""

    def __init__(self):
        self.values = []

    def counts(self, bounds):
        """How many values lie in each bucket, the last one being the rest."""
        found = [0] * (len(bounds) + 1)
        for value in self.values:
            found[sum(value > bound for bound in bounds)] += 1
        return found


def labels_of(**labels):
    """A label set as a key."""
    return frozenset((name, "unknown" if value is None else value) for name, value in labels.items())


def expected(paths):
    """Counters as numbers and histograms as Histogram, by metric and label set."""
    return measured_in(read_paths([str(path) for path in paths], strict=True).turns)


def measured_in(turns):
    """As expected(), of turns that were read."""
    found = defaultdict(lambda: defaultdict(int))
    histograms = defaultdict(lambda: defaultdict(Histogram))
    for turn in turns:
        if turn.parent_run_id is None:
            _turn(turn, found, histograms)
    return {**found, **histograms}


def _turn(turn, found, histograms):
    agent = turn.agent
    found["turntrace.turns"][labels_of(agent=agent, status=turn.status)] += 1
    times = attribute(
        turn.spans, started_ns=turn.started_ns, completed_ns=turn.completed_ns, root_id=turn.span_id
    )

    def point(name, value, **labels):
        histograms[name][labels_of(agent=agent, **labels)].values.append(value)

    if times.wall_ns is not None:
        point("turntrace.turn.duration", times.wall_ns / 1e9, status=turn.status)
        point("turntrace.turn.active_duration", times.active_ns / 1e9, status=turn.status)
        if times.wall_ns:
            point("turntrace.turn.coverage", times.attributed_ns / times.wall_ns)
        point("turntrace.turn.rounds", turn.rounds or 0)
        for phase in times.phases:
            if phase.wall_share_ns:
                point("turntrace.phase.wall_time", phase.wall_share_ns / 1e9, phase=phase.name)
        point("turntrace.phase.wall_time", times.unattributed_ns / 1e9, phase="unattributed")
    for one in times.spans:
        if one.phase is not None:
            extra = {"generation": ("model", one.span.model), "tool_execution": ("tool", one.span.tool)}
            labels = dict([extra[one.phase]] if one.phase in extra else [])
            point("turntrace.phase.exclusive_time", one.exclusive_ns / 1e9, phase=one.phase, **labels)
    _calls(turn, found, point)
    _events(turn, found)


def _calls(turn, found, point):
    agent = turn.agent
    spans = {span.span_id: span for span in turn.spans}
    usages = {usage.span_id: usage for usage in turn.usage}
    for span in turn.spans:
        if span.phase == "generation" and not _has_above(span, spans, "generation"):
            _call(span, usages.get(span.span_id), agent, found, point)
        if span.phase == "tool_execution" and span.tool and not _has_above(span, spans, "tool_execution"):
            labels = labels_of(agent=agent, tool=span.tool, outcome=span.outcome)
            found["turntrace.tool_calls"][labels] += 1


def _events(turn, found):
    agent = turn.agent
    waits = [span for span in turn.spans if span.phase == "retry_wait"]
    for span in waits:
        reason = REASONS.get(str(span.attributes.get("turntrace.reason")), "unknown")
        labels = labels_of(agent=agent, model=_retried_model(turn, span), reason=reason)
        found["turntrace.retries"][labels] += 1
    untold = turn.counters.get("retry_count", 0) - len(waits)
    if untold > 0:
        found["turntrace.retries"][labels_of(agent=agent, model=turn.model, reason="unknown")] += untold
    for counter, name in EVENTS.items():
        if turn.counters.get(counter):
            found[name][labels_of(agent=agent)] += turn.counters[counter]


def _call(span, usage, agent, found, point):
    model, provider = span.model, span.attributes.get("gen_ai.provider.name")
    labels = labels_of(agent=agent, model=model, provider=provider, outcome=span.outcome)
    found["turntrace.model_requests"][labels] += 1
    first_ms = span.attributes.get("turntrace.first_token_ms")
    if first_ms is not None:
        point("turntrace.generation.first_token", first_ms / 1e3, model=model, provider=provider)
    if usage is None:
        return
    if usage.provenance == "missing":
        found["turntrace.usage_missing"][labels_of(agent=agent, model=model)] += 1
    for kind, field in TOKENS.items():
        if getattr(usage, field) is not None:
            found["turntrace.tokens"][labels_of(agent=agent, model=model, type=kind)] += getattr(usage, field)
    seconds = (span.end_ns - span.start_ns) / 1e9 - (first_ms or 0) / 1e3
    if first_ms is not None and usage.output_tokens is not None and seconds > 0:
        point("turntrace.generation.output_rate", usage.output_tokens / seconds, model=model)


def _retried_model(turn, wait):
    """The model of the call that the wait lies in, else of the call that ended first, before it."""
    spans = {span.span_id: span for span in turn.spans}
    above = spans.get(wait.parent_id)
    while above is not None:
        if above.phase == "generation":
            return above.model
        above = spans.get(above.parent_id)
    calls = [span for span in turn.spans if span.phase == "generation" and span.end_ns <= wait.start_ns]
    return min(calls, key=lambda span: span.end_ns).model if calls else None


def _has_above(span, spans, phase):
    above = spans.get(span.parent_id)
    while above is not None:
        if above.phase == phase:
            return True
        above = spans.get(above.parent_id)
    return False


assert set(EVENTS.values()) <= METRICS.keys()
