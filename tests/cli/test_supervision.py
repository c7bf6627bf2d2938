"""A supervised command: its status, its files, its terminal and its signals are its own."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from cli.terminal import Terminal
from turntrace.cli import supervision
from turntrace.cli.supervision import Ending, StartError, executable, is_supported, leave, supervise

SUPERVISE = """
import os, sys
from turntrace.cli.supervision import leave, supervise
sys.exit(leave(supervise(sys.argv[1:], os.environ)))
"""
SUPERVISED = [sys.executable, "-c", SUPERVISE]


def ending(*arguments):
    """How a command ends that is supervised by this process."""
    return supervise(list(arguments), os.environ)


def python(code):
    """The command line of a small Python program."""
    return [sys.executable, "-S", "-c", code]


@pytest.mark.parametrize("code", [0, 1, 3, 255])
def test_the_status_is_the_commands_own(code):
    """An exit status is passed through."""
    assert ending("sh", "-c", f"exit {code}") == Ending(code=code)
    assert ending("sh", "-c", f"exit {code}").status == code


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGSEGV])
def test_a_signal_is_128_more(number):
    """A command that a signal ended has the status a shell would show."""
    found = ending("sh", "-c", f"ulimit -c 0; kill -{int(number)} $$")

    assert (found.signal, found.status) == (number, 128 + number)


def test_a_command_that_does_not_exist_is_127():
    """Not found, by name or by path, or with a first line that names nothing."""
    for word in ("no-such-command-anywhere", "/no/such/file"):
        with pytest.raises(StartError, match="No such file") as raised:
            ending(word)
        assert raised.value.status == 127


def test_a_first_line_that_names_nothing_is_127(tmp_path):
    """A script whose interpreter is missing cannot be started."""
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)

    with pytest.raises(StartError) as raised:
        ending(str(script))
    assert raised.value.status == 127


def test_a_file_that_may_not_be_run_is_126(tmp_path, monkeypatch):
    """Not executable, by path or found on PATH, or a folder."""
    (tmp_path / "plain").write_text("x")
    monkeypatch.setenv("PATH", str(tmp_path))

    for word in (str(tmp_path / "plain"), "plain", str(tmp_path)):
        with pytest.raises(StartError, match="Permission denied") as raised:
            executable(word)
        assert raised.value.status == 126


def test_a_machine_that_is_full_is_our_failure(monkeypatch):
    """When no process can be made it is turntrace that failed: 125."""

    def full(*_, **__):
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(os, "posix_spawn", full)
    with pytest.raises(StartError) as raised:
        ending("true")
    assert raised.value.status == 125


def test_a_script_without_a_first_line_runs_in_a_shell(tmp_path):
    """Every shell does that, with the script's own arguments."""
    script = tmp_path / "script"
    script.write_text('test "$1" = "a b" && exit 7\n')
    script.chmod(0o755)

    assert ending(str(script), "a b").code == 7


def test_the_name_that_was_typed_is_the_programs_name():
    """argv[0] is the word of the command line, not the file it was found as."""
    assert ending("sh", "-c", 'test "$0" = sh') == Ending(code=0)


def test_files_of_any_number_are_inherited():
    """Standard streams and further descriptors reach the command, byte for byte."""
    read, write = os.pipe()
    done = subprocess.run(
        [
            *SUPERVISED,
            *python(
                f"import os; os.write(1, os.read(0, 9)); os.write(2, b'told'); os.write({write}, b'more')"
            ),
        ],
        input=b"\x00\xffin",
        capture_output=True,
        pass_fds=[write],
        timeout=30,
    )
    os.close(write)

    assert (done.returncode, done.stdout, done.stderr) == (0, b"\x00\xffin", b"told")
    with os.fdopen(read, "rb") as pipe:
        assert pipe.read() == b"more"


def test_the_environment_is_the_one_that_was_given(tmp_path):
    """Nothing of this process's environment is added."""
    out = tmp_path / "env"
    supervise(["/bin/sh", "-c", f"/usr/bin/env > {out}"], {"ONLY": "this"})

    assert {line.partition("=")[0] for line in out.read_text().split()} <= {"ONLY", "PWD", "SHLVL", "_"}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
