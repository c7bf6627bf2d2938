"""The turntrace.* metrics as data: name, kind, unit, labels, bounds and what a number of each means.

Instruments, dashboards, alert rules and the table of the documentation are made from, or held against, this
one table.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal

__all__ = [
    "COUNT_BOUNDS",
    "DURATION_BOUNDS_S",
    "MAX_LABEL_SETS",
    "MAX_NAMES",
    "METRICS",
    "RATIO_BOUNDS",
    "RETRY_REASONS",
    "TURN_BOUNDS_S",
    "Metric",
    "prometheus_name",
    "retry_reason",
]

DURATION_BOUNDS_S: Final = tuple(0.01 * 2**power for power in range(14))
"""0.01 ... 81.92, doubling."""

TURN_BOUNDS_S: Final = tuple(0.1 * 2**power for power in range(16))
"""0.1 ... 3276.8, doubling."""

RATIO_BOUNDS: Final = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0)
"""Shares; most of them lie near 1."""

COUNT_BOUNDS: Final = tuple(float(2**power) for power in range(11))
"""1 ... 1024, doubling."""

MAX_NAMES: Final = 100
"""Distinct values of a label that a process may use; later ones are ``_other``."""

MAX_LABEL_SETS: Final = 2000
"""Distinct label sets that a metric of a process may have; in later ones every name is ``_other``."""

RETRY_REASONS: Final = ("429", "5xx", "timeout", "connect", "stream", "unknown")
"""Why a request was sent again."""

Kind = Literal["histogram", "counter", "live_counter", "updown", "gauge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric. ``what`` is one point in words. A live_counter, an updown and a gauge are read, not told.

    ``collector``: the shipped collector makes it of the spans of processes that send no metrics.
    """

    name: str
    kind: Kind
    unit: str
    what: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()
    collector: bool = True


def _histogram(name: str, unit: str, bounds: tuple[float, ...], labels: tuple[str, ...], what: str) -> Metric:
    return Metric(name=name, kind="histogram", unit=unit, what=what, labels=labels, bounds=bounds)


def _counter(name: str, unit: str, labels: tuple[str, ...], what: str) -> Metric:
    return Metric(name=name, kind="counter", unit=unit, what=what, labels=labels)


def _live(name: str, kind: Kind, unit: str, labels: tuple[str, ...], what: str) -> Metric:
    return Metric(name=name, kind=kind, unit=unit, what=what, labels=labels, collector=False)


_A, _AM = ("agent",), ("agent", "model")

_TABLE: Final = (
    _histogram("turntrace.turn.duration", "s", TURN_BOUNDS_S, ("agent", "status"), "Wall time of a turn"),
    _histogram(
        "turntrace.turn.active_duration",
        "s",
        TURN_BOUNDS_S,
        ("agent", "status"),
        "Wall time of a turn without the time it waited for a person's approval",
    ),
    _histogram("turntrace.turn.coverage", "1", RATIO_BOUNDS, _A, "Share of a turn's time that has a phase"),
    _histogram("turntrace.turn.rounds", "{round}", COUNT_BOUNDS, _A, "Rounds of a turn"),
    _live("turntrace.turn.active", "updown", "{turn}", _A, "Turns that are running now"),
    _live("turntrace.turn.oldest", "gauge", "s", _A, "Age of the oldest running turn, 0 when none runs"),
    _histogram(
        "turntrace.phase.wall_time",
        "s",
        TURN_BOUNDS_S,
        ("agent", "phase"),
        "A phase's share of a turn's wall time; with unattributed they add up to the turn",
    ),
    _histogram(
        "turntrace.phase.exclusive_time",
        "s",
        DURATION_BOUNDS_S,
        ("agent", "phase", "tool", "model"),
        "A span's time without its children",
    ),
    _histogram(
        "turntrace.generation.first_token",
        "s",
        DURATION_BOUNDS_S,
        ("agent", "model", "provider"),
        "From the start of a streamed call to its first token, attempts included",
    ),
    _histogram(
        "turntrace.generation.output_rate",
        "{token}/s",
        COUNT_BOUNDS,
        _AM,
        "Output tokens of a streamed call for each second from its first token to its end",
    ),
    _counter("turntrace.tokens", "{token}", ("agent", "model", "type"), "Tokens that calls reported"),
    _counter(
        "turntrace.model_requests", "{call}", ("agent", "model", "provider", "outcome"), "Model calls ended"
    ),
    _counter("turntrace.tool_calls", "{call}", ("agent", "tool", "outcome"), "Tool calls ended"),
    _counter("turntrace.retries", "{attempt}", ("agent", "model", "reason"), "Requests sent again"),
    _counter("turntrace.usage_missing", "{call}", _AM, "Answered model calls that reported no tokens"),
    _counter("turntrace.turns", "{turn}", ("agent", "status"), "Turns ended"),
    _counter("turntrace.reconnects", "{event}", _A, "Streams opened again"),
    _counter("turntrace.compactions", "{event}", _A, "Times the history was shortened"),
    _counter("turntrace.compaction_attempts", "{event}", _A, "Times shortening the history was tried"),
    _counter("turntrace.completion_nudges", "{event}", _A, "Times an agent was told to go on"),
    _counter("turntrace.acceptance_checks", "{event}", _A, "Checks whether the task is done"),
    _counter("turntrace.model_switches", "{event}", _A, "Changes of the model within a turn"),
    _live("turntrace.dropped", "live_counter", "{record}", ("reason",), "Records left out of telemetry"),
    _live(
        "turntrace.export.failures",
        "live_counter",
        "{batch}",
        ("exporter",),
        "Batches that were not exported",
    ),
    _live("turntrace.export.queue", "gauge", "{span}", ("exporter",), "Spans that wait for their export"),
    _live("turntrace.receiver.spans", "live_counter", "{span}", (), "Spans that a receiver took"),
    _live(
        "turntrace.receiver.rejected", "live_counter", "{request}", ("reason",), "Requests a receiver refused"
    ),
)

METRICS: Final = {metric.name: metric for metric in _TABLE}
"""Every metric by its name."""


def prometheus_name(metric: Metric) -> str:
    """The name under which Prometheus knows ``metric``; a histogram's has ``_bucket`` and others after it.

    >>> prometheus_name(METRICS["turntrace.turn.duration"]), prometheus_name(METRICS["turntrace.turns"])
    ('turntrace_turn_duration_seconds', 'turntrace_turns_total')
    """
    name = metric.name.replace(".", "_")
    name += {"s": "_seconds", "{token}/s": "_per_second"}.get(metric.unit, "")
    return f"{name}_total" if metric.kind in {"counter", "live_counter"} else name


def retry_reason(told: object) -> str:
    """One of RETRY_REASONS for what a retry says of itself: a status, an exception's name, a word.

    >>> [retry_reason(told) for told in ("429", 503, "ReadTimeout", "ConnectError", "stream ended", None)]
    ['429', '5xx', 'timeout', 'connect', 'stream', 'unknown']
    """
    text = str(told).lower()
    if text in RETRY_REASONS:
        return text
    return next((reason for pattern, reason in _REASONS if re.search(pattern, text)), "unknown")


_REASONS: Final = (
    (r"^408$|time(d )?_?out", "timeout"),
    (r"^5\d\d$", "5xx"),
    (r"connect", "connect"),
    (r"stream", "stream"),
)
