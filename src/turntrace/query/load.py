"""Trace files into the database: our own as they lie there, everything else by turntrace's reader first."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from turntrace.core.attribution import attributed
from turntrace.core.codec.encode import encode_block
from turntrace.core.model import Issue, Turn
from turntrace.errors import TraceReadError
from turntrace.files.out import companions
from turntrace.files.read import STDIN, read_paths
from turntrace.query.connection import literal
from turntrace.query.schema import Way

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["load"]

_HEAD_BYTES: Final = 4096
_BATCH_BYTES: Final = 64 << 20
_LONGEST_LINE_BYTES: Final = 64 << 20
_HIGHEST_ID: Final = (1 << 64) - 1


def load(
    database: "DuckDBPyConnection",
    paths: Sequence[str],
    way: Way,
    folder: Path,
    done: Callable[[int], None] = lambda _: None,
) -> list[tuple[str, Issue]]:
    """Fill the tables and make the views; returns what could not be read of files that are not whole.

    Args:
        database: an empty one.
        paths: trace files of any kind that turntrace reads.
        way: which tables.
        folder: a temporary one of the caller's.
        done: hears how many more files are done.

    Raises:
        TraceReadError: when a file cannot be read at all.
    """
    database.execute(way.create)
    paths = list(dict.fromkeys(paths))
    beside = _company(paths)
    ours = [path for path in paths if path not in beside and _is_ours(path)]
    for batch in _batches(ours):
        _insert(database, way, [literal(path) for path in batch], "filename")
        done(len(batch))
    torn = {path for (path,) in database.execute(way.torn).fetchall()}
    for path in torn:
        database.execute(f"DELETE FROM {way.table} WHERE file = ?", [path])
    whole = set(ours) - torn
    issues: list[tuple[str, Issue]] = []
    for number, path in enumerate(path for path in paths if path not in whole):
        issues += _rewritten(database, way, path, folder / f"{number}.ndjson")
        done(path not in torn)
    database.execute(way.views)
    return issues


def _company(paths: Sequence[str]) -> set[str]:
    """The paths with journals or requests beside them; each folder is looked at once."""
    found: set[str] = set()
    by_folder: dict[Path, list[str]] = {}
    for path in paths:
        by_folder.setdefault(Path(path).parent, []).append(path)
    for folder, listed in by_folder.items():
        names = companions(folder)
        found.update(path for path in listed if any(name.startswith(f"{Path(path).name}.") for name in names))
    return found


def _is_ours(path: str) -> bool:
    """Whether a file seems to be NDJSON of turntrace, as its first line tells."""
    if path == STDIN:
        return False
    try:
        with Path(path).open("rb") as file:
            head = file.read(_HEAD_BYTES).partition(b"\n")[0]
    except OSError as error:
        raise TraceReadError(error.strerror or str(error), path=path) from error
    return head.startswith(b"{") and b'"type":"trace"' in head and b'"schema_version":1' in head


def _batches(paths: Sequence[str]) -> Iterator[list[str]]:
    """The paths in lots of some 64 MB, so that progress can be told."""
    batch: list[str] = []
    size_bytes = 0
    for path in paths:
        batch.append(path)
        size_bytes += Path(path).stat().st_size
        if size_bytes >= _BATCH_BYTES:
            yield batch
            batch, size_bytes = [], 0
    if batch:
        yield batch


def _insert(database: "DuckDBPyConnection", way: Way, files: Sequence[str], name: str) -> None:
    """Read files, given as SQL, into the table; ``name`` is SQL for what the file is called."""
    database.execute(
        f"INSERT INTO {way.table} SELECT {way.select.format(file=name)} FROM read_json([{', '.join(files)}],"
        f" format='newline_delimited', columns={way.fields}, filename=true, ignore_errors=true,"
        f" maximum_object_size={_LONGEST_LINE_BYTES}) {way.group}"
    )


def _rewritten(database: "DuckDBPyConnection", way: Way, path: str, blocks: Path) -> list[tuple[str, Issue]]:
    """Read a file by turntrace's reader, then into the table the blocks that it would write of it."""
    result = read_paths([path])
    with blocks.open("wb") as file:
        for turn, root_id in _told_once(result.turns):
            file.writelines(_block(turn, root_id))
    if blocks.stat().st_size:
        _insert(database, way, [literal(str(blocks))], literal(path))
    blocks.unlink()
    return result.issues


def _told_once(turns: Iterable[Turn]) -> Iterator[tuple[Turn, str]]:
    """The outermost turns, the last of a run that is told twice, each with a root id that no other has."""
    known: set[str] = set()
    runs = {turn.run_id: turn for turn in turns if turn.parent_run_id is None}
    for number, turn in enumerate(runs.values()):
        root_id = (
            turn.span_id if turn.span_id and turn.span_id not in known else f"{_HIGHEST_ID - number:016x}"
        )
        known.add(root_id)
        yield turn, root_id


def _block(turn: Turn, root_id: str) -> list[bytes]:
    """The block of a turn whose spans have the parents that counted, so that no cycle is left."""
    made = attributed(turn)
    spans = tuple(replace(times.span, parent_id=times.parent_id) for times in made.spans)
    return encode_block(replace(turn, spans=spans, span_id=root_id), made)
