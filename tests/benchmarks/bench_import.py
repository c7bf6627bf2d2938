"""G14: what ``import turntrace`` costs beside ``import opentelemetry.trace``, in fresh processes.

Bytecode is compiled beforehand, as an installed package has it.
"""

import compileall
import os
import random
import statistics
import subprocess
import sys
from pathlib import Path

__all__ = ["run"]

_CODE = {
    "bare": "pass",
    "api": "import opentelemetry.trace",
    "turntrace": "import turntrace",
}


def _cpu_ms(code: str) -> float:
    """CPU of a fresh process: on a shared machine wall time says more about the others."""
    process = subprocess.Popen([sys.executable, "-c", code])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return (usage.ru_utime + usage.ru_stime) * 1e3


def run(rounds: int) -> list[tuple[str, str, float, float]]:
    """Goal id, what, figure and goal: medians minus bare Python, as a ratio."""
    import turntrace

    compileall.compile_dir(Path(turntrace.__file__).parent, quiet=1)
    for code in _CODE.values():
        _cpu_ms(code)
    spent: dict[str, list[float]] = {name: [] for name in _CODE}
    for _ in range(rounds):
        for name in random.sample(list(_CODE), len(_CODE)):
            spent[name].append(_cpu_ms(_CODE[name]))
    ms = {name: statistics.median(found) for name, found in spent.items()}
    api, ours = ms["api"] - ms["bare"], ms["turntrace"] - ms["bare"]
    return [
        ("G14", "import turntrace / import opentelemetry.trace", ours / api, 1.2),
        ("-", "import turntrace, ms here", ours, 0.0),
    ]


if __name__ == "__main__":
    for goal, what, figure, bound in run(15):
        print(f"{goal:5} {what}: {figure:.2f}" + (f" (goal {bound:g})" if bound else ""))
