"""The first JSON value of a text, read without recursion: for the lines that a fast parser refuses.

A fast parser wants one valid document. Lines in the wild have content after the value, lone surrogates,
numbers beyond a float, or nesting beyond its limit; each of these has a meaning in the contract.
"""

import re
from collections.abc import Callable
from json import loads
from typing import Any, Final, NamedTuple

__all__ = [
    "MAX_DEPTH",
    "SPACE",
    "FirstValue",
    "JsonTextError",
    "decoded",
    "exact_int",
    "first_value",
    "number",
]

MAX_DEPTH: Final = 10_000
"""Nesting beyond this is an error, as in Go."""

SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""What Go's ``strings.TrimSpace`` removes; Python's ``str.strip`` removes four more."""

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_STRING: Final = re.compile(r'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"')
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_PARTS: Final = re.compile(r"(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?)0*(\d*))?", re.ASCII)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_LITERALS: Final = {"t": ("true", True), "f": ("false", False), "n": ("null", None)}
_INT64_DIGITS: Final = 19
_INT_CHARACTERS: Final = 20
_MIN_INT64: Final = -(2**63)
_MAX_INT64: Final = 2**63 - 1


class JsonTextError(ValueError):
    """The text does not start with a JSON value."""


class FirstValue(NamedTuple):
    """A JSON value, the index after it, and whether a lone surrogate in it became U+FFFD."""

    value: Any
    end: int
    repaired: bool


def first_value(text: str, to_number: Callable[[str], object]) -> FirstValue:
    """The first JSON value of ``text``; of equal keys the last wins, numbers go through ``to_number``.

    >>> first_value('{"a": [1, 2]} rest', int)
    FirstValue(value={'a': [1, 2]}, end=13, repaired=False)

    Raises:
        JsonTextError: when there is none, or it is nested more than MAX_DEPTH deep.
    """
    scanner = _Scanner(text, to_number)
    stack: list[tuple[dict[str, Any] | list[Any], str]] = []
    while True:
        value, opened = scanner.value()
        if opened:
            if len(stack) == MAX_DEPTH:
                raise JsonTextError
            if not scanner.closes(value):
                stack.append((value, scanner.key(value)))
                continue
        while stack:
            container, key = stack.pop()
            _put(container, key, value)
            if scanner.skips(","):
                stack.append((container, scanner.key(container)))
                break
            if not scanner.closes(container):
                raise JsonTextError
            value = container
        else:
            return FirstValue(value, scanner.index, scanner.repaired)


def _put(container: dict[str, Any] | list[Any], key: str, value: object) -> None:
    if isinstance(container, dict):
        container[key] = value
    else:
        container.append(value)


class _Scanner:
    """A position in a text and the few steps that a JSON value takes."""

    __slots__ = ("_text", "_to_number", "index", "repaired")

    def __init__(self, text: str, to_number: Callable[[str], object]) -> None:
        self._text = text
        self._to_number = to_number
        self.index = 0
        self.repaired = False

    def value(self) -> tuple[Any, bool]:
        """A scalar and False, or an empty container that was opened and True."""
        self._space()
        char = self._text[self.index : self.index + 1]
        if char in {"{", "["}:
            self.index += 1
            return ({} if char == "{" else []), True
        if char == '"':
            return self._string(), False
        if char in _LITERALS:
            word, literal = _LITERALS[char]
            if not self._text.startswith(word, self.index):
                raise JsonTextError
            self.index += len(word)
            return literal, False
        return self._to_number(self._match(_NUMBER)), False

    def key(self, container: dict[str, Any] | list[Any]) -> str:
        """The key of the next member of an object; empty in an array."""
        if isinstance(container, list):
            return ""
        self._space()
        key = self._string()
        if not self.skips(":"):
            raise JsonTextError
        return key

    def closes(self, container: dict[str, Any] | list[Any]) -> bool:
        """Whether the container ends here; moves past its end."""
        return self.skips("}" if isinstance(container, dict) else "]")

    def skips(self, char: str) -> bool:
        """Whether ``char`` comes next; moves past it."""
        self._space()
        found = self._text.startswith(char, self.index)
        self.index += found
        return found

    def _space(self) -> None:
        match = _SPACE.match(self._text, self.index)
        self.index = match.end() if match else self.index

    def _string(self) -> str:
        token = self._match(_STRING)
        if "\\" not in token:
            return token[1:-1]
        string: str = loads(token)
        clean = _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", string)
        self.repaired |= clean != string
        return clean

    def _match(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self.index)
        if match is None:
            raise JsonTextError
        self.index = match.end()
        return match.group()


def decoded(raw: bytes) -> tuple[str, bool]:
    """The text of UTF-8 bytes, and whether a byte of it was none and became U+FFFD, as in Go."""
    text = raw.decode("utf-8", "surrogateescape")
    clean = _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)
    return clean, clean != text


def number(text: str) -> int | float:
    """A JSON number as an int where its text is one of at most 20 characters, else as the nearest float.

    >>> number("9007199254740993"), number("1e3"), number("1e400")
    (9007199254740993, 1000.0, inf)
    """
    if len(text) <= _INT_CHARACTERS and text.lstrip("-").isdigit():
        return int(text)
    return float(text)


def exact_int(text: str) -> int | None:
    """The signed 64-bit integer that a JSON number's text is exactly, None when it is not one.

    >>> exact_int("9007199254740993.0"), exact_int("12e-1"), exact_int("1e400")
    (9007199254740993, None, None)
    """
    match = _PARTS.fullmatch(text)
    if match is None:
        return None
    sign, whole, fraction, exponent_sign, exponent = match.groups(default="")
    digits = (whole + fraction).lstrip("0")
    significant = digits.rstrip("0")
    if not significant:
        return 0
    exponent = exponent[: _INT64_DIGITS + 1]  # more digits of it cannot make a difference
    power = int(exponent_sign + (exponent or "0")) - len(fraction) + len(digits) - len(significant)
    if power < 0 or len(significant) + power > _INT64_DIGITS:
        return None
    value = int(sign + significant) * 10**power
    return value if _MIN_INT64 <= value <= _MAX_INT64 else None
