"""A DuckDB in memory or in a temporary file, with bounds; the extra is asked for by name."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from turntrace.errors import MissingExtraError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["connect", "literal"]

MEMORY_LIMIT: Final = "1GB"


def connect(folder: Path, feature: str) -> "DuckDBPyConnection":
    """A database whose data and spilled rows lie in ``folder``; it holds at most 1 GB of memory.

    Args:
        folder: an empty one of the caller's, who deletes it.
        feature: what needs it, for the error.

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
    return duckdb.connect(str(folder / "turns.duckdb"), config=settings)


def literal(text: str) -> str:
    """``text`` as a string of SQL."""
    return "'" + text.replace("'", "''") + "'"
