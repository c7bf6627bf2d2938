"""The turns of a run: what was received, joined with what its processes recorded themselves, each span once."""

import os
import subprocess
import sys

import pytest

from otlp_requests import T0_NS, as_agent, traces
from turntrace.collect.sink import RequestFiles
from turntrace.collect.turn_writer import fragment_lines
from turntrace.core.attribution import attributed
from turntrace.core.codec.encode import encode_block
from turntrace.core.codec.journal import header_line, read_journal
from turntrace.core.model import Span, Turn
from turntrace.errors import TraceReadError
from turntrace.files import run_record
from turntrace.files.append import Rotation, append_block
from turntrace.files.journal import JournalFile
from turntrace.files.out import fragment_path, journal_path, requests_folder
from turntrace.files.preparation import prepare
from turntrace.files.read import read_paths
from turntrace.files.recovery import finish_dead
from turntrace.files.run_record import record_run

RUN_TRACE = "0123456789abcdef0123456789abcdef"
RUN_SPAN = "00000000000000aa"
US = 1000
RUN = Turn(
    run_id="run_1",
    trace_id=RUN_TRACE,
    span_id=RUN_SPAN,
    agent="bot",
    labels={"task": "fix"},
    turn_source="run",
    started_ns=T0_NS,
)


@pytest.fixture
def out(tmp_path):
    """The trace of a run."""
    return tmp_path / "t.ndjson"


def header(pid):
    """The journal of the run."""
    return header_line(RUN, pid=pid)


def received(out, *bodies):
    """Requests with these bodies, as the run keeps them."""
    with RequestFiles(requests_folder(out, RUN.run_id)) as sink:
        for body in bodies:
            sink.take("traces", body, "protobuf")


def record(out):
    """Write the turns of the run."""
    return record_run(out, read_journal([header(os.getpid())]), Rotation())


def recorded(out, *bodies):
    """What the trace holds after the run."""
    received(out, *bodies)
    record(out)
    return outer(out)


def outer(out):
    return [turn for turn in read_paths([str(out)]).turns if turn.parent_run_id is None]


def fragment(out, *spans, counters=None, trace_id=RUN_TRACE, pid=None):
    """What a process of the run, or the one with this pid, journaled of a turn that is not its own."""
    turn = Turn(run_id="part", spans=spans, trace_id=trace_id, counters=counters or {})
    path = fragment_path(out, int(trace_id, 16), 1)
    journal = JournalFile(path)
    first, *rest = fragment_lines(turn)
    journal.write(b"".join([first if pid is None else header_line(turn, pid=pid, fragment=True), *rest]))
    journal.close()
    return path


def span(span_id, parent_id, start_us, end_us, phase="tool_execution", **fields):
    """A span of a fragment, on the clock of the requests."""
    return Span(
        span_id=f"{span_id:016x}",
        parent_id=parent_id,
        name=fields.pop("name", "work"),
        phase=phase,
        start_ns=T0_NS + start_us * US,
        end_ns=T0_NS + end_us * US,
        **fields,
    )


def test_a_root_for_each_call_is_one_turn_of_the_run(out):
    """It hangs on the run, has its agent and labels, and every call once."""
    (turn,) = recorded(out, traces(2, trace_id=1), traces(1, trace_id=2, first=9))
    assert (turn.turn_source, turn.agent, turn.labels, turn.span_id) == (
        "run",
        "bot",
        {"task": "fix"},
        RUN_SPAN,
    )
    assert turn.counters["model_requests"] == 3
    assert {one.parent_id for one in turn.spans} == {RUN_SPAN}
    assert turn.completed_ns - turn.started_ns == 8500


def test_nothing_received_writes_nothing(out):
    """Neither without a folder nor with an empty one."""
    assert record(out).turns == []
    requests_folder(out, RUN.run_id).mkdir()
    assert record(out).turns == []
    assert (out.exists(), requests_folder(out, RUN.run_id).exists()) == (False, False)


