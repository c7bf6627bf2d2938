"""What a dashboard of ours must hold to; every finding is a sentence."""

import itertools
import re
from collections.abc import Iterator
from typing import Any

import promql_parser as promql

from turntrace.core.metric_table import METRICS, prometheus_name
from turntrace.core.phase_colors import PHASE_COLORS

__all__ = ["DATASOURCES", "SUFFIXES", "expressions", "lint", "metric_of", "substituted", "tree"]

DATASOURCES = frozenset({"prometheus", "jaeger"})
"""The uids that provisioning declares."""

SUFFIXES = ("_bucket", "_sum", "_count")
RATES = frozenset({"rate", "increase", "irate"})
COLUMNS = 24
BUILT_IN = frozenset(
    {"__range", "__rate_interval", "__interval", "__data.fields.job", "__data.fields.phase", "__all"}
)
EVERY_SERIES = frozenset({"job", "instance", "le"})
_NAMES = {prometheus_name(metric): metric for metric in METRICS.values()}


def lint(board: dict[str, Any]) -> list[str]:
    """All findings of one dashboard."""
    found = [*_whole(board), *_layout(board["panels"]), *_uids(board), *_variables(board)]
    for panel in board["panels"]:
        found += [f"{panel.get('title', 'a panel')}: {finding}" for finding in _panel(panel)]
    return found


