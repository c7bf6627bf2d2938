"""An agent that means harm: ``hostile.py DEED [PATH]``. Each deed is one that a harness has to survive."""

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path


def fork_and_stay(count):
    for _ in range(count):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(600)
            os._exit(0)


def write_everywhere(path):
    for folder in (path, "/etc", "/usr", "/var/tmp", str(Path.home().parent)):
        with suppress(OSError):
            Path(folder, "hostile-was-here").write_text("x")
    with suppress(OSError):
        Path(path, "suite.toml").write_text("id = 'mine'")


def read(path):
    with suppress(OSError):
        print(Path(path, "suite.toml").read_text())


def link(path):
    Path("out").symlink_to(path)
    Path("answer.txt").symlink_to(Path(path, "suite.toml"))
    with suppress(OSError):
        Path("out", "hostile-was-here").write_text("x")
    with suppress(OSError):
        os.link(Path(path, "suite.toml"), "hard")
        Path("hard").write_text("changed through a link")


def connect(port):
    import socket

    with suppress(OSError):
        socket.create_connection(("127.0.0.1", int(port)), timeout=1)
        print("connected")


def ignore_and_hang():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    time.sleep(600)


def flood():
    for _ in range(1000):
        os.write(1, b"x" * 1_000_000)


def plant():
    for name in ("conftest.py", "sitecustomize.py", "usercustomize.py", "x.pth", "pytest.ini"):
        Path(name).write_text("raise SystemExit(0)\n")
    for found in Path().glob("test_*"):
        found.unlink()
    Path("locked").mkdir()
    Path("locked", "file").write_text("x")
    Path("locked").chmod(0)


DEEDS = {
    "fork": lambda _: fork_and_stay(50),
    "fork-and-hang": lambda _: (fork_and_stay(5), ignore_and_hang()),
    "write": write_everywhere,
    "read": read,
    "link": link,
    "connect": connect,
    "hang": lambda _: time.sleep(600),
    "ignore": lambda _: ignore_and_hang(),
    "flood": lambda _: flood(),
    "plant": lambda _: plant(),
}

if __name__ == "__main__":
    DEEDS[sys.argv[1]](sys.argv[2] if len(sys.argv) > 2 else "")
