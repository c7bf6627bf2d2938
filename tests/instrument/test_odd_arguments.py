"""Arguments that nobody should give: the span is there all the same."""

import pytest

import turntrace as tt
from recordings import Recorded


@pytest.mark.parametrize("journal", ["sync", "thread"])
@pytest.mark.parametrize(
    "begin",
    [
        lambda: tt.phase("verification", attributes={1: "a"}),
        lambda: tt.phase("verification", attributes={None: "a", "": 1, b"x": 2}),
        lambda: tt.phase("verification", attributes={"turntrace.round": "abc"}),
        lambda: tt.tool(123),
        lambda: tt.tool(["x"]),
    ],
)
def test_a_span_with_odd_arguments_is_recorded_and_exported(tmp_path, journal, begin):
    """Once in the file and once at the exporter, ended, and nothing is counted as lost."""
    with Recorded(tmp_path / "t.ndjson", journal=journal) as recorded, tt.turn("a"), begin():
        pass
    (block,) = recorded.blocks()
    (span,) = block.turn.spans
    assert span.outcome == "ok"
    assert len(recorded.exporter.get_finished_spans()) == 2
    assert not recorded.guard.dropped
