"""Raw lines to JSON objects, with the line, the byte offset and what is wrong with each."""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import orjson

from turntrace.core.codec.json_text import SPACE, JsonTextError, decoded, exact_int, first_value, number

__all__ = ["MAX_LINE_BYTES", "Record", "read_records"]

MAX_LINE_BYTES: Final = 64 * 1024 * 1024
"""A longer line is reported and skipped; the rest of the file is read."""

_BOM: Final = "\ufeff"
_BEFORE_RECORD: Final = _BOM + "\0"
_NO_OBJECT: Final = ("bad_json_line", "the line holds no JSON object")

_Problems = tuple[tuple[str, str], ...]


class Record(NamedTuple):
    """One line that is not blank; ``fields`` is None when it holds no object and was dropped.

    ``problems`` are issue codes with their messages.
    """

    line: int
    offset: int
    fields: dict[str, Any] | None
    problems: _Problems
    raw: bytes

    def exact_int(self, key: str) -> int | None:
        """The 64-bit integer that the number at ``key`` is exactly, None when it is not one."""
        text = decoded(self.raw)[0].lstrip(SPACE + _BEFORE_RECORD)
        value = first_value(text, exact_int).value[key]
        return value if type(value) is int else None


def read_records(lines: Iterable[bytes], max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[Record]:
    """The records of raw ``lines``, blank ones left out; each line ends with its LF, the last one may not."""
    offset = 0
    for line, raw in enumerate(lines, 1):
        if len(raw) > max_line_bytes:
            message = f"{len(raw)} bytes; the limit is {max_line_bytes}"
            yield Record(line, offset, None, (("line_too_long", message),), b"")
        elif raw and not raw.isspace():
            fields, problems = _object(raw)
            if fields is not None or problems:
                yield Record(line, offset, fields, problems, raw)
        offset += len(raw)


def _object(raw: bytes) -> tuple[dict[str, Any] | None, _Problems]:
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return _damaged_object(raw)
    return (value, ()) if isinstance(value, dict) else (None, (_NO_OBJECT,))


def _damaged_object(raw: bytes) -> tuple[dict[str, Any] | None, _Problems]:
    text, not_utf8 = decoded(raw)
    problems = [("bad_utf8", "bytes that are not UTF-8 became U+FFFD")] if not_utf8 else []
    text = _record_text(text.strip(SPACE), problems)
    if not text:
        return None, tuple(problems)
    try:
        found = first_value(text, number)
    except JsonTextError:
        return None, (*problems, _unreadable(raw))
    if not isinstance(found.value, dict):
        return None, (*problems, _NO_OBJECT)
    if found.repaired:
        problems.append(("bad_utf8", "a lone surrogate became U+FFFD"))
    if text[found.end :].strip(SPACE):
        problems.append(("trailing_content", "content after the JSON object"))
    return found.value, tuple(problems)


def _record_text(text: str, problems: list[tuple[str, str]]) -> str:
    """What follows the byte order mark and the NUL bytes that a crash of the machine leaves behind."""
    bare = text.lstrip(_BEFORE_RECORD)
    before = text[: len(text) - len(bare)]
    if _BOM in before:
        problems.append(("bom", "a byte order mark before the record"))
    if "\0" in before:
        problems.append(("bad_json_line", "NUL bytes before the record"))
    return bare


def _unreadable(raw: bytes) -> tuple[str, str]:
    if raw.endswith(b"\n"):
        return "bad_json_line", "the line is not JSON"
    return "truncated_tail", "the last line is cut off"
