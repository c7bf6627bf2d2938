"""On which line a field of a manifest stands. Readers give values only; people need the place."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

__all__ = ["FieldPath", "Places", "field_text", "json_places", "toml_places"]

FieldPath = tuple[str | int, ...]

_JSON_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_TOML_TABLE: Final = re.compile(r"\s*(\[\[?)\s*([A-Za-z0-9_.\-]+)\s*\]\]?\s*(?:#.*)?$")
_TOML_KEY: Final = re.compile(r"""\s*(?:"([^"]+)"|'([^']+)'|([A-Za-z0-9_\-]+))\s*=""")
_TRIPLE: Final = re.compile(r'"""|\'\'\'')


def field_text(path: FieldPath) -> str:
    """A path as people write it.

    >>> field_text(("tasks", 2, "class"))
    'tasks[2].class'
    """
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f"{'.' if text else ''}{part}"
    return text


@dataclass(slots=True)
class Places:
    """Lines of fields, and fields that stand twice in one object (readers keep the last)."""

    lines: dict[FieldPath, int] = field(default_factory=dict)
    twice: list[tuple[FieldPath, int]] = field(default_factory=list)

    def line(self, path: FieldPath) -> int | None:
        """The line of ``path``, else of what holds it."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return None

    def add(self, path: FieldPath, line: int) -> None:
        """A field stands there."""
        if path in self.lines and isinstance(path[-1], str):
            self.twice.append((path, line))
        self.lines[path] = line


@dataclass(slots=True)
class _Open:
    """An object or array that has begun. ``key`` is the field or index that is being read."""

    path: FieldPath
    is_object: bool
    key: str | int = 0
    wants_key: bool = True


def json_places(text: str) -> Places:
    r"""Places in a JSON text that a reader has accepted already. Nesting is followed without recursion.

    >>> json_places('{"a": [1,\n 2]}').lines[("a", 1)]
    2
    """
    places = Places({(): 1})
    stack: list[_Open] = []
    for piece, line in _tokens(text):
        if piece in "}]":
            stack.pop()
        elif piece == ",":
            _next(stack[-1])
        elif piece == ":":
            stack[-1].wants_key = False
        elif stack and stack[-1].is_object and stack[-1].wants_key:
            stack[-1].key = _unquoted(piece)
            places.add((*stack[-1].path, stack[-1].key), line)
        else:
            _value(piece, line, stack, places)
    return places


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    line, counted = 1, 0
    for match in _JSON_TOKEN.finditer(text):
        line += text.count("\n", counted, match.start())
        counted = match.start()
        yield match[0], line


def _next(inside: _Open) -> None:
    inside.wants_key = True
    if isinstance(inside.key, int):
        inside.key += 1


def _value(piece: str, line: int, stack: list[_Open], places: Places) -> None:
    path = (*stack[-1].path, stack[-1].key) if stack else ()
    if stack and not stack[-1].is_object:
        places.add(path, line)
    if piece in "{[":
        stack.append(_Open(path, is_object=piece == "{"))


def _unquoted(piece: str) -> str:
    return str(json.loads(piece)) if "\\" in piece else piece[1:-1]


def toml_places(text: str) -> Places:
    r"""Places of tables and keys in a TOML text that a reader has accepted already.

    >>> toml_places("a = 1\n[b]\nc = 2").lines[("b", "c")]
    3
    """
    places = Places({(): 1})
    table: FieldPath = ()
    counts: dict[str, int] = {}
    for number, line in _statements(text):
        if header := _TOML_TABLE.match(line):
            name = header[2]
            table = tuple(name.split("."))
            if header[1] == "[[":
                counts[name] = counts.get(name, -1) + 1
                table = (*table, counts[name])
            places.lines.setdefault(table, number)
        elif key := _TOML_KEY.match(line):
            places.lines.setdefault((*table, key[1] or key[2] or key[3]), number)
    return places


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, without those inside a string of several lines."""
    closing = ""
    for number, line in enumerate(text.splitlines(), 1):
        if not closing:
            yield number, line
        for mark in _TRIPLE.findall(line):
            if not closing:
                closing = mark
            elif mark == closing:
                closing = ""
