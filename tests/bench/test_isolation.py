"""Agents that mean harm, real processes every one, in both kinds of isolation."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from bench.hostility import FOUND, command, digest, needs_sandbox, survivors
from turntrace.bench.isolation import CANNOT_STOP, Command, Served
from turntrace.bench.isolation_child import Capture
from turntrace.bench.isolation_folder import RunFolder
from turntrace.bench.isolation_group import ProcessGroups, Watchdog
from turntrace.bench.isolation_sandbox import BubbleWrap


@pytest.fixture
def stopping():
    """Set it and everything ends."""
    return threading.Event()


@pytest.fixture(params=[pytest.param("sandbox", marks=needs_sandbox), "process"])
def confinement(request, stopping):
    """Both kinds."""
    if request.param == "sandbox":
        yield BubbleWrap(FOUND, stopping)
        return
    with Watchdog() as watchdog:
        yield ProcessGroups(watchdog, stopping)


@pytest.fixture
def suite(tmp_path):
    """A folder that holds what no agent may see or change."""
    folder = tmp_path / "suite"
    fixture = folder / "tasks" / "a" / "fixture"
    fixture.mkdir(parents=True)
    (folder / "suite.toml").write_text("the answer is 42")
    (fixture / "test_it.py").write_text("assert False")
    (fixture / "run.sh").write_text("echo hello")
    (fixture / "run.sh").chmod(0o755)
    return folder


def test_modes_and_bytes_of_the_fixture_come_along(suite):
    """The copy is fresh, nobody else's, and gone afterwards with whatever the agent locked."""
    with RunFolder(suite / "tasks" / "a" / "fixture") as folder:
        assert os.access(folder.workspace / "run.sh", os.X_OK)
        assert folder.parent.stat().st_mode & 0o777 == 0o700
        locked = folder.workspace / "locked"
        locked.mkdir()
        (locked / "file").write_text("x")
        locked.chmod(0)
    assert not folder.parent.exists()


def test_a_deed_changes_nothing_outside(confinement, suite):
    """Planted hooks, deleted tests and links stay in the workspace."""
    before = digest(suite)
    with RunFolder(suite / "tasks" / "a" / "fixture") as folder:
        ended = confinement.run(command(folder, "plant"))
        assert (ended.status, ended.timed_out) == (0, False)
        assert (folder.workspace / "conftest.py").exists()
    assert digest(suite) == before


@needs_sandbox
@pytest.mark.parametrize("deed", ["write", "link", "read", "plant"])
def test_in_the_sandbox_no_byte_changes_outside_the_run(deed, suite, stopping):
    """The suite can be neither read nor written, by name or by link."""
    before = digest(suite)
    with RunFolder(suite / "tasks" / "a" / "fixture") as folder:
        ended = BubbleWrap(FOUND, stopping).run(command(folder, deed, suite, hidden=(suite,)))
        assert ended.status == 0, ended.stderr
        assert b"42" not in ended.stdout.data
    assert digest(suite) == before
    for place in ("/etc", "/usr", "/var/tmp", Path.home(), "/tmp", Path.home().parent):
        assert not Path(place, "hostile-was-here").exists()


@needs_sandbox
def test_in_the_sandbox_no_child_survives(suite, stopping, tmp_path):
    """Fifty that left the session twice over."""
    marker = f"survivor-{os.getpid()}-{time.monotonic_ns()}"
    with RunFolder(None) as folder:
        ended = BubbleWrap(FOUND, stopping).run(command(folder, "fork", marker))
        assert ended.status == 0
        assert survivors(marker) == []


def test_what_stays_in_the_group_is_killed_and_said(suite, stopping, tmp_path):
    """Without a sandbox, too, a child left behind does not live on."""
    with Watchdog() as watchdog, RunFolder(None) as folder:
        sleeper = f"import time; time.sleep(600) # {folder.parent.name}"
        code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {sleeper!r}])"
        stay = Command(
            argv=(sys.executable, "-I", "-c", code), cwd=folder.workspace, env=folder.env(), timeout_s=20
        )
        ended = ProcessGroups(watchdog, stopping).run(stay)
        assert (ended.status, ended.left_running) == (0, True)
        assert survivors(sleeper) == []


def test_a_gigabyte_is_counted_and_two_ends_are_kept(confinement):
    """Nothing is held that has no bound."""
    with RunFolder(None) as folder:
        ended = confinement.run(command(folder, "flood", output_bytes=1000))
    assert ended.stdout.total_bytes == 10**9
    assert len(ended.stdout.data) == 1000
    assert ended.stdout.cut_bytes == 10**9 - 1000


