"""One input for two readers: each gets its lines in their places, blank lines stand for the other's."""

from array import array
from collections.abc import Callable, Iterable, Iterator

__all__ = ["Divided"]


class Divided:
    """The lines of an input, of which ``is_other`` says whose they are; iterate over ``mine`` first."""

    __slots__ = ("_is_other", "_lengths", "_lines", "_others")

    def __init__(self, lines: Iterable[bytes], is_other: Callable[[bytes], bool]) -> None:
        self._lines = lines
        self._is_other = is_other
        self._lengths = array("Q")
        self._others: dict[int, bytes] = {}

    @property
    def is_mixed(self) -> bool:
        """Whether a line was another's so far."""
        return bool(self._others)

    def mine(self) -> Iterator[bytes]:
        """Each line, or a blank one of its length."""
        for number, line in enumerate(self._lines):
            self._lengths.append(len(line))
            if self._is_other(line):
                self._others[number] = line
                yield _blank(len(line))
            else:
                yield line

    def others(self) -> Iterator[bytes]:
        """The same the other way round; nothing when no line was another's."""
        for number, length in enumerate(self._lengths if self._others else ()):
            yield self._others.get(number) or _blank(length)


def _blank(length: int) -> bytes:
    return b" " * (length - 1) + b"\n"