def expressions(board: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each panel with each of its targets."""
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            yield panel, target


def substituted(expr: str, window: str = "5m", values: dict[str, str] | None = None) -> str:
    """``expr`` as Prometheus gets it: windows for Grafana's intervals, ``.*`` for variables that say All."""
    for name in ("$__rate_interval", "$__range", "$__interval"):
        expr = expr.replace(name, window)
    return re.sub(r"\$\{?(\w+)(?::\w+)?\}?", lambda found: (values or {}).get(found[1], ".*"), expr)


def metric_of(name: str) -> tuple[Any, str]:
    """The metric behind a name in Prometheus and its suffix; (None, "") for a name that no metric has."""
    for suffix in SUFFIXES:
        metric = _NAMES.get(name.removesuffix(suffix))
        if name.endswith(suffix) and metric is not None and metric.kind == "histogram":
            return metric, suffix
    metric = _NAMES.get(name)
    return (None, "") if metric is None or metric.kind == "histogram" else (metric, "")


def tree(node: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Every node of an expression with the nodes above it, the nearest last."""
    yield node, above
    below: list[Any] = []
    for name in ("lhs", "rhs", "expr", "vector_selector"):
        child = getattr(node, name, None)
        below += [] if child is None else [child]
    args = getattr(node, "args", None)
    below += list(args) if args is not None else []
    for child in below:
        yield from tree(child, (*above, node))


def _whole(board: dict[str, Any]) -> Iterator[str]:
    if board.get("time") != {"from": "now-1h", "to": "now"}:
        yield "the default range is not the last hour"
    if board.get("refresh") != "10s":
        yield "it is not refreshed every 10 s"
    kinds = [panel["type"] for panel in board["panels"]]
    if "stat" not in kinds[:1]:
        yield "totals do not come first"
    for what in ("uid", "title", "description"):
        if not board.get(what):
            yield f"it has no {what}"


def _layout(panels: list[dict[str, Any]]) -> Iterator[str]:
    ids = [panel["id"] for panel in panels]
    if len(set(ids)) != len(ids):
        yield "two panels have one id"
    for panel in panels:
        place = panel["gridPos"]
        if place["x"] < 0 or place["x"] + place["w"] > COLUMNS:
            yield f"{panel['title']} reaches out of the grid"
    for one, other in itertools.combinations(panels, 2):
        if _overlap(one["gridPos"], other["gridPos"]):
            yield f"{one['title']} and {other['title']} overlap"


def _overlap(one: dict[str, int], other: dict[str, int]) -> bool:
    return all(
        one[start] < other[start] + other[size] and other[start] < one[start] + one[size]
        for start, size in (("x", "w"), ("y", "h"))
    )


def _uids(board: dict[str, Any]) -> Iterator[str]:
    for uid in _values(board, "datasource"):
        if not isinstance(uid, dict) or uid.get("uid") not in DATASOURCES:
            yield f"an unknown datasource: {uid}"


def _values(node: Any, key: str) -> Iterator[Any]:
    for item in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _values(item, key)
    if isinstance(node, dict) and key in node:
        yield node[key]


def _variables(board: dict[str, Any]) -> Iterator[str]:
    declared = {variable["name"]: variable for variable in board["templating"]["list"]}
    used = set()
    for text in _texts({**board, "templating": [v.get("query", "") for v in declared.values()]}):
        used |= {found[1] or found[2] for found in re.finditer(r"\$(?:\{([\w.]+)(?::\w+)?\}|(\w+))", text)}
    for name in sorted(used - declared.keys() - BUILT_IN):
        yield f"${name} is not declared"
    for name in sorted(declared.keys() - used):
        yield f"${name} is declared and not used"
    for name, variable in declared.items():
        if variable["type"] == "query" and not (variable["includeAll"] and variable["allValue"] == ".*"):
            yield f"${name} has no All"


def _texts(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    for item in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _texts(item)


def _panel(panel: dict[str, Any]) -> Iterator[str]:
    defaults = panel.get("fieldConfig", {}).get("defaults", {})
    for what, value in (
        ("title", panel.get("title")),
        ("unit", defaults.get("unit")),
        ("description", panel.get("description")),
        ("text for when it is empty", defaults.get("noValue")),
        ("query", panel.get("targets")),
    ):
        if not value:
            yield f"no {what}"
    for target in panel.get("targets", ()):
        yield from _expression(target["expr"])
        if "{{phase}}" in target["legendFormat"]:
            yield from _phases(panel)


def _phases(panel: dict[str, Any]) -> Iterator[str]:
    fixed = {
        override["matcher"]["options"]: setting["value"]["fixedColor"]
        for override in panel["fieldConfig"]["overrides"]
        for setting in override["properties"]
        if setting["id"] == "color"
    }
    for phase, color in PHASE_COLORS.items():
        if fixed.get(phase) != color:
            yield f"{phase} is not {color}"


def _expression(expr: str) -> Iterator[str]:
    try:
        root = promql.parse(substituted(expr))
    except ValueError as error:
        yield f"no PromQL: {error}"
        return
    for node, above in tree(root):
        if isinstance(node, promql.VectorSelector):
            yield from _series(node, above)
        if isinstance(node, promql.Call) and node.func.name == "histogram_quantile":
            yield from _quantile(node, above)


def _series(node: Any, above: tuple[Any, ...]) -> Iterator[str]:
    metric, suffix = metric_of(node.name or "")
    if metric is None:
        yield f"{node.name} is no metric of ours"
        return
    labels = {matcher.name for matcher in node.matchers.matchers}
    for label in sorted(labels - set(metric.labels) - EVERY_SERIES):
        yield f"{node.name} has no label {label}"
    rated = any(isinstance(one, promql.Call) and one.func.name in RATES for one in above)
    is_live = metric.kind in {"gauge", "updown"}
    if is_live and rated:
        yield f"a rate of {node.name}, which goes up and down"
    if not is_live and not rated:
        yield f"{node.name}{suffix and ' of a histogram'} without a rate"
    for one in above:
        if isinstance(one, promql.AggregateExpr):
            yield from _grouping(one, metric)


def _grouping(node: Any, metric: Any) -> Iterator[str]:
    labels = [] if node.modifier is None else node.modifier.labels
    for label in labels:
        if label not in metric.labels and label not in EVERY_SERIES:
            yield f"{metric.name} is grouped by {label}, which it does not have"


def _quantile(node: Any, above: tuple[Any, ...]) -> Iterator[str]:
    below = [one for one, _ in tree(node)]
    if not any(isinstance(one, promql.Call) and one.func.name in RATES for one in below):
        yield "a quantile of everything since the start: no rate"
    if not any(
        isinstance(one, promql.AggregateExpr) and one.modifier is not None and "le" in one.modifier.labels
        for one in below
    ):
        yield "a quantile without le"
    guards = [one.rhs.prettify().split() for one in above if isinstance(one, promql.BinaryExpr)]
    if not any(">= 20" in " ".join(words) for words in guards):
        yield "a quantile of fewer than 20"