@pytest.mark.parametrize(("deed", "forced"), [("hang", False), ("ignore", True)])
def test_a_late_agent_is_asked_and_then_ended(confinement, deed, forced):
    """TERM, two seconds, KILL; the row says which of them it was."""
    with RunFolder(None) as folder:
        started = time.monotonic()
        ended = confinement.run(command(folder, deed, timeout_s=0.5))
    assert (ended.timed_out, ended.forced) == (True, forced)
    assert time.monotonic() - started < 5
    assert ended.wall_ns > 0.5e9


def test_who_is_stopped_is_not_late(confinement, stopping):
    """An interrupted run is no time-out."""
    threading.Timer(0.3, stopping.set).start()
    with RunFolder(None) as folder:
        ended = confinement.run(command(folder, "hang"))
    assert (ended.interrupted, ended.timed_out) == (True, False)


def test_a_command_that_is_not_there_is_an_error(confinement):
    """Not a status that could be the agent's own."""
    with RunFolder(None) as folder:
        missing = Command(argv=("/no/such/agent",), cwd=folder.workspace, env=folder.env(), timeout_s=5)
        ended = confinement.run(missing)
    assert ended.status is None or b"No such file" in ended.stderr.data


def test_standard_input_is_what_was_given_or_nothing(confinement):
    """An agent that reads waits for nobody."""
    with RunFolder(None) as folder:
        words = {"cwd": folder.workspace, "env": {"PATH": os.environ["PATH"]}, "timeout_s": 5}
        words["writable"] = folder.writable
        given = confinement.run(Command(argv=("cat",), stdin=b"hello", **words))
        nothing = confinement.run(Command(argv=("cat",), **words))
    assert (given.stdout.data, nothing.stdout.data) == (b"hello", b"")


@needs_sandbox
def test_the_sandbox_has_a_network_of_its_own(stopping):
    """What listens outside cannot be reached; what the harness serves can."""
    with socket.create_server(("127.0.0.1", 0)) as outside, RunFolder(None) as folder:
        wrap = BubbleWrap(FOUND, stopping)
        port = outside.getsockname()[1]
        assert b"connected" not in wrap.run(command(folder, "connect", port)).stdout.data
        taken = []
        served = Served(port=4318, take=taken.append)
        assert b"connected" in wrap.run(command(folder, "connect", 4318, served=served)).stdout.data
        taken[0].close()


HARNESS = """\
import sys, threading
sys.path.insert(0, {tests!r})
from bench.hostility import *
from turntrace.bench.isolation_folder import RunFolder
from turntrace.bench.isolation_group import ProcessGroups, Watchdog
from turntrace.bench.isolation_sandbox import BubbleWrap
stopping = threading.Event()
with Watchdog() as watchdog, RunFolder(None) as folder:
    kind = BubbleWrap(FOUND, stopping) if sys.argv[1] == "sandbox" else ProcessGroups(watchdog, stopping)
    print("ready", flush=True)
    kind.run(command(folder, sys.argv[2], sys.argv[3], timeout_s=600))
"""


@pytest.mark.parametrize(
    ("kind", "deed"),
    [pytest.param("sandbox", "fork-and-hang", marks=needs_sandbox), ("process", "ignore")],
)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_nothing_survives_the_harness(kind, deed, number):
    """Whatever ends the harness ends what it started."""
    marker = f"orphan-{os.getpid()}-{time.monotonic_ns()}"
    code = HARNESS.format(tests=str(Path(__file__).parents[1]))
    argv = [sys.executable, "-c", code, kind, deed, marker]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as harness:
        assert harness.stdout.readline() == b"ready\n"
        _until(lambda: len(survivors(marker)) > 1)
        time.sleep(0.3)
        harness.send_signal(number)
        harness.wait(20)
    _until(lambda: survivors(marker) == [])


def _until(holds, timeout_s=10):
    late = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < late
        time.sleep(0.02)


def test_each_kind_says_what_it_cannot_stop():
    """Nobody takes a process group for a wall."""
    assert "the network" in CANNOT_STOP["process"]
    assert "the network" not in CANNOT_STOP["sandbox"]


def test_a_capture_keeps_both_ends():
    """Byte by byte and in lumps alike."""
    whole = bytes(range(256)) * 4000
    for step in (1, 7, 1 << 16):
        capture = Capture(100)
        for start in range(0, len(whole), step):
            capture.add(whole[start : start + step])
        assert capture.captured().data == whole[:50] + whole[-50:]
        assert capture.captured().total_bytes == len(whole)
