"""The tables of docs/dashboards.md: what each panel says, and how many series there can be."""

import math
from collections.abc import Iterator, Mapping
from typing import Final, get_args

from boards.panels import Board
from turntrace.collect.limits import Reason
from turntrace.core.contract import PHASES
from turntrace.core.metric_table import (
    MAX_LABEL_SETS,
    MAX_NAMES,
    METRICS,
    RETRY_REASONS,
    Metric,
    prometheus_name,
)
from turntrace.core.outcomes import Outcome, TurnStatus

__all__ = ["alert_rows", "panel_rows", "series_rows", "with_table"]

_NAMES: Final = ("agent", "model", "provider", "tool")
_DROP_REASONS: Final = 15
_EXPORTERS: Final = 4
_WORST: Final[Mapping[str, int]] = {
    **dict.fromkeys(_NAMES, MAX_NAMES + 2),  # and _other, and unknown
    "phase": len(PHASES) + 1,
    "status": len(get_args(TurnStatus)),
    "outcome": len(get_args(Outcome)),
    "type": 5,
    "exporter": _EXPORTERS,
}
_USUAL: Final[Mapping[str, int]] = {
    **_WORST, "agent": 3, "model": 2, "provider": 1, "tool": 10, "phase": 12, "status": 2, "outcome": 2, "exporter": 1,
}  # fmt: skip
_REASONS: Final[Mapping[str, int]] = {
    "turntrace.retries": len(RETRY_REASONS),
    "turntrace.dropped": _DROP_REASONS,
    "turntrace.receiver.rejected": len(get_args(Reason)),
}


def panel_rows(board: Board) -> Iterator[str]:
    """The table of a dashboard's panels."""
    yield "| panel | what the number means | when it is empty |"
    yield "|---|---|---|"
    for panel in board.panels:
        yield f"| {panel.title} | {panel.means} | {panel.empty} |"


def series_rows() -> Iterator[str]:
    """The table of all metrics with the most series that a process can make of each, and a sum."""
    yield "| metric | in Prometheus | labels | most series | usual |"
    yield "|---|---|---|--:|--:|"
    worst = usual = 0
    for metric in METRICS.values():
        most, often = _series(metric, _WORST), _series(metric, _USUAL)
        worst, usual = worst + most, usual + often
        labels = ", ".join(metric.labels) or "none"
        yield f"| `{metric.name}` | `{prometheus_name(metric)}` | {labels} | {most:,} | {often:,} |"
    yield f"| all | | | {worst:,} | {usual:,} |"


def alert_rows(rules: list[dict[str, object]]) -> Iterator[str]:
    """The table of the alerts."""
    yield "| alert | severity | what to do |"
    yield "|---|---|---|"
    for rule in rules:
        labels, annotations = rule["labels"], rule["annotations"]
        assert isinstance(labels, dict)  # noqa: S101 - the file is ours
        assert isinstance(annotations, dict)  # noqa: S101 - as above
        yield f"| `{rule['alert']}` | {labels['severity']} | {annotations['description']} |"


def with_table(text: str, name: str, rows: Iterator[str]) -> str:
    """``text`` with the rows between its two marks called ``name``."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    table = "".join(f"{row}\n" for row in rows)
    return f"{before}{begin}{table}{end}{after}"


def _series(metric: Metric, values: Mapping[str, int]) -> int:
    """Label sets, beyond the limit with every name _other, times the series that one makes."""
    sizes = {**values, "reason": _REASONS.get(metric.name, 1)}
    sets = (
        _own_time_sets(sizes)
        if "tool" in metric.labels and "phase" in metric.labels
        else math.prod(sizes[label] for label in metric.labels)
    )
    if sets > MAX_LABEL_SETS:
        others = math.prod(sizes[label] for label in metric.labels if label not in _NAMES)
        sets = MAX_LABEL_SETS + others
    return sets * (len(metric.bounds) + 3 if metric.kind == "histogram" else 1)


def _own_time_sets(sizes: Mapping[str, int]) -> int:
    """A tool's name is known of tool spans alone, a model's of generations."""
    return sizes["agent"] * (sizes["phase"] - 3 + sizes["tool"] + sizes["model"])