def test_the_command_starts_with_signals_as_they_were(tmp_path):
    """No signal is blocked in it, and those that Python ignores are back at their defaults."""
    ending("sh", "-c", f"grep -E 'Sig(Blk|Ign)' /proc/self/status > {tmp_path / 'status'}")
    masks = dict(line.split(":\t") for line in (tmp_path / "status").read_text().splitlines())

    assert int(masks["SigBlk"], 16) == 0
    assert not int(masks["SigIgn"], 16) & 1 << signal.SIGPIPE - 1


def test_signals_are_as_before_afterwards():
    """The caller's mask is restored, and what came for the command does not reach the caller."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    ending("true")

    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before


def test_a_signal_that_waits_at_the_end_was_meant_for_the_command(monkeypatch):
    """A Ctrl-C that came as the command ended does not interrupt the report."""

    def watch(self):
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        os.waitpid(self._pid, 0)
        return Ending(code=0)

    monkeypatch.setattr(supervision._Supervisor, "watch", watch)
    try:
        assert ending("true") == Ending(code=0)
    except KeyboardInterrupt:
        pytest.fail("the signal arrived")


TRAPPER = """
import signal, sys, time
got = []
for name in sys.argv[1:]:
    signal.signal(getattr(signal, name), lambda number, frame: got.append(signal.Signals(number).name))
print("ready", flush=True)
while not got:
    time.sleep(0.01)
