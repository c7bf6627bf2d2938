"""Rows of spans as a Parquet file, written by DuckDB."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from turntrace.core.exports.span_rows import COLUMNS
from turntrace.query.connection import connect, literal, parquet_of

__all__ = ["parquet"]


def parquet(rows: Iterable[tuple[Any, ...]]) -> Iterator[bytes]:
    """Rows of COLUMNS as the bytes of a Parquet file, compressed with zstd.

    Raises:
        MissingExtraError: when duckdb is not installed.
    """
    with TemporaryDirectory(prefix="turntrace-") as name:
        folder = Path(name)
        database = connect(folder, "Parquet")
        lines = folder / "rows.ndjson"
        with lines.open("wb") as file:
            file.writelines(
                orjson.dumps(dict(zip(COLUMNS, row, strict=True)), option=orjson.OPT_APPEND_NEWLINE)
                for row in rows
            )
        source = f"SELECT * FROM read_json({literal(str(lines))}, format='newline_delimited', columns={_columns()})"
        with database:
            yield from parquet_of(database, source, folder)


def _columns() -> str:
    return "{" + ", ".join(f"{name}: '{kind}'" for name, kind in COLUMNS.items()) + "}"
