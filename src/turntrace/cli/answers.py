"""Rows of an answer as a table, JSON or CSV: nothing is cut, nothing from data can act on a terminal."""

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

from turntrace.query.database import Answer
from turntrace.report.json_report import dumped
from turntrace.report.strings import UNKNOWN, cells, printable
from turntrace.report.tsv import cell

__all__ = ["as_csv", "as_json", "as_table"]

_GAP = "  "


def as_json(answer: Answer) -> Iterator[bytes]:
    """One document: the columns, and the rows as objects."""
    rows = [dict(zip(answer.columns, map(_plain, row), strict=True)) for row in answer.rows]
    yield dumped({"schema": 1, "columns": list(answer.columns), "rows": rows}) + b"\n"


def as_csv(answer: Answer) -> Iterator[bytes]:
    """A line of names, then a line a row; unknown is an empty cell."""
    yield _csv_line(answer.columns)
    for row in answer.rows:
        yield _csv_line([_csv_value(value) for value in row])


def _csv_line(values: Sequence[Any]) -> bytes:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(values)
    return line.getvalue().encode("utf-8", "replace")


def _csv_value(value: Any) -> Any:
    value = _plain(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return cell(value) if isinstance(value, str) else value


def as_table(answer: Answer) -> Iterator[str]:
    """Lines for people: numbers to the right with the same decimals, unknown as a dash."""
    rows = [tuple(map(_plain, row)) for row in answer.rows]
    columns = [[row[at] for row in rows] for at in range(len(answer.columns))]
    shown = [[printable(name), *_texts(values)] for name, values in zip(answer.columns, columns, strict=True)]
    widths = [max(map(cells, column)) for column in shown]
    numeric = [any(isinstance(value, int | float) for value in values) for values in columns]
    for number in range(len(rows) + 1):
        pieces = (
            _padded(column[number], width, right=is_number)
            for column, width, is_number in zip(shown, widths, numeric, strict=True)
        )
        yield _GAP.join(pieces).rstrip()


def _padded(text: str, width: int, *, right: bool) -> str:
    pad = " " * (width - cells(text))
    return pad + text if right else text + pad


def _texts(values: Sequence[Any]) -> Iterator[str]:
    decimals = max(
        (len(str(value).partition(".")[2]) for value in values if isinstance(value, float)), default=0
    )
    for value in values:
        match value:
            case None:
                yield UNKNOWN
            case bool():
                yield str(value).lower()
            case int():
                yield f"{value:,}"
            case float() if "e" not in str(value):
                yield f"{value:,.{decimals}f}"
            case _:
                yield printable(str(value))


def _plain(value: Any) -> Any:
    """A value of SQL as one of JSON; what JSON has not is text."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
