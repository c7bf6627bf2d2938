"""``turntrace check``: whether a file is a trace that others can rely on."""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, BinaryIO, Final

import typer

from turntrace.cli.inspection import Demands, Found, Mode, inspect_file, inspect_foreign
from turntrace.cli.output import UsageError, show_lines, standard_output, write
from turntrace.cli.selection import newest_path
from turntrace.core.contract import REQUIRED_EVENT_KEYS
from turntrace.files.foreign import is_foreign, is_text
from turntrace.files.source import plain
from turntrace.report.json_report import dumped
from turntrace.report.rounding import count_text
from turntrace.report.strings import printable

__all__ = ["check", "register"]

_FAILED_STATUS: Final = 1
_SHOWN_ISSUES: Final = 20
_MEMORY_BYTES: Final = 64 * 1024 * 1024
_COPY_BYTES: Final = 1024 * 1024


def check(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE", help="Traces, - is standard input; without one the newest in .turntrace."
        ),
    ] = None,
    *,
    require: Annotated[
        list[str] | None,
        typer.Option("--require", metavar="KEY", help="An event key that must be there; repeatable."),
    ] = None,
    contract: Annotated[
        bool,
        typer.Option("--contract", "--required", help="Require the seven event keys of a normal model turn."),
    ] = False,
    min_coverage: Annotated[
        float | None,
        typer.Option("--min-coverage", metavar="R", min=0, max=1, help="Least share of each turn in phases."),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Any error fails (the default).")] = False,
    lenient: Annotated[
        bool, typer.Option("--lenient", help="An error that only costs a line is reported.")
    ] = False,
    compat: Annotated[
        bool, typer.Option("--compat", help="Read exactly as the reader of Gitlawb/zero does.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The result as JSON.")] = False,
) -> None:
    """Validate trace files: issue codes with line and byte offset, missing event keys, a coverage gate.

    Of what other tools wrote (OTLP, Jaeger) it lists what is damaged.

    Exit status 0 when every file holds, 1 when one does not, 2 when one cannot be opened.

    For example:

        turntrace check run.ndjson
        turntrace check run.ndjson --contract --min-coverage 0.9
        turntrace check *.ndjson --require span:verification --json
    """
    required = [*(REQUIRED_EVENT_KEYS if contract else ()), *(require or ())]
    demands = Demands(
        mode=_mode(strict=strict, lenient=lenient, compat=compat),
        required=tuple(dict.fromkeys(required)),
        min_coverage=min_coverage,
    )
    found = [_inspected(path, demands) for path in files or [newest_path()]]
    if as_json:
        write([_as_json(found)], None)
    else:
        show_lines(line for one in found if not _goes_without_saying(one) for line in _as_text(one))
    if not all(one.ok for one in found):
        raise typer.Exit(_FAILED_STATUS)


def _goes_without_saying(found: Found) -> bool:
    """Nothing to say of a good file, unless a person is looking."""
    return found.ok and not found.issues and not standard_output().isatty()


def _mode(*, strict: bool, lenient: bool, compat: bool) -> Mode:
    if strict + lenient + compat > 1:
        message = "--strict, --lenient and --compat exclude each other"
        raise UsageError(message)
    if compat:
        return Mode.COMPAT
    return Mode.LENIENT if lenient else Mode.STRICT


def _inspected(path: str, demands: Demands) -> Found:
    try:
        if path == "-":
            return _inspected_stream(path, sys.stdin.buffer, demands)
        with Path(path).open("rb") as file:
            return _inspected_stream(path, file, demands)
    except OSError as error:
        message = f"cannot read {path}: {error.strerror or error}"
        raise UsageError(message) from error


def _inspected_stream(path: str, stream: BinaryIO, demands: Demands) -> Found:
    """A trace is read more than once: what comes from a pipe or is compressed is copied first."""
    lost: list[str] = []
    source, head = plain(stream, lost.append)
    if is_foreign(head) or not is_text(head):
        return inspect_foreign(path, source, head, lost)
    with tempfile.SpooledTemporaryFile(_MEMORY_BYTES) as copy:
        while piece := source.read(_COPY_BYTES):
            copy.write(piece)
        copy.seek(0)
        found = inspect_file(path, copy, demands)
        found.cut(lost)
        return found


def _as_text(found: Found) -> Iterator[str]:
    path = printable(found.path)
    turns = f"{count_text(found.turns)} turn{'' if found.turns == 1 else 's'}"
    keys = f"{len(found.keys)} event key{'' if len(found.keys) == 1 else 's'}"
    yield f"{path}: {'ok' if found.ok else 'failed'}, {turns}, {keys}"
    for key in found.missing:
        yield f"  missing  {printable(key)}"
    for issue in found.issues[:_SHOWN_ISSUES]:
        where = "" if issue.line is None else f"line {issue.line}"
        where += "" if issue.offset is None else f", byte {issue.offset}" if where else f"byte {issue.offset}"
        place = f" ({where})" if where else ""
        yield f"  {issue.severity:<7}  {issue.code}{place}: {printable(issue.message)}"
    more = len(found.issues) - _SHOWN_ISSUES + found.issues_omitted
    if len(found.issues) > _SHOWN_ISSUES or found.issues_omitted:
        yield f"  {count_text(more)} more; --json lists them"


def _as_json(found: Sequence[Found]) -> bytes:
    files = [
        {
            "path": one.path,
            "ok": one.ok,
            "turns": one.turns,
            "keys": one.keys,
            "missing": one.missing,
            "issues": [
                {
                    "code": issue.code,
                    "severity": issue.severity,
                    "line": issue.line,
                    "offset": issue.offset,
                    "message": issue.message,
                }
                for issue in one.issues
            ],
        }
        for one in found
    ]
    return dumped({"schema": 1, "files": files}) + b"\n"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("check", rich_help_panel="Files")(check)
