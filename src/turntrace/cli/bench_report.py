"""``turntrace bench report``: what the rows of a result file say together."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import orjson
import typer

from turntrace.bench.gates import Gate, gate_of
from turntrace.bench.result_text import result_lines
from turntrace.bench.results import Summary, summary, unmet
from turntrace.bench.rows import SCHEMA, SCHEMA_VERSION, Results, read_results
from turntrace.bench.zero_rows import zero_result
from turntrace.cli.output import UsageError, say, show_lines
from turntrace.report.strings import printable

__all__ = ["conclude", "register", "report", "show_results"]

Format = Literal["text", "markdown", "json"]


def report(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What turntrace bench run wrote.")],
    *,
    style: Annotated[Format, typer.Option("--format", help="text, markdown or json.")] = "text",
    as_json: Annotated[bool, typer.Option("--json", help="As --format json.")] = False,
    drop_disturbed: Annotated[
        bool, typer.Option("--drop-disturbed", help="Leave disturbed runs out of latencies.")
    ] = False,
    export_zero: Annotated[
        Path | None, typer.Option("--export-zero", metavar="P", help="Also zero's document.")
    ] = None,
    fail_on: Annotated[
        list[str] | None, typer.Option("--fail-on", metavar="EXPR", help="As wall_p50>2s.")
    ] = None,
) -> None:
    """Show passes by task and tier with intervals, wall by class, and phases by the agent's own telemetry.

    Tiers are never averaged and no rate stands for all of them. Exit status 1: a --fail-on held.

    For example:

        turntrace bench report mine.ndjson
        turntrace bench report mine.ndjson --format markdown --fail-on 'correctness<90%'
    """
    gates = [gate_of(text) for text in fail_on or ()]
    results = read_results(file)
    show_results(
        results, "json" if as_json else style, drop_disturbed=drop_disturbed, export_zero=export_zero
    )
    _held(summary(results, drop_disturbed=drop_disturbed), gates)


def show_results(
    results: Results, style: Format, *, drop_disturbed: bool = False, export_zero: Path | None = None
) -> None:
    """Print the report, and write zero's document where asked."""
    found = summary(results, drop_disturbed=drop_disturbed)
    if style == "json":
        show_lines(
            [orjson.dumps(_document(results, found), default=tuple, option=orjson.OPT_INDENT_2).decode()]
        )
    else:
        show_lines(map(printable, result_lines(results.header, found, style)))
    if export_zero is not None:
        try:
            export_zero.write_bytes(orjson.dumps(zero_result(results), option=orjson.OPT_INDENT_2) + b"\n")
        except OSError as error:
            raise UsageError(f"cannot write {export_zero}: {error.strerror}") from error


def _document(results: Results, found: Summary) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "header": asdict(results.header),
        "ended": results.ended,
        "summary": asdict(found),
        "rows": [asdict(row) for row in results.rows],
    }


def conclude(results: Results, gates: list[Gate], *, needs_trace: bool) -> None:
    """Exit with 1, and say why, where a run that was made to the end has failed as a whole."""
    found = summary(results)
    reasons = list(unmet(found))
    if found.errored == found.attempted:
        reasons.append("every run errored")
    if needs_trace and not found.usable_traces:
        reasons.append("no run left a usable trace (--no-trace asks for none)")
    for reason in reasons:
        say(f"turntrace: failed: {reason}")
    _held(found, gates)
    if reasons:
        raise typer.Exit(1)


def _held(found: Summary, gates: list[Gate]) -> None:
    held = [why for gate in gates if (why := gate.holds(found)) is not None]
    for why in held:
        say(f"turntrace: --fail-on {why}")
    if held:
        raise typer.Exit(1)


def register(group: typer.Typer) -> None:
    """Add the command."""
    group.command("report")(report)
