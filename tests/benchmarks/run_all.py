"""``make bench``: every benchmark, a line a figure: goal, what, figure, bound, verdict.

Exit status 0 whatever the figures are: a shared machine is no judge. Ratios carry over, nanoseconds do not.
"""

import argparse
import importlib
from pathlib import Path

from rich.console import Console
from rich.table import Table

__all__ = ["main"]


def main() -> None:
    """Run the benchmarks and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="interleaved rounds a figure (default 9)")
    parser.add_argument("--only", help="a part of a benchmark's name")
    arguments = parser.parse_args()
    console = Console()
    table = Table("goal", "what", "figure", "bound", "verdict")
    names = sorted(path.stem for path in Path(__file__).parent.glob("bench_*.py"))
    for name in names:
        if arguments.only and arguments.only not in name:
            continue
        with console.status(name):
            figures = importlib.import_module(name).run(arguments.rounds)
        for goal, what, figure, bound in figures:
            verdict = "" if not bound else "ok" if figure <= bound else "MISSED"
            table.add_row(goal, what, f"{figure:.2f}", f"{bound:g}" if bound else "", verdict)
    console.print(table)


if __name__ == "__main__":
    main()
