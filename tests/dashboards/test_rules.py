"""The alert rules: their queries are of metrics that exist, and each is tried firing and silent."""

from pathlib import Path

import promql_parser as promql
import yaml

from dashboards.lint import metric_of, tree
from turntrace.core.metric_table import METRICS, TURN_BOUNDS_S

ROOT = Path(__file__).parents[2]
RULES = yaml.safe_load((ROOT / "collector-config/rules/turntrace.yaml").read_text())["groups"][0]["rules"]
TRIED = yaml.safe_load((ROOT / "tests/stack/rules_test.yaml").read_text())["tests"]


def test_queries_are_of_metrics_and_labels_that_exist():
    """Every selector and every grouping."""
    for rule in RULES:
        for node, _ in tree(promql.parse(rule["expr"])):
            if isinstance(node, promql.VectorSelector):
                metric, _ = metric_of(node.name)
                assert metric is not None, (rule["alert"], node.name)
                labels = {matcher.name for matcher in node.matchers.matchers}
                assert labels <= {*metric.labels, "le"}, rule["alert"]
            elif isinstance(node, promql.AggregateExpr):
                known = {"job"}.union(*(metric.labels for metric in METRICS.values()))
                assert set(node.modifier.labels) <= known, rule["alert"]


def test_the_objective_is_a_bound_of_the_histogram():
    """A threshold between two bounds would count turns on the wrong side of it."""
    bounds = [
        matcher.value
        for rule in RULES
        for node, _ in tree(promql.parse(rule["expr"]))
        if isinstance(node, promql.VectorSelector)
        for matcher in node.matchers.matchers
        if matcher.name == "le"
    ]
    assert bounds
    assert set(bounds) <= {f"{bound:g}" for bound in TURN_BOUNDS_S}


def test_each_alert_is_tried_firing_and_silent():
    """promtool plays a case of each; here: that there is one."""
    fires, silent = set(), set()
    for case in TRIED:
        for one in case["alert_rule_test"]:
            (fires if one["exp_alerts"] else silent).add(one["alertname"])
    assert fires == silent == {rule["alert"] for rule in RULES}


def test_each_alert_says_what_and_how_bad():
    """A summary with the number or the name in it, a description, a severity."""
    for rule in RULES:
        assert "{{" in rule["annotations"]["summary"]
        assert rule["annotations"]["description"].endswith(".")
        assert rule["labels"]["severity"] in {"info", "warning", "critical"}
