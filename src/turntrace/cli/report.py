"""``turntrace report``: where the time of one or many turns went."""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Annotated

import typer

from turntrace.cli.output import UsageError, show, write
from turntrace.cli.overview import next_pointer, overview, trace_pointer
from turntrace.cli.selection import Selection, choose, load
from turntrace.core.beside import beside
from turntrace.report.beside import beside_json, beside_view
from turntrace.report.blocks import Block, Pointers
from turntrace.report.case import Case
from turntrace.report.critical import critical_table
from turntrace.report.json_report import json_report
from turntrace.report.markdown import markdown
from turntrace.report.rounding import unit_for
from turntrace.report.text import text
from turntrace.report.tree import tree_table
from turntrace.report.tsv import tsv
from turntrace.report.view import Choice, heading, turn_view

__all__ = ["ByOption", "Format", "newest", "register"]

_TWO = 2


class Format(StrEnum):
    """The output formats of a report."""

    TEXT = "text"
    MARKDOWN = "markdown"
    GITHUB = "github"
    TSV = "tsv"
    JSON = "json"


class ByOption(StrEnum):
    """What a row of the table is."""

    PHASE = "phase"
    ROUND = "round"
    TOOL = "tool"
    MODEL = "model"
    SPAN = "span"


Files = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="FILE", help="Traces of turntrace, OTLP or Jaeger; without one the newest in .turntrace."
    ),
]


def report(
    files: Files = None,
    *,
    output_format: Annotated[
        Format, typer.Option("--format", metavar="FORMAT", help="text, markdown, github, tsv or json.")
    ] = Format.TEXT,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="PATH", help="Write to PATH instead of standard output."),
    ] = None,
    by: Annotated[ByOption, typer.Option("--by", help="What a row is.")] = ByOption.PHASE,
    tree: Annotated[
        bool, typer.Option("--tree", help="Every span below its parent, with its own time.")
    ] = False,
    critical_path: Annotated[
        bool, typer.Option("--critical-path", help="What the turn was waiting for, in order of time.")
    ] = False,
    turn: Annotated[
        str | None,
        typer.Option(
            "--turn", metavar="ID|N|slowest", help="One turn; NAME=VALUE says which span is a turn."
        ),
    ] = None,
    top: Annotated[int, typer.Option("--top", min=1, metavar="N", help="How many rows of a long list.")] = 5,
    everything: Annotated[bool, typer.Option("--all", help="Fold nothing.")] = False,
    side_by_side: Annotated[
        bool, typer.Option("--beside", help="Two files beside each other: medians and differences.")
    ] = False,
) -> None:
    """Show where the wall time of one or many turns went.

    One turn gets the table of its phases; many get medians, P95 and the slowest; a session gets both,
    turn by turn and in sum. The rows of a table add up to its sum line.

    For example:

        turntrace report
        turntrace report run.ndjson --by tool
        turntrace report run.ndjson --turn slowest --critical-path
        turntrace report *.ndjson --json -o report.json
        turntrace report before.ndjson after.ndjson --beside
    """
    if as_json:
        output_format = Format.JSON
    if side_by_side:
        _beside(files or (), output_format, output)
        return
    rule, wanted = (turn, None) if turn and "=" in turn else (None, turn)
    selection = load(files or (), rule)
    choice = Choice(by=by.value, top=top, everything=everything)
    shown = (
        selection if wanted is None else Selection(paths=selection.paths, cases=(choose(selection, wanted),))
    )
    if output_format is Format.JSON:
        write(json_report(shown.cases), output)
    elif output_format is Format.TSV:
        write(_encoded(tsv(shown.cases)), output)
    else:
        _print(list(_blocks(shown, choice, tree=tree, critical_path=critical_path)), output_format, output)


def _beside(files: Sequence[str], output_format: Format, output: str | None) -> None:
    """Two files beside each other.

    Raises:
        UsageError: when there are not two, or when the format has no such form.
    """
    if len(files) != _TWO or output_format is Format.TSV:
        raise UsageError("--beside takes two files, as text, markdown, github or json")
    found = beside(*([(case.turn, case.attribution) for case in load([path]).outermost] for path in files))
    if output_format is Format.JSON:
        write([beside_json(found, files)], output)
    else:
        _print(beside_view(found, files), output_format, output)


def _encoded(pieces: Iterable[str]) -> Iterator[bytes]:
    return (piece.encode() for piece in pieces)


def _print(blocks: Sequence[Block], output_format: Format, output: str | None) -> None:
    if output_format is not Format.TEXT:
        write(_encoded([markdown(blocks)]), output)
    elif output not in {None, "-"}:
        write(_encoded([text(blocks)]), output)
    else:
        show(blocks)


def _blocks(selection: Selection, choice: Choice, *, tree: bool, critical_path: bool) -> Iterator[Block]:
    """The report as blocks: details turn by turn where they were asked for, else an overview."""
    if tree or critical_path or choice.by in {"round", "span"}:
        for case in selection.outermost:
            yield from _details(case, choice, tree=tree, critical_path=critical_path)
    else:
        yield from overview(selection, choice)
    if len(selection.paths) == 1:
        path = selection.paths[0]
        yield Pointers(rows=(trace_pointer(path, selection.cases), *next_pointer(path)))


def _details(case: Case, choice: Choice, *, tree: bool, critical_path: bool) -> Iterator[Block]:
    if not tree and not critical_path:
        yield from turn_view(case, choice)
        return
    unit = unit_for(case.attribution.wall_ns)
    yield heading(case, unit)
    if tree:
        yield tree_table(case, unit, everything=choice.everything)
    if critical_path:
        yield critical_table(case, unit, everything=choice.everything)


def newest() -> None:
    """The report of the newest trace in .turntrace."""
    report()


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("report", rich_help_panel="Look")(report)
