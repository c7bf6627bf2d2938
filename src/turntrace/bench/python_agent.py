"""Run as ``python -m turntrace.bench.python_agent MODULE FUNC PROMPT``: one call, its result is the answer.

The module is looked for in the workspace too. What TURNTRACE_TRACE names is recorded.
"""

import importlib
import sys

import turntrace as tt

__all__ = ["main"]


def main(module: str, function: str, prompt: str) -> None:
    """Call ``function(prompt)`` inside a turn and print what it returns."""
    handle = tt.configure()
    try:
        with tt.turn(function):
            answer = getattr(importlib.import_module(module), function)(prompt)
    finally:
        handle.shutdown()
    sys.stdout.write(f"{answer}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
