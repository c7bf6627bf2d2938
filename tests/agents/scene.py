"""One turn of a real coding agent: a request that asks for a shell command, and one that answers.

The agent has a home and a working folder of its own, a dummy key, the model server as its provider, and
OTLP on its way to a recorder. The command notes when it began and ended, so that the truth rests on no span.
"""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from agents import setups
from agents.install import environment as with_node
from agents.recorder import Recorder
from frameworks.encodings import Asked
from frameworks.model_server import ModelServer
from frameworks.steps import Step, ToolCall
from turntrace.collect.preparation import prepared
from turntrace.collect.presets import PRESETS

__all__ = ["TOKEN", "TRACEPARENT", "Played", "play", "switched_on"]

TOKEN = "recorders-token"
TRACEPARENT = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"
SECONDS = 0.8
"""How long the command sleeps."""
RUN_S = 120
RESULTS = ('"function_call_output"', '"tool_result"', '"functionResponse"', '"role": "tool"')
"""How each API sends a tool's result back."""
TOLD = ("received_ms", "first_content_ms", "last_content_ms", "done_ms", "status", "tokens", "model")
TOOL = f"""began=$(date +%s%N)
sleep {SECONDS}
echo "{{\\"start_ns\\": $began, \\"end_ns\\": $(date +%s%N)}}" > ran.json
echo all is well
"""
"""A shell starts at once, which an interpreter does not."""
KEPT = ("LANG", "TZ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What an agent sent, what really happened, and how many cores other programs took meanwhile."""

    lines: str
    how: list[dict[str, Any]]
    truth: dict[str, Any]
    output: str
    stdout: str
    status: int
    places: tuple[str, ...]


Telemetry = Callable[[str, list[str], dict[str, str], str], tuple[Sequence[str], Mapping[str, str]]]


def switched_on(
    name: str, command: list[str], environment: dict[str, str], url: str
) -> tuple[Sequence[str], Mapping[str, str]]:
    """The command and its environment with the agent's telemetry on its way to ``url``, as ``run`` does it."""
    ready = prepared(PRESETS[setups.SETUPS[name].preset or name], command, environment, url, TOKEN)
    return ready.argv, {**ready.environment, "TRACEPARENT": TRACEPARENT}


class Stage:
    """``with Stage(name, setup, director) as stage``: ``argv`` in ``environment`` is the agent, in private folders.

    Its telemetry is on its way to a recorder, as ``telemetry`` says.
    """

    def __init__(
        self, name: str, setup: setups.Setup, director: "Director", telemetry: Telemetry = switched_on
    ) -> None:
        self._name, self._setup, self._director, self._telemetry = name, setup, director, telemetry
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        made = tempfile.TemporaryDirectory(prefix="agent-", ignore_cleanup_errors=True)
        self.folder = Path(self._stack.enter_context(made))
        self._server = self._stack.enter_context(ModelServer(self._director))
        self._recorder = self._stack.enter_context(Recorder())
        self.home, self.work = self.folder / "home", self.folder / "work"
        self.home.mkdir()
        self.work.mkdir()
        (self.work / "tool.sh").write_text(TOOL)
        environment = {key: value for key in KEPT if (value := os.environ.get(key))}
        environment |= {"PATH": with_node()["PATH"], "HOME": str(self.home), "CI": "1"}
        environment |= {"NO_PROXY": "127.0.0.1,localhost", **self._setup.prepare(self.home, self._server.url)}
        command = [str(setups.program(self._name)), *self._setup.arguments]
        argv, told = self._telemetry(self._name, command, environment, self._recorder.url)
        self.argv, self.environment = list(argv), dict(told)
        self.began_ns = time.time_ns()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def played(self, *, status: int, output: str, stdout: str) -> Played:
        """What the agent sent so far, with what really happened."""
        process = {"start_ns": self.began_ns, "end_ns": time.time_ns()}
        ran = self.work / "ran.json"
        asked = list(zip(self._server.settled(), self._director.said, strict=True))
        return Played(
            lines=self._recorder.lines(),
            how=self._recorder.how,
            truth={
                "agent": self._name,
                "version": setups.AGENTS[self._name]["version"],
                "t0_unix_ns": self._server.t0_unix_ns,
                "process": process,
                "tool": {"name": self._setup.tool, **(json.loads(ran.read_text()) if ran.exists() else {})},
                "wire": [{"what": what, **{key: asdict(one)[key] for key in TOLD}} for one, what in asked],
            },
            output=output,
            stdout=stdout,
            status=status,
            places=(str(self.folder), str(setups.CACHE)),
        )


def play(
    name: str, telemetry: Telemetry = switched_on, afterwards: Callable[[Path], None] = lambda _: None
) -> Played:
    """Run agent ``name`` through its turn; ``afterwards`` is given its home before that is deleted."""
    setup = setups.SETUPS[name]
    with Stage(name, setup, Director(setup), telemetry) as stage:
        done = subprocess.run(
            stage.argv,
            env=stage.environment,
            cwd=stage.work,
            capture_output=True,
            text=True,
            timeout=RUN_S,
            stdin=subprocess.DEVNULL,
        )
        played = stage.played(status=done.returncode, output=done.stdout + done.stderr, stdout=done.stdout)
        afterwards(stage.home)
    return played


class Director:
    """Answers by what is asked: the order of requests is nobody's promise."""

    def __init__(self, setup: setups.Setup) -> None:
        self._setup = setup
        self.said: list[str] = []

    def __call__(self, asked: Asked) -> Step:
        what = self._what(asked.body)
        self.said.append(what)
        if what == "beside":
            text = "A run of a script"
            return Step(text=text, ttft_s=2.0, latency_s=2.0, input_tokens=90, output_tokens=6)
        if what == "tool":
            call = ToolCall(self._setup.tool, self._setup.call)
            return Step(
                tools=(call,),
                ttft_s=3.0,
                latency_s=3.0,
                input_tokens=1200,
                output_tokens=30,
                cached_tokens=800,
            )
        text = "The script ran and said that all is well."
        return Step(
            text=text,
            ttft_s=2.0,
            latency_s=2.0,
            chunks=6,
            gap_s=0.05,
            input_tokens=1300,
            output_tokens=40,
            cached_tokens=1100,
            reasoning_tokens=12,
        )

    def _what(self, body: Mapping[str, Any]) -> str:
        said = json.dumps(body)
        if any(mark in said for mark in RESULTS):
            return "answer"
        return "tool" if "tool.sh" in said and f'"{self._setup.tool}"' in said else "beside"
