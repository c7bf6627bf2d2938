"""The metrics that are read when they are sent: turns that run now, exporters' queues, what was dropped.

Nothing is done for them in between, so that a stuck turn is seen and a busy one is not slowed.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from turntrace.core.metric_table import METRICS, Kind
from turntrace.otel.live_turn import LiveTurn
from turntrace.otel.metric_labels import BoundedNames

__all__ = ["ages_ns", "observe", "observe_process"]

_NS_PER_S: Final = 1_000_000_000

Points = Callable[[], Iterable[tuple[float, Mapping[str, str]]]]


def observe(meter: Meter, name: str, points: Points) -> None:
    """Make the instrument of METRICS called ``name``; ``points`` says its values and labels when asked."""
    metric = METRICS[name]
    makers: dict[Kind, Callable[..., object]] = {
        "live_counter": meter.create_observable_counter,
        "updown": meter.create_observable_up_down_counter,
        "gauge": meter.create_observable_gauge,
    }

    def callback(_: CallbackOptions) -> Iterable[Observation]:
        return [Observation(value, dict(labels)) for value, labels in points()]

    makers[metric.kind](name, [callback], metric.unit, metric.what)


def ages_ns(live: Iterable[LiveTurn]) -> list[tuple[str | None, int]]:
    """Agent and age of each turn that runs: not the ended ones, local roots without a phase, or fragments."""
    return [
        (turn.who.agent, turn.now_ns() - turn.start_ns)
        for turn in live
        if turn.end_ns is None and not turn.who.is_remote and (turn.has_phase or not turn.candidate)
    ]


def observe_process(
    meter: Meter,
    agents: BoundedNames,
    dropped: Mapping[str, int],
    live: Callable[[], Iterable[LiveTurn]],
    exporters: Callable[[], Iterable[tuple[str, int, int]]],
) -> None:
    """Make the instruments of one recording process.

    Args:
        meter: makes them.
        agents: bounds the label.
        dropped: running totals by reason.
        live: the turns that may be running.
        exporters: name, batches that failed and spans that wait, of each.
    """
    running = _Running(agents, live)
    observe(meter, "turntrace.turn.active", running.counts)
    observe(meter, "turntrace.turn.oldest", running.oldest_s)
    observe(
        meter,
        "turntrace.dropped",
        lambda: [(total, {"reason": why}) for why, total in tuple(dropped.items())],
    )
    observe(
        meter,
        "turntrace.export.failures",
        lambda: [(failed, {"exporter": name}) for name, failed, _ in exporters()],
    )
    observe(
        meter,
        "turntrace.export.queue",
        lambda: [(waiting, {"exporter": name}) for name, _, waiting in exporters()],
    )


class _Running:
    """Turns that run now, by agent.

    An agent that had a turn once is 0 afterwards: a point that is no longer sent would stay on a dashboard
    for minutes.
    """

    __slots__ = ("_agents", "_live", "_seen")

    def __init__(self, agents: BoundedNames, live: Callable[[], Iterable[LiveTurn]]) -> None:
        self._agents = agents
        self._live = live
        self._seen: set[str] = set()

    def counts(self) -> list[tuple[float, Mapping[str, str]]]:
        return [(len(ages), {"agent": agent}) for agent, ages in self._by_agent().items()]

    def oldest_s(self) -> list[tuple[float, Mapping[str, str]]]:
        return [
            (max(ages, default=0) / _NS_PER_S, {"agent": agent}) for agent, ages in self._by_agent().items()
        ]

    def _by_agent(self) -> dict[str, list[int]]:
        # known: agents whose turns all came and went between two exports
        found: dict[str, list[int]] = {agent: [] for agent in self._seen | self._agents.known}
        for name, age_ns in ages_ns(self._live()):
            found.setdefault(self._agents(name), []).append(age_ns)
        self._seen.update(found)
        return found
