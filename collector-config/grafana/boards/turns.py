"""Turns: how many, how long, and where their time goes."""

from boards.expressions import RECENT, alive, drawn, mean, quantile, rate, ratio, total, zero_if
from boards.panels import Board, Panel, Query

__all__ = ["TURNS"]

_DURATION = "turntrace.turn.duration"
_WALL = "turntrace.phase.wall_time"
_ENDED = total("turntrace.turns")
_NONE = "Empty while no turn has ended in the time range."
_LIVE = "Empty for processes that end within a minute, which send no live figures, and before the first turn of a service."
_EVENTS = {
    "turntrace.reconnects": "streams opened again",
    "turntrace.compactions": "history shortened",
    "turntrace.compaction_attempts": "shortening tried",
    "turntrace.completion_nudges": "told to go on",
    "turntrace.acceptance_checks": "checked whether done",
    "turntrace.model_switches": "model changed",
}

_TOTALS = (
    Panel(
        title="Turns",
        means="Turns that ended in the time range: one user prompt until the agent hands control back.",
        empty=_NONE,
        unit="short",
        kind="stat",
        queries=[Query(expr=_ENDED)],
        width=3,
        height=4,
    ),
    Panel(
        title="Not ended well",
        means="Share of the turns that ended with an error, were cancelled or were interrupted.",
        empty=_NONE,
        unit="percentunit",
        kind="stat",
        queries=[
            Query(expr=ratio(zero_if(total("turntrace.turns", where='status!="ok"'), _ENDED), _ENDED)),
        ],
        width=3,
        height=4,
    ),
    Panel(
        title="Mean turn",
        means="Wall time of a turn on average, waiting for a person included.",
        empty=_NONE,
        unit="s",
        kind="stat",
        queries=[Query(expr=mean(_DURATION))],
        width=3,
        height=4,
    ),
    Panel(
        title="P95 turn",
        means="95 of 100 turns took no longer than this; read off buckets that double, so good to a factor of two.",
        empty="Empty below 20 turns in the time range: of fewer it would be the longest one.",
        unit="s",
        kind="stat",
        queries=[Query(expr=quantile(0.95, _DURATION))],
        width=3,
        height=4,
    ),
    Panel(
        title="Mean turn without you",
        means="Wall time of a turn on average, without the time in which it waited for a person's approval.",
        empty=_NONE,
        unit="s",
        kind="stat",
        queries=[Query(expr=mean("turntrace.turn.active_duration"))],
        width=3,
        height=4,
    ),
    Panel(
        title="Coverage",
        means="Share of a turn's time that lies in a phase, on average over turns; the rest is unattributed.",
        empty=_NONE,
        unit="percentunit",
        kind="stat",
        queries=[Query(expr=mean("turntrace.turn.coverage"))],
        width=3,
        height=4,
    ),
    Panel(
        title="Running now",
        means="Turns that have begun and not ended.",
        empty=_LIVE,
        unit="short",
        kind="stat",
        queries=[Query(expr=f"sum({alive('turntrace.turn.active')})")],
        width=3,
        height=4,
    ),
    Panel(
        title="Oldest running",
        means="Age of the turn that runs longest; a stuck turn is here and in no histogram. 0 when none runs.",
        empty=_LIVE,
        unit="s",
        kind="stat",
        queries=[Query(expr=f"max({alive('turntrace.turn.oldest')})")],
        width=3,
        height=4,
    ),
)

_WHERE = (
    Panel(
        title="Where the time went",
        means="Wall time of all turns by phase. Each moment of a turn counts once, so the bars add up to the turns.",
        empty=_NONE,
        unit="s",
        kind="bars",
        queries=[Query(expr=total(_WALL, "phase", part="_sum"), legend="{{phase}}")],
        height=10,
        by_phase=True,
    ),
    Panel(
        title="Where the time went, by service",
        means="Wall time of all turns by service and phase, and its share of the service. "
        "A phase leads to the turns in Jaeger in which it took the most time.",
        empty=_NONE,
        unit="s",
        kind="table",
        queries=[
            Query(expr=total(_WALL, "job, phase", part="_sum"), legend="time"),
            Query(
                expr=f"{total(_WALL, 'job, phase', part='_sum')}"
                f" / on (job) group_left () ({total(_WALL, 'job', part='_sum')} > 0)",
                legend="share",
            ),
        ],
        height=10,
        searches=True,
        units=(("share", "percentunit"),),
    ),
    Panel(
        title="Where a turn's time goes",
        means="Wall time of a turn on average by phase, stacked: the height is the duration of a turn.",
        empty=_NONE,
        unit="s",
        kind="stack",
        queries=[
            Query(
                expr=f"{rate(_WALL, 'phase', part='_sum')}"
                f" / on () group_left () ({rate(_DURATION, part='_count')} > 0)",
                legend="{{phase}}",
            )
        ],
        width=24,
        height=10,
        by_phase=True,
    ),
)

_LINES = (
    Panel(
        title="Turns a minute",
        means="Turns that ended, by how.",
        empty=_NONE,
        unit="cpm",
        kind="lines",
        queries=[Query(expr=f"60 * {rate('turntrace.turns', 'status')}", legend="{{status}}")],
    ),
    Panel(
        title="How long turns take",
        means=f"Mean, median and P95 of the wall time of turns; the quantiles are those of the last {RECENT}. "
        "Points lead to traces.",
        empty=f"Empty while no turn ends; the quantiles below 20 turns in {RECENT}.",
        unit="s",
        kind="lines",
        queries=[
            Query(expr=drawn(_DURATION), legend="mean"),
            Query(expr=quantile(0.5, _DURATION, window=RECENT), legend="median"),
            Query(expr=quantile(0.95, _DURATION, window=RECENT), legend="P95", exemplar=True),
        ],
    ),
    Panel(
        title="Coverage over time",
        means="Share of a turn's time that lies in a phase, on average, by agent.",
        empty=_NONE,
        unit="percentunit",
        kind="lines",
        queries=[Query(expr=drawn("turntrace.turn.coverage", "agent"), legend="{{agent}}")],
    ),
    Panel(
        title="Rounds of a turn",
        means="Rounds on average, by agent: a round is one model call and the tools it asked for.",
        empty=_NONE,
        unit="short",
        kind="lines",
        queries=[Query(expr=drawn("turntrace.turn.rounds", "agent"), legend="{{agent}}")],
    ),
    Panel(
        title="Turns that run",
        means="Turns that have begun and not ended, by agent.",
        empty=_LIVE,
        unit="short",
        kind="lines",
        queries=[Query(expr=f"sum by (agent) {alive('turntrace.turn.active')}", legend="{{agent}}")],
    ),
    Panel(
        title="Age of the oldest turn that runs",
        means="By agent; a line that climbs is a turn that does not end.",
        empty=_LIVE,
        unit="s",
        kind="lines",
        queries=[Query(expr=f"max by (agent) {alive('turntrace.turn.oldest')}", legend="{{agent}}")],
    ),
    Panel(
        title="What happened in turns",
        means="How often in the time range: streams opened again, history shortened, agents told to go on, and so on.",
        empty=_NONE,
        unit="short",
        kind="bars",
        queries=[Query(expr=zero_if(total(name), _ENDED), legend=words) for name, words in _EVENTS.items()],
        width=24,
    ),
)

TURNS = Board(
    uid="turntrace-turns",
    title="Turns",
    means="How many turns, how long they took, and where their time went.",
    variables=("service", "agent"),
    panels=(*_TOTALS, *_WHERE, *_LINES),
)
