"""Panels and dashboards as data, and what builds Grafana's JSON of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from grafana_foundation_sdk.builders import bargauge, stat, table, timeseries
from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.builders import prometheus as prometheus_builders
from grafana_foundation_sdk.models.common import DataSourceRef, StackingMode
from grafana_foundation_sdk.models.dashboard import (
    DashboardLinkType,
    DataTransformerConfig,
    DynamicConfigValue,
    GridPos,
    VariableOption,
    VariableRefresh,
    VariableSort,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from turntrace.core.phase_colors import PHASE_COLORS

__all__ = ["Board", "Panel", "Query", "built"]

PROMETHEUS: Final = DataSourceRef(type_val="prometheus", uid="prometheus")
JAEGER_SEARCH: Final = (
    "$jaeger/search?service=${__data.fields.job}"
    "&tags=%7B%22turntrace.turn.dominant_phase%22%3A%22${__data.fields.phase}%22%7D"
)
"""Turns in Jaeger in which the phase of the row took the most time."""

_WIDTH: Final = 24
Kind = Literal["stat", "bars", "lines", "stack", "table"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is asked; ``legend`` names its series, or its column in a table."""

    expr: str
    legend: str = ""
    exemplar: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One panel. ``means`` says what the number is, ``empty`` why there may be none.

    ``units`` are those of a table's columns that have another one than ``unit``.
    """

    title: str
    means: str
    empty: str
    unit: str
    kind: Kind
    queries: Sequence[Query]
    width: int = 12
    height: int = 8
    by_phase: bool = False
    searches: bool = False
    units: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """One dashboard: panels from left to right and from top to bottom."""

    uid: str
    title: str
    means: str
    variables: Sequence[str]
    panels: Sequence[Panel]


_QUERIES: Final = {
    "service": "label_values(turntrace_turns_total, job)",
    "agent": 'label_values(turntrace_turns_total{job=~"$service"}, agent)',
    "model": 'label_values(turntrace_model_requests_total{job=~"$service", agent=~"$agent"}, model)',
}
_KINDS: Final[dict[Kind, Any]] = {
    "stat": stat.Panel,
    "bars": bargauge.Panel,
    "lines": timeseries.Panel,
    "stack": timeseries.Panel,
    "table": table.Panel,
}


def built(board: Board) -> builders.Dashboard:
    """The dashboard of Grafana's SDK."""
    found = (
        builders.Dashboard(board.title)
        .uid(board.uid)
        .description(board.means)
        .tags(["turntrace"])
        .time("now-1h", "now")
        .refresh("10s")
        .timezone("browser")
        .link(
            builders.DashboardLink("turntrace")
            .type(DashboardLinkType.DASHBOARDS)
            .tags(["turntrace"])
            .keep_time(True)
            .include_vars(True)
        )
    )
    for name in board.variables:
        found = found.with_variable(_variable(name))
    if any(panel.searches for panel in board.panels):
        jaeger = builders.TextBoxVariable("jaeger").label("Jaeger").default_value("http://localhost:16686")
        found = found.with_variable(jaeger)
    for number, (panel, position) in enumerate(_placed(board.panels), start=1):
        found = found.with_panel(_panel(panel).id(number).grid_pos(position))
    return found


def _variable(name: str) -> builders.QueryVariable:
    return (
        builders.QueryVariable(name)
        .label(name.capitalize())
        .datasource(PROMETHEUS)
        .query(_QUERIES[name])
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(VariableOption(selected=True, text="All", value="$__all"))
    )


def _placed(panels: Sequence[Panel]) -> Iterator[tuple[Panel, GridPos]]:
    """Each panel beside the one before, or below when the row is full."""
    x = y = tallest = 0
    for panel in panels:
        if x + panel.width > _WIDTH:
            x, y, tallest = 0, y + tallest, 0
        yield panel, GridPos(h=panel.height, w=panel.width, x=x, y=y)
        x, tallest = x + panel.width, max(tallest, panel.height)


def _panel(panel: Panel) -> Any:
    is_total = panel.kind in {"stat", "bars", "table"}
    found = (
        _KINDS[panel.kind]()
        .title(panel.title)
        .description(f"{panel.means} {panel.empty}")
        .no_value(panel.empty)
        .unit(panel.unit)
        .datasource(PROMETHEUS)
    )
    for query, name in zip(panel.queries, "ABCDEFGH", strict=False):
        found = found.with_target(_target(query, name, is_total=is_total, is_table=panel.kind == "table"))
    if panel.kind == "stack":
        stacking = common_builders.StackingConfig().mode(StackingMode.NORMAL).group("A")
        found = found.stacking(stacking).fill_opacity(70)
    if panel.kind in {"stat", "bars"}:
        found = found.reduce_options(common_builders.ReduceDataOptions().calcs(["lastNotNull"]))
    if panel.kind == "table":
        found = _columns(found, panel)
    if panel.by_phase:
        for phase, color in PHASE_COLORS.items():
            fixed = {"mode": "fixed", "fixedColor": color}
            found = found.override_by_name(phase, [DynamicConfigValue("color", fixed)])
    return found


def _target(query: Query, name: str, *, is_total: bool, is_table: bool) -> prometheus_builders.Dataquery:
    found = (
        prometheus_builders.Dataquery()
        .ref_id(name)
        .datasource(PROMETHEUS)
        .expr(query.expr)
        .legend_format(query.legend or "__auto")
        .exemplar(query.exemplar)
    )
    found = found.instant() if is_total else found.range()
    return found.format(PromQueryFormat.TABLE) if is_table else found


def _columns(found: Any, panel: Panel) -> Any:
    """One table of all queries: rows by their labels, a column for each query."""
    names = {f"Value #{name}": query.legend for query, name in zip(panel.queries, "ABCDEFGH", strict=False)}
    if len(panel.queries) == 1:
        names = {"Value": panel.queries[0].legend}
    else:
        found = found.with_transformation(DataTransformerConfig(id_val="merge", options={}))
    organized = {"excludeByName": {"Time": True}, "renameByName": names}
    found = found.with_transformation(DataTransformerConfig(id_val="organize", options=organized))
    for column, unit in panel.units:
        found = found.override_by_name(column, [DynamicConfigValue("unit", unit)])
    if panel.searches:
        link = {"title": "Turns in Jaeger that were mostly this", "url": JAEGER_SEARCH, "targetBlank": True}
        found = found.override_by_name("phase", [DynamicConfigValue("links", [link])])
    return found
