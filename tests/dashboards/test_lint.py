"""The lint of dashboards finds what it is there to find."""

import copy

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from orjson import loads

from boards.expressions import quantile, total
from boards.panels import Board, Panel, Query, built
from dashboards.lint import lint


def a_board(*exprs, **panel):
    """A dashboard with a total and a panel of the given queries."""
    first = Panel(
        title="Total",
        means="All.",
        empty="None.",
        unit="short",
        kind="stat",
        queries=[Query(expr=total("turntrace.turns"))],
    )
    second = Panel(
        title="Drawn",
        **{
            "means": "What.",
            "empty": "Why.",
            "unit": "s",
            "kind": "lines",
            "queries": [Query(expr=expr) for expr in exprs],
            **panel,
        },
    )
    board = Board(
        uid="u", title="t", means="All of it.", variables=("service", "agent"), panels=(first, second)
    )
    return loads(JSONEncoder().encode(built(board).build()))


GOOD = total("turntrace.turns", "status")


def test_a_good_dashboard_has_no_finding():
    """What is right passes."""
    assert lint(a_board(GOOD)) == []
    assert lint(a_board(quantile(0.95, "turntrace.turn.duration", "agent"))) == []


@pytest.mark.parametrize(
    ("expr", "finding"),
    [
        ("rate(turntrace_turn_active[5m])", "a rate of turntrace_turn_active, which goes up and down"),
        ("max(increase(turntrace_turn_oldest_seconds[5m]))", "a rate of turntrace_turn_oldest_seconds"),
        ("sum(turntrace_turns_total)", "turntrace_turns_total without a rate"),
        ("sum(turntrace_turn_duration_seconds_sum)", "without a rate"),
        (
            "histogram_quantile(0.9, sum by (le) (turntrace_turn_duration_seconds_bucket)) and on () (vector(1) >= 20)",
            "no rate",
        ),
        (
            "histogram_quantile(0.9, sum by (le) (rate(turntrace_turn_duration_seconds_bucket[5m])))",
            "a quantile of fewer than 20",
        ),
        (
            "histogram_quantile(0.9, sum(rate(turntrace_turn_duration_seconds_bucket[5m]))) and on () (vector(1) >= 20)",
            "a quantile without le",
        ),
        ("sum(rate(turntrace_turnz_total[5m]))", "turntrace_turnz_total is no metric of ours"),
        ("rate(turntrace_turn_duration_seconds[5m])", "is no metric of ours"),
        ("rate(turntrace_turns_sum[5m])", "is no metric of ours"),
        ('rate(turntrace_turns_total{tool="x"}[5m])', "turntrace_turns_total has no label tool"),
        ("sum by (tool) (rate(turntrace_turns_total[5m]))", "grouped by tool, which it does not have"),
        ("rate(turntrace_turns_total[5m)", "no PromQL"),
        ('sum(rate(turntrace_turns_total{agent=~"$nobody"}[5m]))', "$nobody is not declared"),
    ],
)
def test_a_bad_query_is_found(expr, finding):
    """Gauges with a rate, counters without, quantiles of nothing, names and labels that do not exist."""
    assert any(finding in one for one in lint(a_board(expr))), lint(a_board(expr))


@pytest.mark.parametrize(
    ("missing", "finding"),
    [("unit", "no unit"), ("empty", "no text for when it is empty"), ("queries", "no query")],
)
def test_a_panel_says_what_it_is(missing, finding):
    """Unit, description and a text for when there is nothing."""
    assert any(finding in one for one in lint(a_board(GOOD, **{missing: ""})))


def test_a_panel_of_phases_has_their_colours():
    """Each phase its own, the same as everywhere."""
    phases = [Query(expr=total("turntrace.phase.wall_time", "phase", part="_sum"), legend="{{phase}}")]
    findings = lint(a_board(queries=phases))
    assert "Drawn: generation is not #0072b2" in findings
    assert lint(a_board(queries=phases, by_phase=True)) == []


def broken(change):
    """A good dashboard after a change."""
    board = copy.deepcopy(a_board(GOOD))
    change(board)
    return lint(board)


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (lambda b: b["panels"][1].pop("description"), "no description"),
        (lambda b: b["panels"][1]["gridPos"].update(y=0, x=0), "Total and Drawn overlap"),
        (lambda b: b["panels"][1]["gridPos"].update(x=20), "Drawn reaches out of the grid"),
        (lambda b: b["panels"][1].update(id=1), "two panels have one id"),
        (lambda b: b["panels"][1].update(datasource={"uid": "mine"}), "an unknown datasource"),
        (lambda b: b["panels"][1].update(datasource="mine"), "an unknown datasource"),
        (lambda b: b["panels"].reverse(), "totals do not come first"),
        (lambda b: b.update(refresh="1m"), "not refreshed every 10 s"),
        (lambda b: b.update(time={"from": "now-6h", "to": "now"}), "not the last hour"),
        (lambda b: b.pop("description"), "it has no description"),
        (lambda b: b["templating"]["list"][0].update(includeAll=False), "$service has no All"),
        (
            lambda b: b["templating"]["list"].append({"name": "tool", "type": "textbox"}),
            "$tool is declared and not used",
        ),
    ],
)
def test_a_bad_dashboard_is_found(change, finding):
    """Layout, datasources, defaults and variables."""
    assert any(finding in one for one in broken(change)), broken(change)
