"""``turntrace tail``: lines for a pipe, a screen for a terminal, an end by Ctrl-C."""

import os
import signal
import subprocess
import sys
import time

from cli.conftest import MAIN
from cli.terminal import Terminal
from files.journals import phase, write_journal
from files.test_watch import block_of
from turntrace.core.codec.journal import span_start_line

START_NS = 1_700_000_000_000_000_000
PATIENCE_S = 20

AGENT = """
import sys, time
import turntrace as tt
tt.configure(trace=sys.argv[1], journal="sync")
with tt.turn("live-agent"):
    with tt.phase("prompt_build"):
        pass
    with tt.tool("slow_tool"):
        print("in", flush=True)
        time.sleep(60)
"""


class Tail:
    """``with Tail(...) as tail``: the command in a process of its own, its output in a pipe."""

    def __init__(self, folder, *arguments):
        self._process = subprocess.Popen(
            [sys.executable, "-u", "-c", MAIN, "tail", *arguments],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        os.set_blocking(self._process.stdout.fileno(), False)
        self._seen = ""

    def until(self, text):
        """All lines once ``text`` is in them, and how long that took."""
        began = time.monotonic()
        while text not in self._seen:
            assert time.monotonic() - began < PATIENCE_S, self._seen
            assert self._process.poll() is None, self._process.stderr.read()
            self._seen += (self._process.stdout.read() or b"").decode()
            time.sleep(0.01)
        return self._seen, time.monotonic() - began

    def interrupt(self):
        """Ctrl-C: the status, and what was said on standard error."""
        self._process.send_signal(signal.SIGINT)
        status = self._process.wait(PATIENCE_S)
        return status, self._process.stderr.read()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._process.stderr.close()


def test_complaint_21_a_live_turn_is_shown_within_a_second_and_a_killed_one_is_interrupted(tmp_path):
    """A line for what runs, at most 1 s after it began; after kill -9 the turn is told as interrupted."""
    with Tail(tmp_path, "t.ndjson") as tail:
        time.sleep(1.5)  # tail is there before the file is
        agent = subprocess.Popen(
            [sys.executable, "-c", AGENT, "t.ndjson"], cwd=tmp_path, stdout=subprocess.PIPE
        )
        try:
            assert agent.stdout.readline() == b"in\n"
            seen, took_s = tail.until("slow_tool begins")
            assert took_s < 1
            assert "live-agent  turn run_" in seen
            assert "prompt_build took" in seen
        finally:
            agent.kill()
            agent.wait()
            agent.stdout.close()
        seen, took_s = tail.until(" interrupted")
        assert took_s < 2
        assert tail.interrupt() == (130, b"")


def test_a_turn_that_ends_is_told_with_its_tokens(tmp_path):
    """The turn's block, appended while tail runs; what was there before is no change."""
    out = tmp_path / "t.ndjson"
    out.write_bytes(block_of("old"))
    with Tail(tmp_path, str(out)) as tail:
        write_journal(out, "r1", os.getpid(), phase(2))
        tail.until("turn r1 begins")
        with out.open("ab") as file:
            file.write(block_of("r1"))
        seen, _ = tail.until("turn r1 ok")
        assert "old" not in seen


def test_without_a_file_the_newest_is_followed_once_there_is_one(tmp_path):
    """In .turntrace; until then one line says that there is nothing."""
    with Tail(tmp_path) as tail:
        time.sleep(1.0)
        folder = tmp_path / ".turntrace"
        folder.mkdir()
        out = folder / "a.ndjson"
        out.write_bytes(b"")
        write_journal(out, "r1", os.getpid(), phase(2))
        tail.until("turn r1 begins")
        status, said = tail.interrupt()
        assert (status, said) == (130, b"turntrace: nothing in .turntrace yet; waiting\n")


def test_a_reader_that_has_seen_enough_ends_it_quietly(tmp_path):
    """As ``head`` does: the next line finds nobody, and nothing is said."""
    out = tmp_path / "t.ndjson"
    command = f'exec 2>err; {sys.executable} -c "{MAIN}" tail t.ndjson | head -n 1'
    process = subprocess.Popen(["sh", "-c", command], cwd=tmp_path, stdout=subprocess.PIPE)
    write_journal(out, "r1", os.getpid(), phase(2))
    assert b"turn r1 begins" in process.stdout.readline()
    for number in range(2, 40):
        write_journal(out, f"r{number}", os.getpid(), phase(2))
        time.sleep(0.1)
        if process.poll() is not None:
            break
    assert process.wait(PATIENCE_S) == 0
    process.stdout.close()
    assert (tmp_path / "err").read_bytes() == b""


def test_on_a_terminal_it_is_a_view_that_moves(tmp_path):
    """The current phase, the table, where the file is; Ctrl-C ends it."""
    out = tmp_path / "t.ndjson"
    line = span_start_line("tool_execution", "execute_tool x", 3, 1, 1, START_NS)
    write_journal(out, "r1", os.getpid(), phase(2), line)
    with Terminal(tmp_path, sys.executable, "-c", MAIN, "tail", str(out)) as terminal:
        screen = terminal.read_until(b"1 running")
        assert b"now:" in screen
        assert b"WHERE THE TURN WENT" in screen
        with out.open("ab") as file:
            file.write(block_of("r1"))
        terminal.read_until(b"0 running")
        terminal.type(b"\x03")
        assert terminal.events(1) == ["ended 130"]


def test_before_there_is_anything_the_screen_waits(tmp_path):
    """No file, no folder: it says what it waits for."""
    with Terminal(tmp_path, sys.executable, "-c", MAIN, "tail", str(tmp_path / "t.ndjson")) as terminal:
        terminal.read_until(b"no turn yet")
        terminal.type(b"\x03")
        assert terminal.events(1) == ["ended 130"]


def test_what_cannot_be_read_is_an_error(tmp_path, execute):
    """Status 2 and the path."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop.ndjson").symlink_to("loop.ndjson")
    done = execute("tail", str(tmp_path / "loop.ndjson"))
    assert (done.returncode, b"loop.ndjson" in done.stderr) == (2, True)


def test_watch_is_another_name(execute):
    """The name that people guess."""
    assert b"Watch turns while they run" in execute("watch", "--help").stdout
