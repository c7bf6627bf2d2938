"""``turntrace collect`` as a person or a supervisor runs it: real processes, signals and kills."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from otlp_receiver import HttpReceiver, refused_endpoint, wait_for
from otlp_requests import json_traces, logs, post, traces
from turntrace.collect.receiver import Address
from turntrace.files.read import read_paths

BIN = Path(sys.executable).parent / "turntrace"
TLS = Path(__file__).parent / "tls"


class Command:
    """A running ``turntrace collect --http 0``."""

    def __init__(self, folder, *arguments, http="0", env=(), token="", stderr="err.txt"):
        self.folder = folder
        self.out = folder / "out.ndjson"
        self._err = folder / stderr
        self.token = token
        self.headers = {"authorization": f"Bearer {token}"}
        with self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [BIN, "collect", *(("--http", http) if http else ()), *arguments],
                cwd=folder,
                env={**os.environ, "TURNTRACE_LINGER": "0.1", **dict(env)},
                stdout=subprocess.PIPE,
                stderr=err,
            )
        wait_for(lambda: "receiving OTLP" in self.errors or self.process.poll() is not None)
        found = re.search(r"https?://([\d.]+):(\d+)", self.errors)
        self.address = found and Address(found[1], int(found[2]))

    @property
    def errors(self):
        """What it said so far."""
        return self._err.read_text()

    @property
    def worker(self):
        """The process that makes turns."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[0])

    def end(self, number=signal.SIGTERM):
        """Ask it to end; its exit status, and its output."""
        self.process.send_signal(number)
        output = self.process.communicate(timeout=60)[0]
        return self.process.returncode, output

    def turns(self):
        """The outermost turns in the file."""
        return [turn for turn in read_paths([str(self.out)]).turns if turn.parent_run_id is None]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


