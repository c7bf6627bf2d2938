"""Health of telemetry: what was left out, what waits, what nobody reported."""

from boards.expressions import rate, ratio, selector, total, zero_if
from boards.panels import Board, Panel, Query

__all__ = ["HEALTH"]

_QUEUE = selector("turntrace.export.queue")
_WALL = "turntrace.phase.wall_time"
_UNATTRIBUTED = 'phase="unattributed"'
_LIVE = "Empty for processes that end within a minute, which send no figures of themselves."
_NONE = "Empty while no turn has ended in the time range."
_NO_RECEIVER = "Empty without a receiver that sends metrics."
_CALLS = total("turntrace.model_requests", where='outcome="ok"')

_TOTALS = (
    Panel(
        title="Records left out",
        means="Spans, lines and attributes that telemetry left out in the time range, whatever the reason.",
        empty=_LIVE,
        unit="short",
        kind="stat",
        queries=[Query(expr=zero_if(total("turntrace.dropped"), f"sum({_QUEUE})"))],
        width=4,
        height=4,
    ),
    Panel(
        title="Batches not exported",
        means="Batches of spans that an exporter gave up; their spans are in the trace file all the same.",
        empty=_LIVE,
        unit="short",
        kind="stat",
        queries=[Query(expr=total("turntrace.export.failures"))],
        width=4,
        height=4,
    ),
    Panel(
        title="Spans that wait",
        means="Spans in the exporters' queues now; a full queue (2048 by default) leaves out the newest.",
        empty=_LIVE,
        unit="short",
        kind="stat",
        queries=[Query(expr=f"sum({_QUEUE})")],
        width=4,
        height=4,
    ),
    Panel(
        title="Unattributed",
        means="Share of the wall time of turns in which no phase was active: what the instrumentation does not see.",
        empty=_NONE,
        unit="percentunit",
        kind="stat",
        queries=[
            Query(expr=ratio(total(_WALL, where=_UNATTRIBUTED, part="_sum"), total(_WALL, part="_sum")))
        ],
        width=4,
        height=4,
    ),
    Panel(
        title="Calls without tokens",
        means="Share of the model calls that ended well and reported no tokens.",
        empty="Empty while no model call has ended well in the time range.",
        unit="percentunit",
        kind="stat",
        queries=[Query(expr=ratio(zero_if(total("turntrace.usage_missing"), _CALLS), _CALLS))],
        width=4,
        height=4,
    ),
    Panel(
        title="Turns without an agent's name",
        means="Turns whose spans named no agent; their label is unknown.",
        empty=_NONE,
        unit="short",
        kind="stat",
        queries=[
            Query(expr=zero_if(total("turntrace.turns", where='agent="unknown"'), total("turntrace.turns")))
        ],
        width=4,
        height=4,
    ),
)

_LINES = (
    Panel(
        title="Records left out a minute",
        means="By reason: cardinality is a name beyond the first hundred, export_queue a full queue.",
        empty=f"Empty while nothing is left out. {_LIVE}",
        unit="cpm",
        kind="lines",
        queries=[Query(expr=f"60 * {rate('turntrace.dropped', 'reason')}", legend="{{reason}}")],
    ),
    Panel(
        title="Unattributed over time",
        means="Share of the wall time of turns without a phase, by agent.",
        empty=_NONE,
        unit="percentunit",
        kind="lines",
        queries=[
            Query(
                expr=ratio(
                    rate(_WALL, "agent", _UNATTRIBUTED, part="_sum"), rate(_WALL, "agent", part="_sum")
                ),
                legend="{{agent}}",
            )
        ],
    ),
    Panel(
        title="Exporters' queues",
        means="Spans that wait, by exporter.",
        empty=_LIVE,
        unit="short",
        kind="lines",
        queries=[Query(expr=f"sum by (exporter) ({_QUEUE})", legend="{{exporter}}")],
    ),
    Panel(
        title="Failed batches a minute",
        means="Batches of spans that were not exported, by exporter.",
        empty=_LIVE,
        unit="cpm",
        kind="lines",
        queries=[Query(expr=f"60 * {rate('turntrace.export.failures', 'exporter')}", legend="{{exporter}}")],
    ),
    Panel(
        title="Spans received a minute",
        means="Spans that receivers took, by service.",
        empty=_NO_RECEIVER,
        unit="cpm",
        kind="lines",
        queries=[Query(expr=f"60 * {rate('turntrace.receiver.spans', 'job')}", legend="{{job}}")],
    ),
    Panel(
        title="Requests refused a minute",
        means="Requests and connections that receivers refused, by reason.",
        empty=f"Empty while none is refused. {_NO_RECEIVER}",
        unit="cpm",
        kind="lines",
        queries=[Query(expr=f"60 * {rate('turntrace.receiver.rejected', 'reason')}", legend="{{reason}}")],
    ),
)

HEALTH = Board(
    uid="turntrace-health",
    title="Health of telemetry",
    means="What was left out, what waits to be sent, and what nobody reported.",
    variables=("service", "agent"),
    panels=(*_TOTALS, *_LINES),
)
