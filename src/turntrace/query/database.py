"""Many turns as a database that can be asked and that can do nothing else."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, Self

from turntrace.core.model import Issue
from turntrace.errors import QueryError
from turntrace.query.connection import connect, literal, lock, parquet_of
from turntrace.query.load import load
from turntrace.query.schema import LINES, SUMMARY, Way

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["Answer", "TurnDatabase", "way_for"]

_ROWS_A_FETCH: Final = 1000
_NEEDS_LINES: Final = re.compile(
    r"\b(spans|usage|counters|exclusive|lines|placed|show|describe|information_schema|duckdb_\w+|query\w*|pragma\w*)\b",
    re.IGNORECASE,
)
"""Words without which SQL asks for turns and phases only; it is better to keep every line in vain."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The names of the columns, and the rows as they come."""

    columns: tuple[str, ...]
    rows: Iterator[tuple[Any, ...]]


def way_for(sql: str) -> Way:
    """How files have to be loaded for ``sql`` to find its views.

    >>> way_for("SELECT * FROM phases").table, way_for("FROM spans").table
    ('sums', 'lines')
    """
    return LINES if _NEEDS_LINES.search(sql) else SUMMARY


class TurnDatabase:
    """``with TurnDatabase(paths, way) as database: database.ask("SELECT ...")``.

    Args:
        paths: trace files of any kind that turntrace reads.
        way: which tables and views there are.
        unlocked: whether SQL may read and write files, load extensions and reach the network.
        done: hears how many more files are loaded.

    Raises:
        MissingExtraError: when duckdb is not installed.
        TraceReadError: when a file cannot be read.
    """

    def __init__(
        self,
        paths: Sequence[str],
        way: Way,
        *,
        unlocked: bool = False,
        done: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.issues: list[tuple[str, Issue]] = []
        self._paths = paths
        self._way = way
        self._unlocked = unlocked
        self._done = done
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._folder = Path(stack.enter_context(TemporaryDirectory(prefix="turntrace-")))
            self._database: DuckDBPyConnection = stack.enter_context(connect(self._folder, "query"))
            self.issues = load(self._database, self._paths, self._way, self._folder, self._done)
            self._database.execute(f"ATTACH {literal(str(self._results))} AS results")
            if not self._unlocked:
                lock(self._database)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @property
    def _results(self) -> Path:
        return self._folder / "results.duckdb"

    def ask(self, sql: str, parameters: Mapping[str, Any] | None = None) -> Answer:
        """The answer to one statement.

        Raises:
            QueryError: when DuckDB cannot answer it, or may not.
        """
        cursor = self._run(sql, parameters)
        return Answer(tuple(column[0] for column in cursor.description or ()), _fetched(cursor))

    def parquet(self, sql: str, parameters: Mapping[str, Any] | None = None) -> Iterator[bytes]:
        """The answer to one SELECT as the bytes of a Parquet file. Nothing can be asked afterwards.

        Raises:
            QueryError: when DuckDB cannot answer it, or may not.
        """
        self._run(f"CREATE TABLE results.main.answer AS ({sql.strip().rstrip(';')}\n)", parameters)
        self._database.close()
        with connect(self._folder, "query", str(self._results)) as results:
            yield from parquet_of(results, "FROM answer", self._folder)

    def _run(self, sql: str, parameters: Mapping[str, Any] | None) -> "DuckDBPyConnection":
        import duckdb

        try:
            return self._database.execute(sql, dict(parameters or {}) or None)
        except duckdb.Error as error:
            raise _as_ours(error) from error


def _fetched(cursor: "DuckDBPyConnection") -> Iterator[tuple[Any, ...]]:
    import duckdb

    while True:
        try:
            rows = cursor.fetchmany(_ROWS_A_FETCH)
        except duckdb.Error as error:
            raise _as_ours(error) from error
        if not rows:
            return
        yield from rows


def _as_ours(error: Exception) -> QueryError:
    message = " ".join(str(error).partition("LINE 1:")[0].split())
    if "disabled" in message or "locked" in message:
        message += "; SQL may read the views only, unless --allow-external is given"
    return QueryError(message)
