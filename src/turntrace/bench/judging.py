"""The judge: a task, a finished workspace and the agent's last words in, a verdict out.

Nothing of the agent and nothing of a suite runs in this process. The oracle runs in one child and is
dead before the agent's code starts in another, which gets inputs only; the outcomes are compared here.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from turntrace.bench.equality import same
from turntrace.bench.tasks import (
    CommandOracle,
    CompletedChild,
    ProgramOracle,
    RunChild,
    Task,
    Verdict,
    VerdictStatus,
)
from turntrace.bench.workspace import put, texts

__all__ = ["CHILD_TIMEOUT_S", "INTERPRETER", "MAX_ANSWER", "judge"]

INTERPRETER: Final = os.path.realpath(sys.executable)
"""The Python of both children; the sandbox has to show it and its standard library (sys.base_prefix)."""

CHILD_TIMEOUT_S: Final = 20.0
MAX_OUTPUT_BYTES: Final = 4 * 1024 * 1024
MAX_ANSWER: Final = 1024 * 1024
_FEWEST_CALLS: Final = 20
_HERE: Final = Path(__file__).parent
_SELF: Final = "from turntrace.bench.child_values import tagged\n"


def judge(task: Task, workspace: Path, answer: str, seed: int, run_child: RunChild) -> Verdict:
    """What the oracle of ``task`` says of ``workspace`` and ``answer``.

    The agent must be dead. Inputs are drawn from ``seed``: the same seed gives the same verdict.
    """
    match task.oracle:
        case None:
            return Verdict(status=VerdictStatus.NONE, reason="the task has no oracle", details={})
        case CommandOracle() as oracle:
            return _by_command(oracle, workspace, answer, run_child)
        case ProgramOracle() as oracle:
            return _by_program(oracle, workspace, answer[:MAX_ANSWER], seed, run_child)


def _verdict(status: VerdictStatus, reason: str = "", **details: int) -> Verdict:
    return Verdict(status=status, reason=reason, details=details)


def _by_command(oracle: CommandOracle, workspace: Path, answer: str, run_child: RunChild) -> Verdict:
    stamped = list(oracle.files)
    if oracle.answer_file is not None:
        stamped.append((oracle.answer_file, answer.encode("utf-8", "replace")))
    try:
        for relative, content in stamped:
            put(workspace, relative, content)
    except OSError as error:
        return _verdict(VerdictStatus.ERROR, f"the oracle's files cannot be written: {error.strerror}")
    done = run_child(oracle.argv, cwd=workspace, stdin=b"", timeout_s=oracle.timeout_s)
    why = _command_failure(oracle, done)
    return _verdict(VerdictStatus.FAIL, why) if why else _verdict(VerdictStatus.PASS)


def _command_failure(oracle: CommandOracle, done: CompletedChild) -> str:
    if done.timed_out:
        return f"the oracle's command took more than {oracle.timeout_s:g} s"
    if done.status != 0:
        return _first_line(done) or f"status {done.status}"
    printed = set(done.stdout.decode("utf-8", "replace").splitlines())
    missing = [line for line in oracle.output_has if line not in printed]
    return f"the oracle's command did not print: {missing[0]}" if missing else ""


def _first_line(done: CompletedChild) -> str:
    lines = (done.stdout + b"\n" + done.stderr).decode("utf-8", "replace").split("\n")
    return next((line.strip()[:200] for line in lines if line.strip()), "")


def _by_program(
    oracle: ProgramOracle, workspace: Path, answer: str, seed: int, run_child: RunChild
) -> Verdict:
    request = {"source": oracle.source, "seed": seed, "answer": _sound(answer), "files": texts(workspace)}
    done = run_child(_child("child_oracle"), cwd=None, stdin=_dumped(request), timeout_s=CHILD_TIMEOUT_S)
    first, _, rest = done.stdout.partition(b"\n")
    plan = _loaded(first)
    if why := _unusable(plan, done):
        return _verdict(VerdictStatus.ERROR, f"oracle.py: {why}")
    said = _loaded(rest)
    faults = said["faults"] if isinstance(said, dict) else ["the oracle could not read what the agent left"]
    if faults:
        return _verdict(VerdictStatus.FAIL, faults[0], faults=len(faults))
    return _by_calls(plan["calls"], plan["expected"], workspace, run_child)


def _unusable(plan: Any, done: CompletedChild) -> str:
    """An oracle that asks nothing passes everything; one that asks little is guessed."""
    if not isinstance(plan, dict):
        return "took too long" if done.timed_out else _last_line(done.stderr)
    if not plan["asks"]:
        return "has none of calls, structure and answer"
    if plan["calls"] and len(plan["calls"]) < _FEWEST_CALLS:
        return f"makes {len(plan['calls'])} calls; at least {_FEWEST_CALLS} are needed"
    is_strange = any(outcome[0] == "x" for outcome in plan["expected"])
    return "the reference gives something that cannot be compared" if is_strange else ""


def _by_calls(calls: list[Any], expected: list[Any], workspace: Path, run_child: RunChild) -> Verdict:
    if not calls:
        return _verdict(VerdictStatus.PASS)
    done = run_child(_child("child_calls"), cwd=workspace, stdin=_dumped(calls), timeout_s=CHILD_TIMEOUT_S)
    found = None if done.timed_out or done.status != 0 else _loaded(done.stdout)
    if not isinstance(found, list) or len(found) != len(calls):
        why = "took too long" if done.timed_out else f"ended with status {done.status} and no outcomes"
        return _verdict(VerdictStatus.FAIL, f"the agent's code {why}", calls=len(calls), equal=0)
    wrong = [number for number, pair in enumerate(zip(expected, found, strict=True)) if not same(*pair)]
    counts = {"calls": len(calls), "equal": len(calls) - len(wrong)}
    if not wrong:
        return Verdict(status=VerdictStatus.PASS, reason="", details=counts)
    first = wrong[0]
    reason = (
        f"{len(wrong)} of {len(calls)} calls differ, the first is {calls[first][0]}: {_kind(found[first])}"
    )
    return Verdict(status=VerdictStatus.FAIL, reason=reason, details=counts)


def _kind(outcome: Any) -> str:
    """What sort of outcome it was; values stay out of results."""
    match outcome:
        case ["e", str(name)]:
            return f"raised {name[:100]}"
        case ["x", str(why)]:
            return f"returned something {why[:100]}"
        case ["v", str(name), *_]:
            return f"returned another {name[:100]}"
        case _:
            return "returned no outcome"


def _child(name: str) -> Sequence[str]:
    """An argv that runs one of the child modules without turntrace, site packages or environment."""
    values = (_HERE / "child_values.py").read_text()
    program = (_HERE / f"{name}.py").read_text().replace(_SELF, "")
    return [INTERPRETER, "-I", "-S", "-B", "-c", f"{values}\n{program}"]


def _sound(text: str) -> str:
    """Text without lone surrogates, which no encoder takes."""
    return text.encode("utf-8", "replace").decode()


def _dumped(value: Any) -> bytes:
    return orjson.dumps(value)


def _loaded(text: bytes) -> Any:
    """JSON from a child; None for what is too long, too deep or no JSON."""
    if len(text) > MAX_OUTPUT_BYTES:
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _last_line(text: bytes) -> str:
    lines = [line for line in text.decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1][:200] if lines else "wrote nothing"
