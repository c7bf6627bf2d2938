"""promtool plays the alert rules: each fires on what it is for and is silent beside it."""

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from dashboards.lint import expressions, substituted
from stack.conftest import need
from stack.install import binary

pytestmark = pytest.mark.servers
ROOT = Path(__file__).parents[2]
RULES = ROOT / "collector-config/rules/turntrace.yaml"


def promtool(*arguments):
    """Run promtool and return what it says."""
    need("promtool")
    done = subprocess.run([binary("promtool"), *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_rules_fire_and_are_silent(tmp_path):
    """Every case of rules_test.yaml."""
    cases = tmp_path / "rules_test.yaml"
    cases.write_text((Path(__file__).parent / "rules_test.yaml").read_text().replace("RULES", str(RULES)))
    assert "SUCCESS" in promtool("test", "rules", str(cases))


def test_a_rule_that_is_broken_is_noticed(tmp_path):
    """With the threshold of a rule moved its case fails: the cases do test the rules."""
    broken = tmp_path / "broken.yaml"
    broken.write_text(RULES.read_text().replace("> 900", "> 90000"))
    cases = tmp_path / "rules_test.yaml"
    cases.write_text((Path(__file__).parent / "rules_test.yaml").read_text().replace("RULES", str(broken)))
    with pytest.raises(AssertionError, match="FAILED"):
        promtool("test", "rules", str(cases))


def test_a_process_that_died_runs_no_turn(tmp_path):
    """Of two agents whose figures Prometheus still shows, the one whose turn gets no older is left out."""
    age = 'turntrace_turn_oldest_seconds{job="shop", instance="%s", agent="clerk"}'
    case = {
        "interval": "1m",
        "input_series": [
            {"series": age % "dead", "values": "0+60x3 180x20"},
            {"series": age % "live", "values": "0+60x23"},
            {"series": age % "idle", "values": "5 0x22"},
            *(
                {"series": (age % name).replace("oldest_seconds", "active"), "values": f"{turns}x23"}
                for name, turns in (("dead", 4), ("live", 2), ("idle", 0))
            ),
        ],
        "promql_expr_test": [
            {
                "expr": panel_query(title),
                "eval_time": "20m",
                "exp_samples": [{"labels": "{}", "value": value}],
            }
            for title, value in (("Running now", 2), ("Oldest running", 1200))
        ],
    }
    path = tmp_path / "case.yaml"
    path.write_text(yaml.safe_dump({"evaluation_interval": "1m", "tests": [case]}))
    promtool("test", "rules", str(path))


def panel_query(title):
    """The query of a panel of the dashboard Turns, for all services."""
    board = json.loads((ROOT / "collector-config/grafana/dashboards/turntrace-turns.json").read_text())
    return next(
        substituted(target["expr"]) for panel, target in expressions(board) if panel["title"] == title
    )


def test_the_rules_are_in_order():
    """promtool reads them, and Prometheus looks where they are."""
    promtool("check", "rules", str(RULES))
    configured = yaml.safe_load((ROOT / "collector-config/prometheus.yaml").read_text())["rule_files"]
    assert configured == ["rules/*.yaml"]
