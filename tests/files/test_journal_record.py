"""The turn that a journal tells."""

import pytest

from files.journals import MS, START_NS, header, phase, root_end, turn_lines, write_fragment, write_journal
from turntrace.core.codec.journal import read_journal
from turntrace.files.fragments import read_parts
from turntrace.files.journal_record import finished_record, journal_record


def test_a_record_counts_calls_and_joins_fragments(tmp_path):
    """What a journal tells becomes a turn with its counters, its fragments and whether it was sampled."""
    out = tmp_path / "t.ndjson"
    lines = turn_lines("r1", 1, phase(2), root_end("r1"))
    write_fragment(out, 99, phase(5, name="generation", parent=2, model="m"))
    write_journal(out, "r9", 1, phase(7))
    record = journal_record(lines, read_parts(out), sampled=False)
    assert record.sampled is False
    assert sorted(span.span_id[-1] for span in record.spans) == ["2", "5"]
    assert (record.counters["tool_calls"], record.counters["model_requests"]) == (1, 1)


@pytest.mark.parametrize(
    ("outcomes", "status"),
    [(["ok"], "ok"), (["error"], "error"), (["error", "ok"], "ok"), ([], "interrupted")],
)
def test_a_turn_without_a_root_runs_over_its_phases(outcomes, status):
    """A lone call is a turn from its start to its end, and failed when it did; structure alone is none."""
    spans = [
        phase(number, name="generation", parent=None, at=(number, number + 2), outcome=outcome)
        for number, outcome in enumerate(outcomes, 2)
    ]
    head = header("r1", 1).replace(b'"span_id":"0000000000000001",', b"")
    assert b'"span_id"' not in head
    record = finished_record(read_journal([head, *spans, phase(99, name=None, at=(0, 50))]), ())
    assert record.status == status
    if outcomes:
        assert record.started_ns == START_NS + 2 * MS
        assert record.completed_ns == START_NS + (len(outcomes) + 3) * MS
    else:
        assert record.completed_ns is None