def test_the_requests_are_gone_when_their_turns_are_written(out):
    """And are not written a second time where they stayed."""
    assert len(recorded(out, traces(1))) == 1
    assert not requests_folder(out, RUN.run_id).exists()
    assert len(recorded(out, traces(1))) == 1


def test_what_stands_in_the_trace_is_not_told_again(out):
    """A process that recorded itself and sent its spans too is in the trace once."""
    known = Turn(
        run_id="0000000000000009",
        trace_id=f"{1:032x}",
        span_id="0000000000000009",
        started_ns=T0_NS,
        completed_ns=T0_NS + 10_000,
        spans=(span(1, "0000000000000009", 1, 2, "generation"),),
    )
    append_block(out, encode_block(known, attributed(known)), Rotation())
    turns = recorded(out, traces(2))
    assert [[one.span_id for one in turn.spans] for turn in turns] == [[f"{1:016x}"], [f"{2:016x}"]]


@pytest.mark.parametrize(
    "parent_id", [f"{1:016x}", RUN_SPAN, f"{77:016x}"], ids=["a call", "the run", "nobody"]
)
def test_a_fragment_becomes_part_of_the_turn(out, parent_id):
    """Whatever it hangs on; its calls, counters and tools are the turn's, and its file is gone."""
    path = fragment(
        out,
        span(500, parent_id, 2, 3, tool="search", name="execute_tool search"),
        span(501, f"{500:016x}", 2, 3, "generation"),
        counters={"pages": 4},
    )
    (turn,) = recorded(out, traces(3))
    assert (turn.counters["model_requests"], turn.counters["tool_calls"], turn.counters["pages"]) == (4, 1, 4)
    placed = {one.span_id: one for one in turn.spans}[f"{500:016x}"]
    assert placed.parent_id == (parent_id if parent_id == f"{1:016x}" else RUN_SPAN)
    assert placed.parent_source == ("inferred" if parent_id == f"{77:016x}" else "otel")
    assert not path.exists()


def test_a_fragment_of_another_trace_stays(out):
    """It belongs to another run."""
    path = fragment(out, span(500, f"{1:016x}", 2, 3), trace_id="f" * 32)
    (turn, *_) = recorded(out, traces(3))
    assert (len(turn.spans), path.exists()) == (3, True)


def test_fragments_alone_are_the_turn_of_the_run(out):
    """Its processes recorded themselves and sent nothing; without a phase there is no turn."""
    fragment(out, span(500, RUN_SPAN, 2, 3), span(501, f"{500:016x}", 2, 3, None))
    requests_folder(out, RUN.run_id).mkdir()
    (turn,) = recorded(out)
    assert (turn.turn_source, turn.agent, turn.span_id, turn.counters["tool_calls"]) == (
        "run",
        "bot",
        RUN_SPAN,
        1,
    )
    assert (turn.started_ns - T0_NS, turn.completed_ns - T0_NS) == (2 * US, 3 * US)


def test_fragments_without_a_phase_are_no_turn(out):
    """Structure alone says nothing."""
    fragment(out, span(500, RUN_SPAN, 2, 3, None))
    received(out)
    assert record(out).turns == []


def test_of_several_turns_the_one_around_it_gets_the_fragment(out):
    """By its parent, else by its time; what fits nowhere stays beside the trace."""
    prompts = [traces(1, trace_id=one, first=one * 1000, name="a") for one in (1, 2)]
    agents = [as_agent(body) for body in prompts]
    fragment(out, span(500, f"{77:016x}", 2000.2, 2000.3))
    first, second = sorted(recorded(out, *agents), key=lambda turn: turn.started_ns)
    assert ([len(turn.spans) for turn in (first, second)]) == [0, 1]


def dead_pid():
    """The pid of a process that is gone."""
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    return dead.pid


def killed(out):
    """The journal of a run whose process is gone."""
    journal = JournalFile(journal_path(out, RUN.run_id))
    journal.write(header(dead_pid()))
    journal.close()


