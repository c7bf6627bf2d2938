"""``turntrace bench``: the group of commands that measure agents over suites of tasks."""

import typer

from turntrace.cli import bench_import, bench_making, bench_report, bench_run, bench_suite

__all__ = ["bench", "register"]

bench = typer.Typer(
    name="bench",
    help="""Run agents over suites of tasks, and keep numbers that may be believed.

    A suite is a folder, a manifest, or the name of one that is shipped.

    For example:

        turntrace bench list examples
        turntrace bench init my-suite
        turntrace bench validate my-suite --prove --trust-manifest
    """,
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


def register(app: typer.Typer) -> None:
    """Add the group. Commands live in files of their own, each with a ``register`` that takes the group."""
    for part in (bench_suite, bench_making, bench_import, bench_run, bench_report):
        part.register(bench)
    app.add_typer(bench, name="bench", rich_help_panel="Benchmark")
