"""A DuckDB in memory with bounds; the extra is asked for by name."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from turntrace.errors import MissingExtraError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["MEMORY_LIMIT", "connect", "literal", "lock", "parquet_of"]

_CHUNK_BYTES: Final = 1 << 20
MEMORY_LIMIT: Final = "1GB"
"""What DuckDB may hold in memory; beyond that it spills to the temporary folder."""


def connect(folder: Path, feature: str, at: str = ":memory:") -> "DuckDBPyConnection":
    """A database that holds at most 1 GB in memory and spills to ``folder``.

    Args:
        folder: a temporary one of the caller's, who deletes it.
        feature: what needs it, for the error.
        at: its file, else it has none.

    Raises:
        MissingExtraError: when duckdb is not installed.
    """
    try:
        import duckdb
    except ImportError as error:
        raise MissingExtraError(feature, "query") from error
    settings: dict[str, Any] = {
        "memory_limit": MEMORY_LIMIT,
        "temp_directory": str(folder / "spilled"),
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    return duckdb.connect(at, config=settings)


def lock(database: "DuckDBPyConnection") -> None:
    """Let no SQL from now on read or write files, load extensions, reach the network or change settings."""
    database.execute("SET enable_external_access = false")
    database.execute("SET lock_configuration = true")


def parquet_of(database: "DuckDBPyConnection", source: str, folder: Path) -> Iterator[bytes]:
    """The rows of ``source`` (SQL that gives some) as the bytes of a Parquet file, by way of ``folder``."""
    made = folder / "made.parquet"
    database.execute(f"COPY ({source}) TO {literal(str(made))} (FORMAT parquet, COMPRESSION zstd)")
    with made.open("rb") as rows:
        while chunk := rows.read(_CHUNK_BYTES):
            yield chunk


def literal(text: str) -> str:
    """``text`` as a string of SQL."""
    return "'" + text.replace("'", "''") + "'"