def ended(pid):
    """Whether a process is gone."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_complaint_18_a_signal_ends_it_with_everything_in_the_file(tmp_path, number):
    """What was accepted a moment before the signal is in OUT, and the exit status is 0."""
    with Command(tmp_path, "--trace", "out.ndjson", "--json") as command:
        for trace_id in range(1, 21):
            assert post(command, traces(3, trace_id=trace_id)).status == 200
        assert post(command, json_traces(trace_id=99), content_type="application/json").status == 200
        status, output = command.end(number)
    assert status == 0
    assert len(command.turns()) == 61  # a root a call
    result = json.loads(output)
    assert result["received"]["items"] == {"traces": 61}
    assert (result["made"]["turns"], result["made"]["spans"]) == (61, 61)
    assert result["trace"] == str(command.out)
    assert "61 spans received, 61 turns written, 0 requests refused" in command.errors
    assert not (tmp_path / "out.ndjson.spool").exists()


def test_turns_are_in_the_file_while_it_runs(tmp_path):
    """Nobody has to end it to read them."""
    with Command(tmp_path, "--trace", "out.ndjson") as command:
        post(command, traces())
        assert wait_for(lambda: command.out.stat().st_size)
        assert len(command.turns()) == 1
        assert command.end()[0] == 0


def test_complaint_18_a_kill_loses_nothing_that_was_acknowledged(tmp_path):
    """SIGKILL of the receiver: the process beside it finishes what was acknowledged."""
    with Command(tmp_path, "--trace", "out.ndjson") as command:
        worker = command.worker
        acknowledged = sum(post(command, traces(2, trace_id=n)).status == 200 for n in range(1, 41))
        command.process.kill()
        command.process.wait()
        assert wait_for(lambda: ended(worker), timeout_s=20)
        assert len(command.turns()) == 2 * acknowledged == 80


def test_complaint_18_a_kill_of_both_is_made_good_by_the_next_start(tmp_path):
    """SIGKILL of all processes: the next collect makes turns of what lies in the queue, each once."""
    with Command(tmp_path, "--trace", "out.ndjson", env={"TURNTRACE_LINGER": "0.3"}) as command:
        for trace_id in range(1, 11):
            assert post(command, traces(2, trace_id=trace_id)).status == 200
        assert wait_for(lambda: command.out.stat().st_size)  # some are written, their requests still queued
        for trace_id in range(11, 21):
            assert post(command, traces(2, trace_id=trace_id)).status == 200
        os.kill(command.worker, signal.SIGKILL)
        command.process.kill()
        command.process.wait()
    with Command(tmp_path, "--trace", "out.ndjson", stderr="again.txt") as command:
        assert command.end()[0] == 0
        turns = command.turns()
    assert sorted(int(turn.trace_id, 16) for turn in turns) == sorted([*range(1, 21)] * 2)


def test_a_kill_loses_nothing_that_was_to_be_sent_on(tmp_path):
    """SIGKILL of both with an endpoint that is down: the next start delivers every acknowledged span."""
    endpoint = refused_endpoint()
    arguments = ("--endpoint", endpoint, "--spool", "queue")
    with Command(tmp_path, *arguments) as command:
        for trace_id in range(1, 21):
            assert post(command, traces(2, trace_id=trace_id)).status == 200
        forward = tmp_path / "queue/forward"
        assert wait_for(lambda: sum(path.stat().st_size for path in forward.glob("*.pb")))
        os.kill(command.worker, signal.SIGKILL)
        command.process.kill()
        command.process.wait()
    port = int(endpoint.rpartition(":")[2])
    with HttpReceiver(port=port) as target, Command(tmp_path, *arguments, stderr="again.txt") as command:
        expected = {(trace_id, number) for trace_id in range(1, 21) for number in (1, 2)}
        assert wait_for(
            lambda: {(span.trace_id[-1], span.span_id[-1]) for _, _, span in target.spans()} >= expected
        )
        assert command.end()[0] == 0


def test_a_worker_that_dies_is_started_again(tmp_path):
    """The receiver goes on, says so, and no request is lost."""
    with Command(tmp_path, "--trace", "out.ndjson") as command:
        post(command, traces(trace_id=1))
        first = command.worker
        os.kill(first, signal.SIGKILL)
        post(command, traces(trace_id=2))
        assert wait_for(lambda: "is started again" in command.errors)
        post(command, traces(trace_id=3))
        assert command.end()[0] == 0
        assert sorted(turn.trace_id[-1] for turn in command.turns()) == ["1", "2", "3"]


def test_two_collects_do_not_share_a_queue(tmp_path):
    """The second waits for the first to end its work."""
    with Command(tmp_path, "--trace", "out.ndjson") as command:
        other = subprocess.Popen(
            [BIN, "collect", "--http", "0", "--trace", "out.ndjson"], cwd=tmp_path, stderr=subprocess.PIPE
        )
        assert b"an earlier collect still works" in other.stderr.readline()
        assert command.end()[0] == 0
        assert b"receiving OTLP" in other.stderr.readline()
        other.terminate()
        other.communicate()
        assert other.returncode == 0


def test_spans_go_on_to_the_endpoint(tmp_path):
    """--endpoint without --trace writes no file; the temporary queue is gone afterwards."""
    with HttpReceiver() as target:
        with Command(tmp_path, "--endpoint", target.endpoint, env={"TMPDIR": str(tmp_path)}) as command:
            post(command, traces(2))
            assert wait_for(lambda: len(target.spans()) == 2)
            assert command.end()[0] == 0
        assert sorted(path.name for path in tmp_path.iterdir()) == ["err.txt"]


def test_r54_file_and_endpoint_are_both_served(tmp_path):
    """Neither switches the other off."""
    with HttpReceiver() as target:
        with Command(tmp_path, "--endpoint", target.endpoint, "--trace", "out.ndjson") as command:
            post(command, traces(2))
            assert command.end()[0] == 0
        assert len(target.spans()) == len(command.turns()) == 2


def test_complaint_19_a_dead_endpoint_delays_the_end_by_the_exit_timeout(tmp_path):
    """It ends in time with status 0, says what is left and where, and the next start delivers it."""
    endpoint = refused_endpoint()
    arguments = ("--endpoint", endpoint, "--trace", "out.ndjson", "--spool", "queue")
    with Command(tmp_path, *arguments, env={"TURNTRACE_EXIT_TIMEOUT": "0.5"}) as command:
        post(command, traces(2))
        start_s = time.monotonic()
        assert command.end()[0] == 0
        assert time.monotonic() - start_s < 5
        assert "did not take all spans; the rest is in" in command.errors
        assert len(command.turns()) == 2
    port = int(endpoint.rpartition(":")[2])
    with HttpReceiver(port=port) as target, Command(tmp_path, *arguments, stderr="again.txt") as command:
        assert wait_for(lambda: len(target.spans()) == 2)
        assert command.end()[0] == 0
    assert (tmp_path / "queue").exists()


def test_logs_of_others_are_accepted_and_say_nothing(tmp_path):
    """Logs that no coding agent wrote are taken and leave nothing behind."""
    with Command(tmp_path, "--trace", "out.ndjson") as command:
        assert post(command, logs(), "/v1/logs").status == 200
        assert command.end()[0] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["err.txt", "out.ndjson"]


def test_a_token_keeps_others_out(tmp_path):
    """--token, or TURNTRACE_TOKEN, which no list of processes shows."""
    with Command(
        tmp_path, "--trace", "out.ndjson", env={"TURNTRACE_TOKEN": "s3cret"}, token="s3cret"
    ) as command:
        assert post(command, traces()).status == 200
        assert post(command, traces(), token=False).status == 401
        assert "s3cret" not in command.errors
        assert "with a token" in command.errors
        assert command.end()[0] == 0
        assert "1 request refused" in command.errors


def test_tls_files_are_used(tmp_path):
    """--tls-cert and --tls-key."""
    files = ("--tls-cert", TLS / "certificate.pem", "--tls-key", TLS / "key.pem")
    with Command(tmp_path, "--trace", "out.ndjson", *files) as command:
        assert "https://127.0.0.1:" in command.errors
        assert command.end()[0] == 0


def test_grpc_alone_or_with_http(tmp_path):
    """Each protocol is there when it is asked for."""
    with Command(tmp_path, "--grpc", "127.0.0.1:0", "--trace", "out.ndjson") as command:
        assert len(re.findall(r"http://127.0.0.1:\d+", command.errors)) == 2
        assert command.end()[0] == 0
    with Command(tmp_path, "--grpc", "0", "--trace", "out.ndjson", http=None) as command:
        assert len(re.findall(r"http://127.0.0.1:\d+", command.errors)) == 1
        assert command.end()[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--http", "0.0.0.0:0"], "anybody could send: give a token"),
        (["--http", "[::]:0"], "anybody could send: give a token"),
        (["--grpc", "0.0.0.0:0"], "anybody could send: give a token"),
        (["--http", "localhost"], "write HOST:PORT or PORT"),
        (["--http", "1:99999"], "write HOST:PORT or PORT"),
        (["--http", "0", "--tls-cert", "a.pem"], "needs both --tls-cert and --tls-key"),
        (["--http", "0", "--tls-cert", "a.pem", "--tls-key", "b.pem"], "cannot use a.pem and b.pem for TLS"),
        (["--http", "0", "--endpoint", "localhost:4318"], "write http://HOST:PORT"),
        (["--http", "0", "--trace", "."], "not a regular file"),
        (["--http", "0", "--spool", "file/x"], "cannot use"),
        (["--http", "300.1.1.1:0", "--token", "t"], "cannot listen at 300.1.1.1:0"),
    ],
)
def test_a_mistake_is_told_before_anything_listens(tmp_path, arguments, message):
    """Exit status 2 and the way out."""
    (tmp_path / "file").write_text("")
    done = subprocess.run(
        [BIN, "collect", *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=30
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert "receiving" not in done.stderr


def test_a_port_in_use_is_told(tmp_path):
    """The address is named."""
    with Command(tmp_path, "--trace", "out.ndjson") as command:
        again = [BIN, "collect", "--http", str(command.address.port), "--trace", "other.ndjson"]
        done = subprocess.run(again, cwd=tmp_path, capture_output=True, text=True, timeout=30)
        assert done.returncode == 2
        assert f"cannot listen at {command.address}" in done.stderr
        assert command.end()[0] == 0


def test_without_the_extra_the_way_out_is_named(tmp_path):
    """A base install lacks the HTTP server."""
    code = "import sys; sys.modules['uvicorn'] = None; from turntrace.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "collect"], cwd=tmp_path, capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 2
    assert "pip install 'turntrace[collect]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.glob("*.spool")) == []


def test_other_commands_need_no_extra_and_load_no_server(tmp_path):
    """The server is loaded by who receives."""
    code = """if 1:
        import sys
        sys.modules["uvicorn"] = None
        from turntrace.cli.main import main
        try:
            main()
        finally:
            assert not {"asyncio", "grpc", "h11"} & sys.modules.keys()
    """
    done = subprocess.run(
        [sys.executable, "-c", code, "--help"], cwd=tmp_path, capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 0, done.stderr


def test_a_disk_that_takes_no_turn_is_told_at_the_end(tmp_path):
    """Exit status 1, and where the requests are."""
    with Command(tmp_path, "--trace", "out.ndjson") as command:
        post(command, traces())
        assert wait_for(lambda: command.out.stat().st_size)
        command.out.unlink()
        command.out.mkdir()
        post(command, traces(trace_id=2))
        assert command.end()[0] == 1
        assert "the disk took no more turns; what came is in" in command.errors
    assert list((tmp_path / "out.ndjson.spool/requests").iterdir())


def test_help_has_examples():
    """And every option."""
    done = subprocess.run(
        [BIN, "collect", "--help"], capture_output=True, text=True, env={**os.environ, "COLUMNS": "120"}
    )
    assert done.returncode == 0
    for word in ("--grpc", "--tls-key", "--spool", "turntrace collect --trace turns.ndjson"):
        assert word in done.stdout


def test_r48_silence_is_said_and_is_not_zero_turns_of_something(tmp_path):
    """An agent that sends nothing: no block, no file with zeros, and a line that says so."""
    with Command(tmp_path, "--trace", "out.ndjson") as command:
        assert command.end()[0] == 0
        assert "0 spans received, 0 turns written" in command.errors
    assert command.out.read_bytes() == b""
