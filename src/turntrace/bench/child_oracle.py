"""Runs in a child: the oracle of a task. It is dead before anything of the agent starts.

In: ``{"source", "seed", "answer", "files"}``. Out, a line each: first what depends on the seed only
(``{"calls", "expected", "asks"}``), then what it says of the agent's text (``{"faults"}``). A child that
dies between the two was killed by the text, which is the agent's failure and not the oracle's.
"""

import copy
import json
import sys
from typing import Any

from turntrace.bench.child_values import tagged

__all__ = ["asked", "faults", "main", "prepared"]

ASKS = ("calls", "structure", "answer")


def prepared(names: dict[str, Any], seed: int) -> dict[str, Any]:
    """Calls of the oracle ``names`` for ``seed``, with what the reference gives for each."""
    calls = names["calls"](seed) if "calls" in names else []
    return {
        "calls": calls,
        "expected": [_expected(names, target, arguments) for target, arguments in calls],
        "asks": asked(names),
    }


def asked(names: dict[str, Any]) -> list[str]:
    """Which kinds of questions the oracle has."""
    return [ask for ask in ASKS if ask in names]


def _expected(names: dict[str, Any], target: str, arguments: list[Any]) -> list[Any]:
    try:
        return tagged(names["reference"](target.partition(":")[2], *copy.deepcopy(arguments)))
    except Exception as error:  # noqa: BLE001 - an exception is what the reference expects
        return ["e", type(error).__name__]


def faults(names: dict[str, Any], answer: str, files: dict[str, str]) -> list[str]:
    """What is wrong with the agent's files and words."""
    found: list[str] = []
    if "structure" in names:
        found += names["structure"](files)
    if "answer" in names:
        found += names["answer"](answer)
    return [str(fault)[:200] for fault in found][:20]


def main() -> None:
    """Judge what standard input holds."""
    request = json.loads(sys.stdin.buffer.read())
    names: dict[str, Any] = {"__name__": "oracle"}
    exec(compile(request["source"], "oracle.py", "exec"), names)  # noqa: S102 - this child exists for it
    out = sys.stdout
    sys.stdout = sys.stderr
    print(json.dumps(prepared(names, request["seed"])), file=out, flush=True)
    print(json.dumps({"faults": faults(names, request["answer"], request["files"])}), file=out, flush=True)


if __name__ == "__main__":
    main()
