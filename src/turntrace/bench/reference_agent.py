"""The agent ``reference``: a real one in small, over real HTTP, with tools that touch real files.

Run as ``python -m turntrace.bench.reference_agent PROMPT``; the harness says by variables where the model
server and the barrier are, and whether tools may run side by side.
"""

import contextvars
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import turntrace as tt
from turntrace.bench.probe import pass_barrier
from turntrace.bench.reference_script import FALLBACK_MODEL, PRIMARY_MODEL
from turntrace.config import environment
from turntrace.demo.answer import Answer, RequestedCall
from turntrace.demo.chat_client import ModelUnavailableError, connect, request_body

__all__ = ["BARRIER", "MODEL_URL", "SERIAL", "main"]

MODEL_URL: Final = "TURNTRACE_BENCH_MODEL_URL"
BARRIER: Final = "TURNTRACE_BENCH_BARRIER"
SERIAL: Final = "TURNTRACE_BENCH_SERIAL"

_TOOLS: Final = ("read_file", "write_file", "remove_file", "probe")


class _Agent:
    """One conversation. ``workers`` tools run at once."""

    def __init__(self, base_url: str, barrier: str, *, workers: int) -> None:
        self._base_url = base_url
        self._barrier = barrier
        self._workers = workers
        self._messages: list[dict[str, Any]] = []
        self._model = PRIMARY_MODEL

    def solve(self, prompt: str) -> str:
        self._messages.append({"role": "user", "content": prompt})
        while True:
            answer = self._ask()
            self._messages.append(answer.message())
            if not answer.calls:
                return answer.text
            self._run_tools(tuple(answer.calls.values()))

    def _ask(self) -> Answer:
        """The answer of the model, or of the other one where the first is overloaded."""
        try:
            return self._ask_model()
        except ModelUnavailableError:
            if self._model == FALLBACK_MODEL:
                raise
            self._model = FALLBACK_MODEL
            tt.count("model_switches")
            return self._ask_model()

    def _ask_model(self) -> Answer:
        with tt.phase("prompt_build"):
            request = request_body(self._model, self._messages, _TOOLS)
        with tt.phase("provider_connect"):
            response = connect(self._base_url, request, retries=0)
        if response.status != HTTPStatus.OK:
            response.close()
            raise ModelUnavailableError(response.status)
        with response, tt.generation(model=self._model, provider="openai") as generation:
            answer = Answer()
            for chunk in generation.stream(response):
                answer.add(chunk)
            tokens = answer.tokens()
            if any(count is not None for count in tokens.values()):
                generation.usage(**tokens)
            return answer

    def _run_tools(self, calls: Sequence[RequestedCall]) -> None:
        with ThreadPoolExecutor(min(self._workers, len(calls))) as pool:
            results = [pool.submit(contextvars.copy_context().run, self._run_tool, call) for call in calls]
        for call, result in zip(calls, results, strict=True):
            self._messages.append({"role": "tool", "tool_call_id": call.call_id, "content": result.result()})

    def _run_tool(self, call: RequestedCall) -> str:
        with tt.tool(call.name, call_id=call.call_id):
            arguments = call.parsed()
            if call.name == "probe":
                with pass_barrier(self._barrier, arguments["handler"]):
                    return "passed"
            return _FILE_TOOLS[call.name](**arguments)


def _read_file(path: str) -> str:
    found = Path(path)
    if found.is_dir():
        return "\n".join(sorted(entry.name for entry in found.iterdir()))
    return found.read_text() if found.exists() else "no such file"


def _write_file(path: str, text: str) -> str:
    found = Path(path)
    found.parent.mkdir(parents=True, exist_ok=True)
    found.write_text(text)
    return f"wrote {path}"


def _remove_file(path: str) -> str:
    Path(path).unlink()
    return f"removed {path}"


_FILE_TOOLS: Final[Mapping[str, Callable[..., str]]] = {
    "read_file": _read_file,
    "write_file": _write_file,
    "remove_file": _remove_file,
}


def main(prompt: str) -> None:
    """Solve the task in the current folder and print the answer."""
    env = environment()
    handle = tt.configure()
    agent = _Agent(env[MODEL_URL], env.get(BARRIER, ""), workers=1 if env.get(SERIAL) else 8)
    try:
        with tt.turn("reference"):
            answer = agent.solve(prompt)
    finally:
        handle.shutdown()
    sys.stdout.write(answer)


if __name__ == "__main__":
    main(sys.argv[1])
