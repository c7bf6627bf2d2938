"""What each panel must show, said by panel in plain arithmetic over the trace files: no PromQL is read here.

A value is a dict from label sets to numbers; an empty one means that the panel says that there is nothing.
"""

from collections import defaultdict
from collections.abc import Callable

from metric_oracle import EVENTS, Histogram
from turntrace.core.metric_table import METRICS

__all__ = ["PANELS", "Truth"]

FAILED = {"outcome": lambda outcome: outcome != "ok"}
OK = {"outcome": lambda outcome: outcome == "ok"}


def is_one(**wanted):
    """Labels that must have one value each."""
    return {name: lambda label, value=value: label == value for name, value in wanted.items()}


class Truth:
    """The metrics of one service, as its files say."""

    def __init__(self, measured, job, window_s, *, sends):
        self._measured = measured
        self.job = job
        self.window_s = window_s
        self.sends = sends
        """Whether the process sends metrics itself, live ones among them."""

    def chosen(self, name, by=(), where=()):
        """The values of a metric by the labels in ``by``."""
        found = defaultdict(list)
        for labels, value in self._measured.get(name, {}).items():
            known = {"job": self.job, **dict(labels)}
            if all(wanted(known.get(label, "")) for label, wanted in dict(where).items()):
                key = frozenset((label, known[label]) for label in by if label in known)
                found[key].append(value)
        return found

    def total(self, name, by=(), where=()):
        """A counter's growth, or how many points a histogram has."""
        return {
            key: sum(len(one.values) if isinstance(one, Histogram) else one for one in values)
            for key, values in self.chosen(name, by, where).items()
        }

    def sum(self, name, by=(), where=()):
        """The sum of a histogram's points."""
        return {key: sum(values) for key, values in self.points(name, by, where).items()}

    def points(self, name, by=(), where=()):
        """All points of a histogram."""
        return {
            key: [value for one in values for value in one.values]
            for key, values in self.chosen(name, by, where).items()
        }

    def mean(self, name, by=(), where=()):
        """The mean of a histogram's points."""
        return {key: sum(values) / len(values) for key, values in self.points(name, by, where).items()}

    def quantile(self, share, name, by=(), where=()):
        """A quantile read off the buckets, evenly spread in each; of twenty points and more."""
        bounds = METRICS[name].bounds
        return {
            key: _quantile(share, values, bounds)
            for key, values in self.points(name, by, where).items()
            if len(values) >= 20
        }

    def a_minute(self, name, by=(), where=()):
        """Growth a minute over the window."""
        return {key: 60 * value / self.window_s for key, value in self.total(name, by, where).items()}

    def or_zero(self, found, known):
        """``found``, or 0 where nothing of the kind happened although ``known`` did."""
        return found or dict.fromkeys(known, 0)

    def share(self, name, where):
        """The share of a counter that ``where`` chooses."""
        whole, part = self.total(name), self.total(name, where=where)
        return {key: part.get(key, 0) / value for key, value in whole.items()}

    def live(self, value):
        """A figure that only a process that sends metrics has."""
        return {frozenset(): value} if self.sends else {}


def _quantile(share, values, bounds):
    rank, below = share * len(values), 0
    counts = Histogram.counts(_filled(values), bounds)
    for place, count in enumerate(counts):
        if below + count >= rank and count:
            if place == len(bounds):
                return bounds[-1]
            low = bounds[place - 1] if place else 0.0
            return low + (bounds[place] - low) * (rank - below) / count
        below += count
    raise AssertionError


def _filled(values):
    histogram = Histogram()
    histogram.values = values
    return histogram


def divided(part, whole):
    """Each part by the only whole."""
    [number] = whole.values()
    return {key: value / number for key, value in part.items()}


DURATION, WALL, OWN = "turntrace.turn.duration", "turntrace.phase.wall_time", "turntrace.phase.exclusive_time"
CALLS, TOOLS, TOKENS = "turntrace.model_requests", "turntrace.tool_calls", "turntrace.tokens"
FIRST, TURNS, RETRIES = "turntrace.generation.first_token", "turntrace.turns", "turntrace.retries"
TOOL = is_one(phase="tool_execution")


def one_of(*phases):
    """One of several phases."""
    return {"phase": lambda phase: phase in phases}


def unattributed(t, by=()):
    """The share of the time without a phase."""
    whole, part = t.sum(WALL, by), t.sum(WALL, by, is_one(phase="unattributed"))
    return {key: part[key] / value for key, value in whole.items()}


def missing(t):
    """The share of the answers without tokens."""
    answered, untold = t.total(CALLS, where=OK), t.total("turntrace.usage_missing")
    return {key: untold.get(key, 0) / value for key, value in answered.items()}


def by_service(t):
    """The share of each phase in the service's time."""
    [whole] = t.sum(WALL).values()
    return {key: value / whole for key, value in t.sum(WALL, ("job", "phase")).items()}


