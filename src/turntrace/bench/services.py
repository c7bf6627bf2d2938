"""What the harness serves to an agent while it runs: a model that knows the solution, and a barrier for tools."""

import socket
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from turntrace.bench.agents import Agent
from turntrace.bench.isolation import Mode, Served
from turntrace.bench.probe import Barrier, ProbeServer
from turntrace.bench.reference_agent import BARRIER, MODEL_URL, SERIAL
from turntrace.bench.reference_script import reference_script
from turntrace.bench.solutions import solution_of
from turntrace.bench.tasks import Task
from turntrace.core.overlap import Overlap
from turntrace.core.owed_usage import UsageCall
from turntrace.demo.model_server import ModelServer
from turntrace.demo.truth import Served as Exchange

__all__ = ["Services"]

_PORT: Final = 8080
"""Of the sandbox's own loopback, where nobody else listens."""


class Services:
    """``with Services(agent, task, folder, mode, serial=False) as services: run(env=services.env, ...)``."""

    def __init__(self, agent: Agent, task: Task, folder: Path, mode: Mode, *, serial: bool) -> None:
        self._stack = ExitStack()
        self._barrier: Barrier | None = None
        self._server: ModelServer | None = None
        self.env: dict[str, str] = {}
        self.served: Served | None = None
        if agent.feeds != "model":
            return
        handlers = task.parallel_probe.handlers if task.parallel_probe else 0
        self._script = reference_script(task.task_class, solution_of(task), handlers)
        if task.parallel_probe:
            self._barrier = Barrier(handlers, task.parallel_probe.timeout_s)
            self._stack.enter_context(ProbeServer(folder / "barrier", self._barrier))
            self.env[BARRIER] = str(folder / "barrier")
        if serial:
            self.env[SERIAL] = "1"
        if mode == "sandbox" and not agent.network:
            self.served = Served(port=_PORT, take=self._take)
            self.env[MODEL_URL] = f"http://127.0.0.1:{_PORT}"
        else:
            self._server = self._stack.enter_context(ModelServer(self._script))
            self.env[MODEL_URL] = self._server.base_url

    def _take(self, listening: socket.socket) -> None:
        self._server = self._stack.enter_context(ModelServer(self._script, listening=listening))

    def overlap(self) -> Overlap | None:
        """What the barrier saw, None for a task without one."""
        return None if self._barrier is None else self._barrier.record()

    def exchanges(self) -> tuple[Exchange, ...] | None:
        """The requests that the model server has seen, None where it is not ours."""
        return None if self._server is None else self._server.log.records()

    def calls(self) -> tuple[UsageCall, ...] | None:
        """The same as calls that may owe a count of tokens."""
        found = self.exchanges()
        return None if found is None else tuple(map(_call, found))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()


def _call(exchange: Exchange) -> UsageCall:
    usage = exchange.usage_sent
    return UsageCall(
        name=f"request {exchange.index + 1}",
        status=exchange.status,
        input_tokens=None if usage is None else usage.input_tokens,
        output_tokens=None if usage is None else usage.output_tokens,
        cached_input_tokens=None if usage is None else usage.cached_input_tokens,
    )
