"""``turntrace query``: named questions and SQL over many files."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from turntrace.cli.answers import as_csv, as_json, as_table
from turntrace.cli.output import UsageError, say, show_lines, write, write_binary
from turntrace.cli.progress import ProgressBar
from turntrace.files.out import DEFAULT_FOLDER
from turntrace.query.database import Answer, TurnDatabase, way_for
from turntrace.query.named import NAMED, NamedQuery

__all__ = ["Format", "query", "register"]


class Format(StrEnum):
    """How an answer is written."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


def _names(incomplete: str) -> list[tuple[str, str]]:
    return [(one.name, one.meaning) for one in NAMED.values() if one.name.startswith(incomplete)]


def query(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SQL] FILES...", help="SQL unless --name is given; files or folders of traces."
        ),
    ] = None,
    *,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help=" | ".join(NAMED), autocompletion=_names),
    ] = None,
    param: Annotated[
        list[str] | None, typer.Option("--param", metavar="K=V", help="A parameter of the named query.")
    ] = None,
    output_format: Annotated[
        Format, typer.Option("--format", metavar="FORMAT", help="table, json, csv or parquet.")
    ] = Format.TABLE,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="PATH", help="Write to PATH instead of standard output."),
    ] = None,
    list_names: Annotated[
        bool, typer.Option("--list", help="The named queries and their parameters.")
    ] = False,
    allow_external: Annotated[
        bool, typer.Option("--allow-external", help="Let SQL read and write files, and load extensions.")
    ] = False,
) -> None:
    """Ask many traces at once: a named question, or SQL over turns, spans, phases, counters and usage.

    Without files: those in .turntrace. SQL can read the views and nothing else. Needs the extra `query`.

    For example:

        turntrace query --name top-phases
        turntrace query --name slowest-turns --param top=3 runs/*.ndjson --json
        turntrace query "SELECT agent, avg(wall_ns) FROM turns GROUP BY agent" runs/
    """
    output_format = Format.JSON if as_json else output_format
    if list_names:
        show_lines(_named_lines())
        return
    sql, parameters, files = _question(words or [], name, param or [])
    paths = list(_paths(files))
    with (
        ProgressBar("reading", len(paths)) as bar,
        TurnDatabase(paths, way_for(sql), unlocked=allow_external, done=bar.advance) as database,
    ):
        bar.stop()
        if database.issues:
            count = len(database.issues)
            found = "1 issue" if count == 1 else f"{count} issues"
            say(f"turntrace: {found} in the files; see them with: turntrace check")
        if output_format is Format.PARQUET:
            write_binary(database.parquet(sql, parameters), output)
        else:
            _answer(database.ask(sql, parameters), output_format, output)


def _question(
    words: Sequence[str], name: str | None, given: Sequence[str]
) -> tuple[str, dict[str, Any], Sequence[str]]:
    """The SQL, its parameters and the files."""
    if name is None:
        if not words or given:
            raise UsageError(f"give SQL, or --name with one of: {', '.join(NAMED)}")
        return words[0], {}, words[1:]
    if name not in NAMED:
        raise UsageError(f"no query is named {name}; there are: {', '.join(NAMED)}")
    return NAMED[name].sql, _parameters(NAMED[name], given), words


def _parameters(named: NamedQuery, given: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = dict(named.parameters)
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or key not in named.parameters:
            known = ", ".join(f"{name}={default:g}" for name, default in named.parameters.items())
            raise UsageError(f"{named.name} has no parameter {text}; it has: {known}")
        try:
            found[key] = type(named.parameters[key])(value)
        except ValueError as error:
            raise UsageError(f"{key} is a number, not {value}") from error
    return found


def _paths(files: Sequence[str]) -> Iterator[str]:
    """The files, and of folders the traces in them.

    Raises:
        UsageError: when a folder holds none.
    """
    for name in files or [DEFAULT_FOLDER]:
        if not Path(name).is_dir() and files:
            yield name
            continue
        found = sorted(str(path) for path in Path(name).glob("*.ndjson"))
        if not found:
            raise UsageError(
                f"no trace in {name}; name files, or record one with: turntrace run -- python agent.py"
            )
        yield from found


def _answer(answer: Answer, output_format: Format, output: str | None) -> None:
    if output_format is Format.JSON:
        write(as_json(answer), output)
    elif output_format is Format.CSV:
        write(as_csv(answer), output)
    else:
        write((f"{line}\n".encode("utf-8", "replace") for line in as_table(answer)), output)


def _named_lines() -> Iterator[str]:
    for one in NAMED.values():
        yield one.name
        yield f"    {one.meaning}"
        yield f"    {' '.join(f'--param {key}={value:g}' for key, value in one.parameters.items())}"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("query", rich_help_panel="Compare")(query)