time.sleep(0.2)
print(*got, flush=True)
sys.exit(9)
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGTSTP", "SIGWINCH"])
def test_a_signal_sent_to_turntrace_reaches_the_command_once(name):
    """A process that signals the pid it started reaches the agent behind it; the agent decides what happens."""
    with subprocess.Popen(
        [*SUPERVISED, *python(TRAPPER), name], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(getattr(signal, name))

        assert process.stdout.read() == f"{name}\n"
    assert process.returncode == 9


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_command_that_dies_of_it_gives_128_more(number):
    """The default action is the command's; turntrace outlives it and tells."""
    code = "import time; print('ready', flush=True); import signal; signal.signal(2, signal.SIG_DFL); time.sleep(60)"
    with subprocess.Popen([*SUPERVISED, *python(code)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.1)
        process.send_signal(number)

        assert process.wait(30) == 128 + number


def test_the_terminal_is_the_commands(tmp_path):
    """The command sees a terminal on all three streams, and reads what is typed there."""
    code = "import os; print([os.isatty(n) for n in range(3)], input(), os.tcgetpgrp(0) == os.getpgrp())"
    with Terminal(tmp_path, *SUPERVISED, *python(code)) as terminal:
        terminal.type(b"typed\n")

        assert b"[True, True, True] typed True" in terminal.read_until(b"typed True")
        assert terminal.events(1) == ["ended 0"]


def test_ctrl_c_reaches_the_command_once_and_turntrace_dies_of_it_too(tmp_path):
    """A shell sees a command that died of SIGINT, so that a script stops there."""
    code = "import signal, time; signal.signal(2, signal.SIG_DFL); print('ready'); time.sleep(60)"
    with Terminal(tmp_path, *SUPERVISED, *python(code)) as terminal:
        terminal.read_until(b"ready")
        terminal.type(b"\x03")

        assert terminal.events(1) == [f"ended {-signal.SIGINT}"]


def test_a_command_that_handles_ctrl_c_goes_on(tmp_path):
    """Ctrl-C is the agent's to handle; it comes once, and the status is the agent's."""
    with Terminal(tmp_path, *SUPERVISED, *python(TRAPPER), "SIGINT") as terminal:
        terminal.read_until(b"ready")
        terminal.type(b"\x03")

        assert terminal.read_until(b"SIGINT\r\n").count(b"SIGINT") == 1
        assert terminal.events(1) == ["ended 9"]


def test_ctrl_z_stops_both_and_the_shell_continues_both(tmp_path):
    """The shell sees the job stopped as by Ctrl-Z, once; continued, the command goes on to its end."""
    code = "print('ready'); print('got', input())"
    with Terminal(tmp_path, *SUPERVISED, *python(code)) as terminal:
        terminal.read_until(b"ready")
        terminal.type(b"\x1a")
        assert terminal.events(1) == [f"stopped {int(signal.SIGTSTP)}"]
        terminal.type(b"line\n")

        terminal.read_until(b"got line")
        assert terminal.events(2)[1] == "ended 0"


def test_a_command_that_ignores_ctrl_z_is_not_stopped(tmp_path):
    """Turntrace does not stop behind an agent that goes on."""
    code = (
        "import signal; signal.signal(signal.SIGTSTP, signal.SIG_IGN); print('ready'); print('got', input())"
    )
    with Terminal(tmp_path, *SUPERVISED, *python(code)) as terminal:
        terminal.read_until(b"ready")
        terminal.type(b"\x1a")
        terminal.type(b"line\n")

        terminal.read_until(b"got line")
        assert terminal.events(1) == ["ended 0"]


def test_a_command_that_stops_itself_stops_the_job(tmp_path):
    """SIGSTOP to the agent alone is seen by the shell, too; continuing the job continues the agent."""
    code = "import os, signal; os.kill(os.getpid(), signal.SIGSTOP); print('on again')"
    with Terminal(tmp_path, *SUPERVISED, *python(code)) as terminal:
        terminal.read_until(b"on again")

        assert terminal.events(2) == [f"stopped {int(signal.SIGSTOP)}", "ended 0"]


def test_continuing_turntrace_alone_continues_the_command():
    """Who stopped the pair by the agent can continue it by turntrace."""
    code = "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"
    with subprocess.Popen([*SUPERVISED, *python(code)]) as process:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        process.send_signal(signal.SIGCONT)

        assert process.wait(30) == 0


def test_without_the_kernels_word_a_terminals_signals_are_not_passed_on():
    """Where nobody can tell who sent a signal, only those that no terminal sends are passed on."""
    supervise_there = f"import signal; del signal.sigtimedwait{SUPERVISE}"
    code = "trap 'exit 6' INT; trap 'exit 5' TERM; kill -INT $PPID; kill -TERM $PPID; sleep 20 & wait"
    done = subprocess.run([sys.executable, "-c", supervise_there, "sh", "-c", code], timeout=30)

    assert done.returncode == 5


def test_a_thread_that_takes_the_signal_of_the_end_holds_nothing_up(monkeypatch):
    """In a process of several threads another one may be told that the command ended."""
    spawn = supervision._spawn

    def slow(*arguments):
        pid = spawn(*arguments)
        time.sleep(0.3)  # the command ends before anybody waits for its signal
        return pid

    monkeypatch.setattr(supervision, "_spawn", slow)
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert ending("sh", "-c", "exit 3").code == 3
    finally:
        done.set()
        thread.join()


def test_a_platform_without_signals_runs_the_command_all_the_same(monkeypatch):
    """Where processes cannot be supervised, the command runs and its status is told."""
    monkeypatch.delattr(os, "posix_spawn")

    assert not is_supported()
    assert ending("sh", "-c", "exit 4") == Ending(code=4)


def test_a_child_that_has_gone_is_no_error():
    """A signal for a command that has just ended is dropped."""
    process = subprocess.Popen(["true"])
    process.wait()

    supervision._Supervisor(process.pid, set())._send(signal.SIGTERM)


def test_a_ctrl_c_is_died_of_by_default_action(monkeypatch):
    """Python's own handler would make an exception of it; a shell looks for the signal."""
    sent = []
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number, signal.getsignal(number))))
    before = signal.getsignal(signal.SIGINT)
    try:
        leave(Ending(code=0, signal=signal.SIGINT, was_interrupted=True))
    finally:
        signal.signal(signal.SIGINT, before)

    assert sent == [(os.getpid(), signal.SIGINT, signal.SIG_DFL)]


def test_only_a_ctrl_c_is_died_of():
    """Other endings are exit statuses: a SIGINT that a process sent, a SIGTERM."""
    assert leave(Ending(code=0, signal=signal.SIGINT)) == 130
    assert leave(Ending(code=0, signal=signal.SIGTERM, was_interrupted=True)) == 143
    assert leave(Ending(code=3, was_interrupted=True)) == 3


def test_a_python_script_without_its_python_is_told_how(tmp_path, monkeypatch):
    """A script that is not on PATH, or not executable, gets the command that would run it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").write_text("print(1)")

    for word in ("agent.py", "./agent.py"):
        with pytest.raises(StartError, match=rf"; for a Python script: turntrace run -- python {word}$"):
            executable(word)
    with pytest.raises(StartError, match=r"No such file or directory$"):
        executable("missing.py")
