"""Runs in a child: calls the agent's functions with inputs from the harness, and writes what they return.

It knows inputs only. The agent's files come last on the path, so that they shadow nothing, and what the
agent prints goes to standard error.
"""

import importlib
import json
import os
import sys
from typing import Any

from turntrace.bench.child_values import tagged

__all__ = ["main", "outcome"]

MEMORY_BYTES = 1024 * 1024 * 1024
FILE_BYTES = 16 * 1024 * 1024


def outcome(target: str, arguments: list[Any]) -> list[Any]:
    """What ``module:name`` does with ``arguments``, as tagged JSON."""
    try:
        module, _, name = target.partition(":")
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        return tagged(found(*arguments))
    except BaseException as error:  # noqa: BLE001 - whatever it raises is its outcome
        return ["e", type(error).__name__[:100]]


def limit() -> None:
    """Bound memory and files of this process, where the platform can."""
    try:
        import resource  # noqa: PLC0415 - not on every platform

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
    except (ImportError, ValueError, OSError):
        return


def main() -> None:
    """Read calls from standard input, write their outcomes to what was standard output, and end at once."""
    write, leave, dumps, loads = os.write, os._exit, json.dumps, json.loads
    out = os.dup(1)
    os.dup2(2, 1)
    calls = loads(sys.stdin.buffer.read())
    sys.path.append(os.getcwd())  # noqa: PTH109 - pathlib is not loaded here
    sys.pycache_prefix = os.devnull  # what runs is the source that the oracle read, not bytes left beside it
    limit()
    text = dumps([outcome(target, arguments) for target, arguments in calls]).encode()
    while text:
        text = text[write(out, text) :]
    leave(0)


if __name__ == "__main__":
    main()
