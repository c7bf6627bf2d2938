"""Zero's own formulas, against figures measured with zero's code."""

import json
from pathlib import Path

import pytest

from turntrace.core.zero_attribution import ZeroSpan, zero_attribution

MS = 1_000_000
EXAMPLES = json.loads((Path(__file__).parents[1] / "data" / "attribution.json").read_text())


@pytest.mark.parametrize("example", EXAMPLES, ids=[example["id"] for example in EXAMPLES])
def test_worked_examples(example):
    """Parents, exclusive times, attributed and coverage are what zero's recorder gave."""
    spans = [
        ZeroSpan(
            name=span["name"],
            start_ns=span["start_ms"] * MS,
            end_ns=span["end_ms"] * MS,
            duration_ns=(span["end_ms"] - span["start_ms"]) * MS,
        )
        for span in example["spans"]
    ]
    result = zero_attribution(spans, wall_ns=example["wall_ms"] * MS)
    expected = example["zero"]
    assert [(times.parent, times.exclusive_ns / MS) for times in result.spans] == [
        (span["parent"], span["exclusive_ms"]) for span in expected["spans"]
    ]
    assert result.attributed_ns == expected["attributed_ms"] * MS
    assert result.coverage == pytest.approx(expected["coverage"], abs=1e-6)
    for times in result.spans:
        row = times.parent_row
        assert times.parent == ("" if row is None else spans[row].name)


def test_a_bare_duration_is_top_level():
    """Without an interval, or with one that runs backwards, a span is exclusive as a whole."""
    result = zero_attribution(
        [
            ZeroSpan(name="a", start_ns=0, end_ns=100, duration_ns=100),
            ZeroSpan(name="b", duration_ns=30),
            ZeroSpan(name="c", start_ns=10, duration_ns=5),
            ZeroSpan(name="d", start_ns=50, end_ns=20, duration_ns=7),
            ZeroSpan(name="e", duration_ns=-4),
            ZeroSpan(name="f", start_ns=10, end_ns=20, duration_ns=10),
        ],
        wall_ns=1000,
    )
    assert [times.exclusive_ns for times in result.spans] == [90, 30, 5, 7, 0, 10]
    assert [times.parent_row for times in result.spans] == [None, None, None, None, None, 0]
    assert result.attributed_ns == 142
    assert result.coverage == 0.1


@pytest.mark.parametrize("wall_ns", [0, -5])
def test_no_wall_no_coverage(wall_ns):
    """Coverage of an empty or backward window is 0."""
    spans = [ZeroSpan(name="a", start_ns=0, end_ns=9, duration_ns=9)]
    assert zero_attribution(spans, wall_ns=wall_ns).coverage == 0.0
