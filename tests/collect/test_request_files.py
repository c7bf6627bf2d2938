"""The sink that keeps requests as they came: whole records, whatever happens to the process or the disk."""

import json
import os
import resource
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from otlp_requests import JSON, json_traces, post, traces
from turntrace.collect.receiver import Receiver
from turntrace.collect.sink import RequestFiles
from turntrace.files.read import read_paths

ROOT = Path(__file__).parents[1]


def spans_in(paths):
    """How many model calls the report reads from files."""
    result = read_paths([str(path) for path in paths])
    assert result.issues == []
    return sum(turn.counters["model_requests"] for turn in result.turns)


def test_report_reads_what_was_kept(tmp_path):
    """Protobuf and JSON go to files of their own, each in the form of the collector's file exporter."""
    with RequestFiles(tmp_path / "raw") as sink, Receiver(sink) as receiver:
        post(receiver, traces(2, trace_id=1))
        post(
            receiver, json.dumps(json.loads(json_traces(3, trace_id=2)), indent=1).encode(), content_type=JSON
        )
        post(receiver, traces(4, trace_id=3))
        paths = sink.paths("traces")
        assert sink.paths("logs") == []
    assert [path.name for path in paths] == ["traces.pb", "traces.jsonl"]
    assert [spans_in([path]) for path in paths] == [6, 3]
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths} == {0o600}
    assert stat.S_IMODE((tmp_path / "raw").stat().st_mode) == 0o700


@pytest.mark.parametrize("kind", ["protobuf", "json"])
@pytest.mark.parametrize("lost", [1, 3, 50])
def test_a_torn_record_is_cut_off_before_the_next(tmp_path, kind, lost):
    """A killed process leaves part of a record; nobody was told that it is safe, and it poisons nothing."""
    bodies = {"protobuf": traces, "json": json_traces}[kind]
    with RequestFiles(tmp_path) as sink:
        sink.take("traces", bodies(trace_id=1), kind)
        sink.take("traces", bodies(trace_id=2), kind)
        path = sink.paths("traces")[0]
    os.truncate(path, path.stat().st_size - lost)
    with RequestFiles(tmp_path) as sink:
        sink.take("traces", bodies(trace_id=3), kind)
    assert [turn.trace_id[-1] for turn in read_paths([str(path)]).turns] == ["1", "3"]


def test_a_file_of_nothing_but_a_torn_record_starts_anew(tmp_path):
    """Without any whole record the file is empty again."""
    for name in ("traces.pb", "traces.jsonl"):
        (tmp_path / name).write_bytes(b"\x00\x00")
    with RequestFiles(tmp_path) as sink:
        sink.take("traces", traces(), "protobuf")
        sink.take("traces", json_traces(), "json")
        assert spans_in(sink.paths("traces")[:1]) == spans_in(sink.paths("traces")[1:]) == 1


def test_a_full_disk_leaves_whole_records(tmp_path):
    """What the disk took of a record that did not fit is taken back; the sender is told to try again."""
    code = """if 1:
        import resource, sys
        from pathlib import Path
        from otlp_requests import post, traces
        from turntrace.collect.receiver import Receiver
        from turntrace.collect.sink import RequestFiles
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, resource.RLIM_INFINITY))
        with RequestFiles(Path(sys.argv[1])) as sink, Receiver(sink) as receiver:
            statuses = [post(receiver, traces(30, trace_id=n)).status for n in range(1, 9)]
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            statuses.append(post(receiver, traces(30, trace_id=9)).status)
            print(*statuses)
    """
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], env=env, capture_output=True, text=True, check=True
    )
    statuses = done.stdout.split()
    assert set(statuses) == {"200", "503"}
    assert statuses[-1] == "200"
    assert spans_in([tmp_path / "traces.pb"]) == 30 * statuses.count("200")


def test_a_kill_loses_nothing_that_was_acknowledged(tmp_path):
    """SIGKILL while requests come in: every one that was answered with 200 is in the file."""
    code = """if 1:
        import sys, time
        from pathlib import Path
        from turntrace.collect.receiver import Address, Receiver, Settings
        from turntrace.collect.sink import RequestFiles
        with RequestFiles(Path(sys.argv[1])) as sink, Receiver(sink, Settings(token="t")) as receiver:
            print(receiver.address.port, flush=True)
            time.sleep(60)
    """
    for attempt in range(4):
        folder = tmp_path / str(attempt)
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE, text=True
        )
        receiver = _Elsewhere(int(process.stdout.readline()))
        acknowledged = 0
        try:
            while True:
                body = traces(20, trace_id=acknowledged + 1)
                if acknowledged == 20 + attempt * 7:
                    os.kill(process.pid, signal.SIGKILL)
                acknowledged += post(receiver, body).status == 200
        except OSError:
            process.wait()
        process.stdout.close()
        assert process.returncode == -signal.SIGKILL
        assert acknowledged >= 20
        turns = read_paths([str(folder / "traces.pb")]).turns
        assert {int(turn.trace_id, 16) for turn in turns} >= set(range(1, acknowledged + 1))


class _Elsewhere:
    """A receiver of another process, as post() wants it."""

    def __init__(self, port):
        from turntrace.collect.receiver import Address

        self.address = Address(port=port)
        self.token = "t"
        self.headers = {"authorization": "Bearer t"}


def test_many_open_files_are_closed_again(tmp_path):
    """The sink leaves no descriptor behind."""
    before = len(list(Path("/proc/self/fd").iterdir()))
    with RequestFiles(tmp_path) as sink:
        for signal_name in ("traces", "metrics", "logs"):
            sink.take(signal_name, b"{}", "json")
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > before
