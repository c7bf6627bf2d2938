"""What a command shows of the turns in a file: the overview, and the line that names the file."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from turntrace.cli.selection import Selection
from turntrace.files.out import DEFAULT_FOLDER, newest
from turntrace.report.blocks import Block, Pointer
from turntrace.report.case import Case
from turntrace.report.many import many_view
from turntrace.report.rounding import count_text, size_text
from turntrace.report.session import is_session, nested_table, session_view
from turntrace.report.strings import Data
from turntrace.report.view import DEFAULT_CHOICE, Choice, turn_view

__all__ = ["next_pointer", "overview", "trace_pointer"]


def overview(selection: Selection, choice: Choice = DEFAULT_CHOICE) -> Iterator[Block]:
    """One turn in full, a session turn by turn, or what is typical of many turns."""
    outermost = selection.outermost
    if len(outermost) == 1:
        yield from turn_view(outermost[0], choice)
        nested = [case for case in selection.cases if case.turn.parent_run_id is not None]
        if nested and nested[0] is not outermost[0]:
            yield nested_table(nested)
    elif is_session(outermost):
        yield from session_view(outermost, choice)
    else:
        commands = [selection.command(number) for number in range(1, len(outermost) + 1)]
        yield from many_view(outermost, commands, choice)


def trace_pointer(path: str, cases: Sequence[Case], note: str = "") -> Pointer:
    """The line that names the trace file with the number of its spans and its size."""
    outermost = [case for case in cases if case.turn.parent_run_id is None] or cases
    spans = sum(len(case.attribution.spans) for case in outermost)
    figures = f"{count_text(spans)} span{'s' if spans != 1 else ''}"
    file = Path(path)
    if file.is_file():
        figures += f", {size_text(file.stat().st_size)}"
    return Pointer(name="trace", target=(Data(path),), figures=figures, note=note)


def next_pointer(path: str) -> tuple[Pointer, ...]:
    """The line that says how to see the same as a picture; nothing for standard input, which is read by now."""
    if path == "-":
        return ()
    is_newest = newest(Path(DEFAULT_FOLDER)) == Path(path)
    command = "turntrace view" if is_newest else f"turntrace view {shlex.quote(path)}"
    note = "the same as a picture (one HTML file, no network)"
    return (Pointer(name="next", target=(Data(command),), note=note),)
