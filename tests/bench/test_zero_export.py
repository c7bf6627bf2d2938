"""zero's statistics and its result document, against what zero itself was measured to make."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turntrace.bench.tasks import Tier
from turntrace.bench.zero_export import ZeroCase, ZeroHead, ZeroOutcome, ZeroTask, zero_document
from turntrace.bench.zero_statistics import round_2, zero_summary

CASES = Path(__file__).parent / "cases"
STATISTICS = json.loads((CASES / "zero_stats.json").read_text())


@pytest.mark.parametrize("case", STATISTICS, ids=range(len(STATISTICS)))
def test_a_summary_is_what_zero_makes_of_the_samples(case):
    """Every measured case, field by field."""
    made = asdict(zero_summary(case["in"]))
    assert made | {"samples": list(made["samples"])} == case["zero"]


@given(st.integers(-(10**9), 10**9))
def test_hundredths_are_kept(hundredths):
    """What has two decimals is not changed."""
    assert round_2(hundredths / 100) == hundredths / 100


def _outcome(given):
    lines = [json.loads(line) for line in given.get("ndjson", "").splitlines()]
    return ZeroOutcome(
        passed=given.get("passed", False),
        wall_ms=given.get("wallMs", 0),
        trace_wall_ms=1000 if lines else 0,
        spans=tuple((line["name"], line["exclusive_ms"]) for line in lines if line["type"] == "span"),
        counters={line["name"]: line["value"] for line in lines if line["type"] == "counter"},
        error=given.get("err", ""),
        trace_issue=given.get("traceIssue", ""),
    )


def _document():
    given = json.loads((CASES / "turnbench_case.in.json").read_text())
    build = given["set"]["buildOnlyClasses"]
    cases = []
    for task in given["set"]["tasks"]:
        tier = Tier.BUILD if task["class"] in build else Tier.CORRECTNESS
        tier = tier if "verificationCommand" in task else Tier.LATENCY
        known = ZeroTask(id=task["id"], task_class=task["class"], tier=tier)
        cases.append(ZeroCase(task=known, outcomes=tuple(map(_outcome, given["outcomes"][task["id"]]))))
    head = ZeroHead(
        suite=given["set"]["id"],
        model=given["model"],
        date="2026-01-02T03:04:05Z",
        iterations=given["iterations"],
        exec_profile=given["execProfile"],
    )
    return zero_document(head, cases)


def test_the_document_is_what_zero_writes_of_the_same_runs():
    """Keys, their order and every figure."""
    expected = json.loads((CASES / "turnbench_case.out.json").read_text())
    made = _document()
    assert made == expected | {"perClass": made["perClass"]}
    assert json.loads(json.dumps(made)) == expected
    assert list(made) == list(expected)
    assert all(list(made["perClass"][name]) == list(found) for name, found in expected["perClass"].items())


def test_nothing_run_is_zeros_and_no_warning():
    """An empty result has no key that zero leaves out."""
    made = zero_document(ZeroHead(suite="s", model="m", date="d", iterations=1), [])
    assert (made["correctnessPassRate"], made["topLatency"], made["perSpan"]) == (0, [], {})
    assert not {"warnings", "correctnessClasses", "mode", "version"} & set(made)


def test_optional_keys_stand_where_zero_puts_them():
    """Mode, profile, version and commit."""
    head = ZeroHead(suite="s", model="m", date="d", iterations=1, mode="x", version="1", commit="abc")
    assert list(zero_document(head, []))[:7] == [
        "schemaVersion", "suite", "model", "mode", "selfCorrect", "version", "commit",
    ]  # fmt: skip