def test_a_run_that_was_killed_is_read_and_finished(out):
    """Its journal and its requests are there: a report shows them, the next writer puts them into the trace."""
    killed(out)
    received(out, traces(2))
    fragment(out, span(500, f"{1:016x}", 2, 3))
    out.touch()
    (seen,) = outer(out)
    assert finish_dead(out, Rotation()) == 1
    (turn,) = outer(out)
    assert [one.span_id for one in turn.spans] == [one.span_id for one in seen.spans]
    assert list(out.parent.glob("*.part")) == [] == list(out.parent.glob("*.otlp"))


@pytest.mark.parametrize("step", ["remove_joined", "shutil.rmtree"])
def test_a_kill_after_the_turns_were_written_tells_nothing_twice(out, monkeypatch, step):
    """Requests and fragments whose spans stand in the trace add nothing, to a report and to the next run."""

    def die(*_, **__):
        raise KeyboardInterrupt

    killed(out)
    received(out, traces(2))
    fragment(out, span(500, RUN_SPAN, 2, 3), counters={"pages": 4}, pid=dead_pid())
    monkeypatch.setattr(f"turntrace.files.run_record.{step}", die)
    with pytest.raises(KeyboardInterrupt):
        record(out)
    monkeypatch.undo()
    (seen,) = outer(out)
    assert (len(seen.spans), seen.counters["pages"]) == (3, 4)
    finish_dead(out, Rotation())
    assert outer(out) == [seen]


def test_a_block_that_was_torn_is_told_once(out, monkeypatch):
    """While its requests are there these tell the turn; then the whole block, which stands behind it, does."""
    killed(out)
    received(out, traces(2))

    def cut(path, lines, _):
        path.write_bytes(b"".join(lines)[:-400])
        raise KeyboardInterrupt

    monkeypatch.setattr(run_record, "append_block", cut)
    with pytest.raises(KeyboardInterrupt):
        record(out)
    monkeypatch.undo()
    (seen,) = outer(out)
    assert (seen.status, len(seen.spans)) == ("ok", 2)
    finish_dead(out, Rotation())
    (turn,) = outer(out)
    assert (turn.run_id, turn.status, len(turn.spans)) == (seen.run_id, "ok", 2)


def test_a_journal_whose_requests_are_gone_is_no_turn(out):
    """A run that was killed before it deleted its journal has written its turns."""
    killed(out)
    out.touch()
    assert outer(out) == []


def test_a_fresh_trace_has_nothing_of_an_older_run(out):
    """Its journals and its requests go with the text of the file."""
    killed(out)
    received(out, traces(1))
    fragment(out, span(500, RUN_SPAN, 2, 3), pid=dead_pid())
    requests_folder(out, "run_without_a_journal").mkdir()
    prepare(out, truncate=True)
    assert [path.name for path in out.parent.iterdir()] == [out.name]


def test_a_fresh_trace_takes_nothing_from_a_run_that_lives(out):
    """Two runs into one file: what the first received, and what its processes recorded, is written at its end."""
    gone = dead_pid()
    path = fragment(out, span(500, f"{1:016x}", 2, 3), pid=gone)
    other = fragment(out, span(501, RUN_SPAN, 2, 3), trace_id="f" * 32, pid=gone)
    journal = JournalFile(journal_path(out, RUN.run_id))
    journal.write(header(os.getpid()))
    received(out, traces(2))
    prepare(out, truncate=True)
    assert (path.exists(), other.exists()) == (True, False)
    (turn,) = record_run(out, read_journal(journal.read()), Rotation()).turns
    assert len(turn.spans) == 3
    journal.delete()


def test_a_disk_that_is_full_keeps_the_requests(out, monkeypatch):
    """Nothing is deleted before it stands in the trace."""
    received(out, traces(1))

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(run_record, "append_block", full)
    with pytest.raises(OSError, match="No space"):
        record(out)
    monkeypatch.undo()
    assert len(record(out).turns) == 1


def test_requests_that_cannot_be_opened(out):
    """The error names the file; what came is left."""
    (requests_folder(out, RUN.run_id) / "traces.pb").mkdir(parents=True)
    with pytest.raises(TraceReadError, match=r"traces\.pb"):
        record(out)
    assert requests_folder(out, RUN.run_id).exists()
