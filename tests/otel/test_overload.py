"""More turns than can be closed: nothing is lost, memory and the exit stay bounded."""

import time

import turntrace as tt
from recordings import Recorded
from turntrace.files.append import Rotation
from turntrace.files.out import parts_of
from turntrace.files.read import read_paths
from turntrace.files.recovery import finish_dead
from turntrace.otel import writer as writers


def whole(out, count):
    """``count`` turns are read, ended and with their tool, wherever they stand."""
    turns = read_paths([str(out)], strict=True).turns
    assert len(turns) == count
    assert {turn.status for turn in turns} == {"ok"}
    assert {tuple(span.tool for span in turn.spans) for turn in turns} == {("t",)}


def record(count):
    """That many turns of one tool."""
    for _ in range(count):
        with tt.turn("a"), tt.tool("t"):
            pass


def test_turns_beyond_the_bound_stay_in_their_journal(tmp_path, monkeypatch):
    """When too many turns wait for their block the next ones are left to whoever opens the file next."""
    monkeypatch.setattr(writers, "LATER_LIMIT", 5)
    out = tmp_path / "t.ndjson"
    with Recorded(out, journal="thread") as recorded:
        with recorded.processor.recording.writer.paused():
            record(20)
        recorded.processor.force_flush()
        assert recorded.guard.dropped["unclosed"] == 15
        assert not recorded.processor.recording.table.live
        whole(out, 20)
    assert parts_of(out)
    whole(out, 20)


def test_at_the_end_of_its_time_the_exit_leaves_the_rest(tmp_path):
    """Turns that could not be closed in time are whole in their journals, in both modes."""
    for journal in ("thread", "sync"):
        out = tmp_path / f"{journal}.ndjson"
        out.touch()
        with Recorded(out, journal=journal) as recorded:
            with recorded.processor.recording.writer.paused():
                record(20)
                recorded.processor.closer.close_all(time.monotonic())
            assert recorded.guard.dropped["unclosed"] == 20
        whole(out, 20)


def test_without_a_journal_what_is_left_is_lost_and_counted(tmp_path):
    """With journals off there is nothing to finish a turn from."""
    with Recorded(tmp_path / "t.ndjson", journal="off") as recorded:
        with recorded.processor.recording.writer.paused():
            record(2)
            recorded.processor.closer.close_all(time.monotonic())
        assert recorded.guard.dropped["unclosed"] == 2


def test_the_next_process_finishes_what_was_left(tmp_path, monkeypatch):
    """What a process left when it died becomes blocks, once."""
    out = tmp_path / "t.ndjson"
    out.touch()
    with Recorded(out, journal="thread") as recorded, recorded.processor.recording.writer.paused():
        record(3)
        recorded.processor.closer.close_all(time.monotonic())
    monkeypatch.setattr("turntrace.files.fragments.is_alive", lambda pid, ticks: False)
    assert finish_dead(out, Rotation()) == 3
    assert finish_dead(out, Rotation()) == 0
    assert parts_of(out) == []
    whole(out, 3)