Panel = tuple[Callable[[Truth], dict], ...]
PANELS: dict[str, dict[str, Panel]] = {
    "Turns": {
        "Turns": (lambda t: t.total(TURNS),),
        "Not ended well": (lambda t: t.share(TURNS, {"status": lambda status: status != "ok"}),),
        "Mean turn": (lambda t: t.mean(DURATION),),
        "P95 turn": (lambda t: t.quantile(0.95, DURATION),),
        "Mean turn without you": (lambda t: t.mean("turntrace.turn.active_duration"),),
        "Coverage": (lambda t: t.mean("turntrace.turn.coverage"),),
        "Running now": (lambda t: t.live(0),),
        "Oldest running": (lambda t: t.live(0),),
        "Where the time went": (lambda t: t.sum(WALL, ("phase",)),),
        "Where the time went, by service": (lambda t: t.sum(WALL, ("job", "phase")), by_service),
        "Where a turn's time goes": (lambda t: divided(t.sum(WALL, ("phase",)), t.total(DURATION)),),
        "Turns a minute": (lambda t: t.a_minute(TURNS, ("status",)),),
        "How long turns take": (
            lambda t: t.mean(DURATION),
            lambda t: t.quantile(0.5, DURATION),
            lambda t: t.quantile(0.95, DURATION),
        ),
        "Coverage over time": (lambda t: t.mean("turntrace.turn.coverage", ("agent",)),),
        "Rounds of a turn": (lambda t: t.mean("turntrace.turn.rounds", ("agent",)),),
        "Turns that run": (lambda t: dict.fromkeys(t.total(TURNS, ("agent",)), 0) if t.sends else {},),
        "Age of the oldest turn that runs": (
            lambda t: dict.fromkeys(t.total(TURNS, ("agent",)), 0) if t.sends else {},
        ),
        "What happened in turns": tuple(
            lambda t, name=name: t.or_zero(t.total(name), t.total(TURNS))
            for name in (
                "turntrace.reconnects",
                *(one for one in EVENTS.values() if one != "turntrace.reconnects"),
            )
        ),
    },
    "Models": {
        "Model calls": (lambda t: t.total(CALLS),),
        "Calls not ended well": (lambda t: t.share(CALLS, FAILED),),
        "Tokens in": (lambda t: t.total(TOKENS, where=is_one(type="input")),),
        "Read from cache": (
            lambda t: divided(
                t.total(TOKENS, where=is_one(type="cache_read")),
                t.total(TOKENS, where=is_one(type="input")),
            ),
        ),
        "Tokens out": (lambda t: t.total(TOKENS, where=is_one(type="output")),),
        "Retries": (lambda t: t.or_zero(t.total(RETRIES), t.total(CALLS)),),
        "By model": (
            lambda t: t.total(CALLS, ("model",)),
            lambda t: t.total(TOKENS, ("model",), is_one(type="input")),
            lambda t: t.total(TOKENS, ("model",), is_one(type="output")),
            lambda t: t.mean(FIRST, ("model",)),
            lambda t: t.mean(OWN, ("model",), is_one(phase="generation")),
        ),
        "Model calls a minute": (lambda t: t.a_minute(CALLS, ("model",)),),
        "How calls end": (lambda t: t.a_minute(CALLS, ("outcome",)),),
        "Time to the first token": (
            lambda t: t.mean(FIRST, ("model",)),
            lambda t: t.quantile(0.95, FIRST, ("model",)),
        ),
        "Output rate": (lambda t: t.mean("turntrace.generation.output_rate", ("model",)),),
        "Tokens a minute": (lambda t: t.a_minute(TOKENS, ("type",)),),
        "Retries a minute": (lambda t: t.a_minute(RETRIES, ("reason",)),),
        "Answers without tokens": (missing,),
        "Own time of phases around a call": (
            lambda t: t.mean(
                OWN, ("phase",), one_of("prompt_build", "provider_queue", "provider_connect", "retry_wait")
            ),
        ),
    },
    "Tools": {
        "Tool calls": (lambda t: t.total(TOOLS),),
        "Tool calls not ended well": (lambda t: t.share(TOOLS, FAILED),),
        "Own time of tools": (lambda t: t.sum(OWN, where=TOOL),),
        "Share of turns in tools": (lambda t: divided(t.sum(WALL, where=TOOL), t.sum(WALL)),),
        "Waited for a person": (lambda t: t.sum(WALL, where=is_one(phase="permission_wait")),),
        "By tool": (
            lambda t: t.total(TOOLS, ("tool",)),
            lambda t: t.total(TOOLS, ("tool",), FAILED),
            lambda t: t.mean(OWN, ("tool",), TOOL),
            lambda t: t.quantile(0.95, OWN, ("tool",), TOOL),
            lambda t: t.sum(OWN, ("tool",), TOOL),
        ),
        "Tool calls a minute": (lambda t: t.a_minute(TOOLS, ("tool",)),),
        "Failed tool calls a minute": (lambda t: t.a_minute(TOOLS, ("tool",), FAILED),),
        "Mean own time of a call": (lambda t: t.mean(OWN, ("tool",), TOOL),),
        "P95 own time of a call": (lambda t: t.quantile(0.95, OWN, ("tool",), TOOL),),
        "What tools wait for": (
            lambda t: t.mean(
                OWN, ("phase",), one_of("tool_queue", "permission_wait", "process_wait", "verification")
            ),
        ),
    },
    "Health of telemetry": {
        "Records left out": (lambda t: t.live(t.left_out),),
        "Batches not exported": (lambda t: t.live(0),),
        "Spans that wait": (lambda t: t.live(0),),
        "Unattributed": (unattributed,),
        "Calls without tokens": (missing,),
        "Turns without an agent's name": (lambda t: dict.fromkeys(t.total(TURNS), 0),),
        "Records left out a minute": (
            lambda t: (
                {frozenset({("reason", "content")}): 60 * t.left_out / t.window_s}
                if t.sends and t.left_out
                else {}
            ),
        ),
        "Unattributed over time": (lambda t: unattributed(t, ("agent",)),),
        "Exporters' queues": (lambda t: {frozenset({("exporter", "otlp")}): 0} if t.sends else {},),
        "Failed batches a minute": (lambda t: {frozenset({("exporter", "otlp")}): 0} if t.sends else {},),
        "Spans received a minute": (lambda _: {},),
        "Requests refused a minute": (lambda _: {},),
    },
}
