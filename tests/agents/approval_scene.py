"""A turn of a real coding agent that asks before it runs the tool: on a terminal, which tmux gives it.

A person answers three seconds after the question is on the screen; when that was is the truth.
"""

import json
import shlex
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from agents import setups
from agents.scene import Director, Played, Stage

__all__ = ["APPROVALS", "play_approved"]

THINKS_S = 3.0
PATIENCE_S = 40.0
ANSWER = "The script ran and said"
SOCKET = "turntrace-approvals"
TERMINAL = {"TERM": "xterm-256color", "LANG": "C.UTF-8"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """``asks`` stands on the screen while the agent waits, ``yes`` are the keys that approve, ``leave`` end it.

    ``configure`` is given the home and the working folder, ``call`` is added to the call of the tool.
    """

    arguments: tuple[str, ...]
    asks: str
    yes: str
    leave: tuple[str, ...] = ("C-c", "C-c")
    configure: Callable[[Path, Path], None] = lambda home, work: None
    call: dict[str, Any] = field(default_factory=dict)


def _codex(home: Path, work: Path) -> None:
    with (home / ".codex" / "config.toml").open("a") as config:
        config.write(f'\n[projects."{work}"]\ntrust_level = "trusted"\n')


def _claude(home: Path, work: Path) -> None:
    project = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    known = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": ["fake"], "rejected": []},
        "projects": {str(work): project},
    }
    (home / ".claude.json").write_text(json.dumps(known))


def _opencode(home: Path, work: Path) -> None:
    path = home / ".config" / "opencode" / "opencode.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "permission": {"bash": "ask"}}))


APPROVALS = {
    "codex": Approval(
        arguments=("-a", "on-request", setups.PROMPT),
        asks="Would you like to run",
        yes="y",
        configure=_codex,
        call={"sandbox_permissions": "require_escalated", "justification": "because"},
    ),
    "claude": Approval(
        arguments=(setups.PROMPT, "--model", "claude-fake", "--permission-mode", "default"),
        asks="Do you want to",
        yes="Enter",
        configure=_claude,
    ),
    "gemini": Approval(
        arguments=("-i", setups.PROMPT, "--skip-trust", "-m", "gemini-fake"),
        asks="Allow execution",
        yes="Enter",
    ),
    "opencode": Approval(
        arguments=("--prompt", setups.PROMPT),
        asks="Permission required",
        yes="Enter",
        leave=("C-c",),
        configure=_opencode,
    ),
}


def play_approved(name: str) -> Played:
    """Run agent ``name`` on a terminal through its turn, and approve of its tool."""
    approval, setup = APPROVALS[name], setups.SETUPS[name]
    setup = replace(setup, arguments=approval.arguments, call={**setup.call, **approval.call})
    with Stage(name, setup, Director(setup)) as stage:
        approval.configure(stage.home, stage.work)
        environment = {
            key: value for key, value in stage.environment.items() if key != "CI"
        }  # where nobody sits
        with _Screen(stage.argv, {**environment, **TERMINAL}, stage.work) as screen:
            asked_ns = screen.wait(approval.asks)
            time.sleep(THINKS_S)
            screen.press(approval.yes)
            answered_ns = time.time_ns()
            screen.wait(ANSWER)
            time.sleep(1)  # what is exported a moment later
            for key in approval.leave:
                screen.press(key)
                time.sleep(0.3)
            screen.wait(_Screen.ENDED)
        played = stage.played(status=0, output="", stdout="")
    return replace(
        played, truth={**played.truth, "approval": {"asked_ns": asked_ns, "answered_ns": answered_ns}}
    )


class _Screen:
    """A terminal of 120 by 40 with a command in it."""

    ENDED = "THE COMMAND ENDED"

    def __init__(self, argv: list[str], environment: dict[str, str], folder: Path) -> None:
        words = ["env", "-i", *(f"{key}={value}" for key, value in environment.items()), *argv]
        self._line = f"trap : INT; {shlex.join(words)}; echo {self.ENDED}; trap '' INT; sleep 60"
        self._folder = folder

    def __enter__(self) -> Self:
        self._tmux(
            "new-session",
            "-d",
            "-s",
            "s",
            "-x",
            "120",
            "-y",
            "40",
            "-c",
            str(self._folder),
            "sh",
            "-c",
            self._line,
        )
        return self

    def __exit__(self, *error: object) -> None:
        subprocess.run(
            ["tmux", "-L", SOCKET, "kill-server"], capture_output=True, check=False
        )  # it may be gone

    def press(self, key: str) -> None:
        """Press one key."""
        self._tmux("send-keys", "-t", "s", key)

    def wait(self, text: str) -> int:
        """Until ``text`` is on the screen; when that was, in ns."""
        deadline = time.monotonic() + PATIENCE_S
        while text not in (shown := self._tmux("capture-pane", "-p", "-t", "s")):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{text!r} is not on the screen:\n{shown}")
            time.sleep(0.05)
        return time.time_ns()

    def _tmux(self, *words: str) -> str:
        command = ["tmux", "-L", SOCKET, *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
