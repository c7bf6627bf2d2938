"""The agent ``oracle``, run as a script: applies the patch that comes on standard input, says the answer.

It shows what a harness costs without a model, and that every task can be solved.
"""

import json
import subprocess
import sys

__all__ = ["main"]


def main() -> int:
    """The status of git, 0 where there is nothing to apply."""
    solution = json.load(sys.stdin)
    status = 0
    if solution["patch"]:
        argv = ["git", "apply", "--whitespace=nowarn", "-"]
        status = subprocess.run(argv, input=solution["patch"].encode(), check=False).returncode  # noqa: S603 - fixed words
    sys.stdout.write(solution["answer"])
    return status


if __name__ == "__main__":
    sys.exit(main())
