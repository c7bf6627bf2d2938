"""``turntrace convert``: turns as files of other tools."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Annotated, Final

import typer

from turntrace.cli.output import say, write, write_binary
from turntrace.cli.progress import ProgressBar
from turntrace.cli.selection import newest_path, nothing_in, say_errors
from turntrace.core.attribution import attributed
from turntrace.core.codec.encode import encode_block
from turntrace.core.exports.chrome_trace import chrome_events, origin_ns
from turntrace.core.exports.folded import folded
from turntrace.core.exports.otlp_json import otlp_request
from turntrace.core.exports.span_rows import COLUMNS, span_rows
from turntrace.core.exports.speedscope import speedscope
from turntrace.core.model import Turn
from turntrace.core.results import Attribution
from turntrace.files.read import read_paths
from turntrace.report.json_report import dumped
from turntrace.report.tsv import cell
from turntrace.version import VERSION

__all__ = ["To", "convert", "register"]

Turns = Sequence[tuple[Turn, Attribution]]


class To(StrEnum):
    """The formats that turns are written in."""

    NDJSON = "ndjson"
    OTLP_JSON = "otlp-json"
    PERFETTO = "perfetto"
    SPEEDSCOPE = "speedscope"
    FOLDED = "folded"
    CSV = "csv"
    PARQUET = "parquet"


def convert(
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE", help="Traces; the newest in .turntrace if unset.")
    ] = None,
    *,
    to: Annotated[To, typer.Option("--to", metavar="FORMAT", help=" | ".join(To))],
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="PATH", help="Write to PATH instead of standard output."),
    ] = None,
) -> None:
    """Write turns in the format of another tool: every span, each once, with its exact times.

    ndjson is turntrace's own; otlp-json for collectors and backends; perfetto opens in ui.perfetto.dev, speedscope
    in speedscope.app; folded are stacks for flame graphs, weighted by own time in nanoseconds; csv and parquet
    have a row for each turn and each span. Parquet needs the extra `query`.

    For example:

        turntrace convert run.ndjson --to perfetto -o run.json
        turntrace convert run.ndjson --to folded | inferno-flamegraph > run.svg
        turntrace convert *.ndjson --to parquet -o week.parquet
    """
    paths = files or [newest_path()]
    turns = _read(paths)
    if to is To.PARQUET:
        write_binary(_parquet(turns), output)
    else:
        write(_WRITERS[to](turns), output)


def _read(paths: Sequence[str]) -> Turns:
    """The turns that lie in no other: their spans are all there are.

    Raises:
        TraceReadError: when a file cannot be read.
        UsageError: when there is no turn.
    """
    found: list[tuple[Turn, Attribution]] = []
    issues = []
    with ProgressBar("reading", len(paths)) as bar:
        for path in paths:
            result = read_paths([path])
            issues += result.issues
            found += [(turn, attributed(turn)) for turn in result.turns if turn.parent_run_id is None]
            bar.advance()
    if not found:
        raise nothing_in(paths, issues)
    say_errors(issues)
    return found


def _ndjson(turns: Turns) -> Iterator[bytes]:
    for turn, attribution in turns:
        yield from encode_block(turn, attribution)


def _otlp_json(turns: Turns) -> Iterator[bytes]:
    return (dumped(otlp_request(turn, attribution, VERSION)) + b"\n" for turn, attribution in turns)


def _perfetto(turns: Turns) -> Iterator[bytes]:
    origin = origin_ns(turns)
    head = {
        "displayTimeUnit": "ns",
        "otherData": {"started_at_ns": str(origin), "writer": f"turntrace {VERSION}"},
    }
    yield dumped(head)[:-1] + b',"traceEvents":[\n'
    separator = b""
    for process, (turn, attribution) in enumerate(turns, start=1):
        for event in chrome_events(turn, attribution, process, origin):
            yield separator + dumped(event)
            separator = b",\n"
    yield b"\n]}\n"


def _speedscope(turns: Turns) -> Iterator[bytes]:
    yield dumped(speedscope(turns, turns[0][0].agent or turns[0][0].run_id)) + b"\n"


def _folded(turns: Turns) -> Iterator[bytes]:
    stacks = [stack for turn, attribution in turns for stack in folded(turn, attribution)]
    if not stacks:
        say("turntrace: no phase took time of its own, so there are no stacks")
    return (f"{stack} {busy_ns}\n".encode("utf-8", "replace") for stack, busy_ns in stacks)


def _csv(turns: Turns) -> Iterator[bytes]:
    yield _csv_line(COLUMNS)
    for turn, attribution in turns:
        for row in span_rows(turn, attribution):
            yield _csv_line(map(_csv_value, row))


def _csv_value(value: object) -> object:
    """Text that no spreadsheet runs, true and false as SQL and JSON spell them."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return cell(value) if isinstance(value, str) else value


def _csv_line(values: Iterable[object]) -> bytes:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(values)
    return line.getvalue().encode("utf-8", "replace")


_WRITERS: Final[dict[To, Callable[[Turns], Iterator[bytes]]]] = {
    To.NDJSON: _ndjson,
    To.OTLP_JSON: _otlp_json,
    To.PERFETTO: _perfetto,
    To.SPEEDSCOPE: _speedscope,
    To.FOLDED: _folded,
    To.CSV: _csv,
}


def _parquet(turns: Turns) -> Iterator[bytes]:
    from turntrace.query.parquet import parquet

    return parquet(row for turn, attribution in turns for row in span_rows(turn, attribution))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("convert", rich_help_panel="Files")(convert)
