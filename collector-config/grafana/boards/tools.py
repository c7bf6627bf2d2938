"""Tools: calls, their own time, and what they wait for."""

from boards.expressions import RECENT, drawn, mean, quantile, rate, ratio, total, zero_if
from boards.panels import Board, Panel, Query

__all__ = ["TOOLS"]

_CALLS = "turntrace.tool_calls"
_OWN = "turntrace.phase.exclusive_time"
_WALL = "turntrace.phase.wall_time"
_TOOL = 'phase="tool_execution"'
_ALL = total(_CALLS)
_FAILED = 'outcome!="ok"'
_NONE = "Empty while no tool call has ended in the time range."

_TOTALS = (
    Panel(
        title="Tool calls",
        means="Tool calls that ended in the time range.",
        empty=_NONE,
        unit="short",
        kind="stat",
        queries=[Query(expr=_ALL)],
        width=5,
        height=4,
    ),
    Panel(
        title="Tool calls not ended well",
        means="Share of the tool calls that ended with an error, were cancelled or never finished.",
        empty=_NONE,
        unit="percentunit",
        kind="stat",
        queries=[Query(expr=ratio(zero_if(total(_CALLS, where=_FAILED), _ALL), _ALL))],
        width=5,
        height=4,
    ),
    Panel(
        title="Own time of tools",
        means="Time of all tool spans without their children, added up; tools side by side count each.",
        empty=_NONE,
        unit="s",
        kind="stat",
        queries=[Query(expr=total(_OWN, where=_TOOL, part="_sum"))],
        width=5,
        height=4,
    ),
    Panel(
        title="Share of turns in tools",
        means="Share of the wall time of turns in which a tool ran, each moment counted once.",
        empty="Empty while no turn with a tool has ended in the time range.",
        unit="percentunit",
        kind="stat",
        queries=[
            Query(expr=ratio(total(_WALL, where=_TOOL, part="_sum"), total(_WALL, part="_sum"))),
        ],
        width=5,
        height=4,
    ),
    Panel(
        title="Waited for a person",
        means="Wall time of turns in which nothing ran but the wait for a person's approval.",
        empty="Empty while no turn has waited for a person in the time range.",
        unit="s",
        kind="stat",
        queries=[Query(expr=total(_WALL, where='phase="permission_wait"', part="_sum"))],
        width=4,
        height=4,
    ),
)

_PER_TOOL = (
    Panel(
        title="By tool",
        means="Calls, failed calls, and own time of a call: its time without what ran below it, such as a queue, "
        "a process or a person's approval.",
        empty=f"{_NONE} The P95 is empty below 20 calls of a tool, failed is where none failed.",
        unit="s",
        kind="table",
        queries=[
            Query(expr=total(_CALLS, "tool"), legend="calls"),
            Query(expr=total(_CALLS, "tool", _FAILED), legend="not ended well"),
            Query(expr=mean(_OWN, "tool", _TOOL), legend="mean own time"),
            Query(expr=quantile(0.95, _OWN, "tool", _TOOL), legend="P95 own time"),
            Query(expr=total(_OWN, "tool", _TOOL, part="_sum"), legend="total own time"),
        ],
        width=24,
        units=(("calls", "short"), ("not ended well", "short")),
    ),
    Panel(
        title="Tool calls a minute",
        means="Calls that ended, by tool.",
        empty=_NONE,
        unit="cpm",
        kind="lines",
        queries=[Query(expr=f"60 * {rate(_CALLS, 'tool')}", legend="{{tool}}")],
    ),
    Panel(
        title="Failed tool calls a minute",
        means="Calls that did not end well, by tool.",
        empty="Empty while no tool call has failed.",
        unit="cpm",
        kind="lines",
        queries=[Query(expr=f"60 * {rate(_CALLS, 'tool', _FAILED)}", legend="{{tool}}")],
    ),
    Panel(
        title="Mean own time of a call",
        means="Time of a tool's span without its children, by tool.",
        empty=_NONE,
        unit="s",
        kind="lines",
        queries=[Query(expr=drawn(_OWN, "tool", _TOOL), legend="{{tool}}", exemplar=True)],
    ),
    Panel(
        title="P95 own time of a call",
        means=f"95 of 100 calls of the last {RECENT} took no longer, by tool; a person's approval is not in it.",
        empty=f"Empty below 20 calls of a tool in {RECENT}.",
        unit="s",
        kind="lines",
        queries=[
            Query(expr=quantile(0.95, _OWN, "tool", _TOOL, window=RECENT), legend="{{tool}}", exemplar=True)
        ],
    ),
    Panel(
        title="What tools wait for",
        means="Mean time of a span without its children, by phase: the queue before a tool, a person, a process, checks.",
        empty="Empty while no such phase has ended in the time range.",
        unit="s",
        kind="lines",
        queries=[
            Query(
                expr=drawn(_OWN, "phase", 'phase=~"tool_queue|permission_wait|process_wait|verification"'),
                legend="{{phase}}",
            )
        ],
        width=24,
        by_phase=True,
    ),
)

TOOLS = Board(
    uid="turntrace-tools",
    title="Tools",
    means="Tool calls: how many, how long by themselves, and what they waited for.",
    variables=("service", "agent"),
    panels=(*_TOTALS, *_PER_TOOL),
)
