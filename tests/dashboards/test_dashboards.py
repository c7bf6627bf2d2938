"""The dashboards: made from their source, and as our own lint wants them."""

import json
import re
from pathlib import Path

import pytest
import yaml

from dashboards.lint import DATASOURCES, expressions, lint, substituted
from make_dashboards import BOARDS, DOCUMENT, FOLDER, document, text
from turntrace.core.metric_table import METRICS

ROOT = Path(__file__).parents[2]
FILES = sorted(FOLDER.glob("*.json"))


def test_the_json_is_what_the_source_makes():
    """Nobody edits the files by hand, and nobody forgets to write them."""
    assert {path.name: path.read_text() for path in FILES} == {f"{b.uid}.json": text(b) for b in BOARDS}, (
        "run python collector-config/grafana/make_dashboards.py"
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_dashboard_has_no_finding(path):
    """Names, units, descriptions, colours, variables, layout and the form of every query."""
    assert lint(json.loads(path.read_text())) == []


def test_the_document_has_the_tables_that_the_source_makes():
    """What each panel means, the alerts, and the most series of each metric."""
    written = DOCUMENT.read_text()
    assert document(written) == written, "run python collector-config/grafana/make_dashboards.py"
    for board in BOARDS:
        for panel in board.panels:
            assert f"| {panel.title} | {panel.means} | {panel.empty} |" in written
    assert all(f"`{name}`" in written for name in METRICS)


def test_the_document_explains_every_reason_of_a_loss():
    """Each reason that the code can count has a row."""
    explained = set(re.findall(r"`(\w+)`", DOCUMENT.read_text().split("| reason |")[1].split("## Alerts")[0]))
    code = "".join(path.read_text() for path in (ROOT / "src/turntrace/otel").glob("*.py"))
    reasons = set(re.findall(r"""(?:\.drop\(|dropped\[)"(\w+)\"""", code))
    assert reasons <= explained
    assert len(reasons | explained - {"_other"}) <= 15, "the table of series counts with 15"


def test_the_datasources_are_those_that_are_provisioned():
    """What the lint knows is what Grafana is given."""
    provisioned = yaml.safe_load((FOLDER.parent / "provisioning/datasources/turntrace.yaml").read_text())
    assert {one["uid"] for one in provisioned["datasources"]} == DATASOURCES


def test_the_four_dashboards_are_there():
    """Turns, models, tools and the health of telemetry, each with links to the others."""
    boards = [json.loads(path.read_text()) for path in FILES]
    assert {board["title"] for board in boards} == {"Turns", "Models", "Tools", "Health of telemetry"}
    for board in boards:
        assert [link["tags"] for link in board["links"]] == [["turntrace"]]


def test_the_unattributed_is_always_drawn():
    """No query of wall time by phase leaves a phase out, so that the stack is the whole turn."""
    by_phase = [
        target["expr"]
        for path in FILES
        for _, target in expressions(json.loads(path.read_text()))
        if "wall_time" in target["expr"] and "by (phase" in target["expr"]
    ]
    assert by_phase
    assert not any("phase=" in expr or "phase!" in expr for expr in by_phase)


def test_a_phase_leads_to_the_turns_that_it_dominates():
    """The link is a search of Jaeger by turntrace.turn.dominant_phase, with service and phase of the row."""
    links = [
        setting["value"][0]["url"]
        for path in FILES
        for panel in json.loads(path.read_text())["panels"]
        for override in panel["fieldConfig"]["overrides"]
        for setting in override["properties"]
        if setting["id"] == "links"
    ]
    assert links
    for url in links:
        assert "service=${__data.fields.job}" in url
        assert "turntrace.turn.dominant_phase" in url


def test_variables_and_windows_are_replaced():
    """All is every value; a chosen value is itself; intervals are a window."""
    expr = 'rate(x{job=~"$service", model=~"${model:regex}"}[$__rate_interval])'
    assert substituted(expr, "10m", {"model": "m"}) == 'rate(x{job=~".*", model=~"m"}[10m])'
