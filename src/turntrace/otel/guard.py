"""The one place where an error of ours is caught in the user's process: logged once, then counted."""

import logging
import sys
from collections import Counter
from typing import Final

__all__ = ["Guard"]

_log: Final = logging.getLogger("turntrace")


class Guard:
    """Counts what was dropped by reason, and says each cause of an error of ours once."""

    __slots__ = ("_lines", "_said", "dropped")

    def __init__(self) -> None:
        self.dropped: Counter[str] = Counter()
        self._said: set[tuple[str, type[BaseException]]] = set()
        self._lines: set[str] = set()

    def caught(self, where: str, error: BaseException) -> None:
        """Note an error of ours; the first of its kind at its place is logged, without the message.

        The message of an exception may quote the user's data, so only its class is told.
        """
        self.dropped["error"] += 1
        cause = (where, type(error))
        if cause not in self._said:
            self._said.add(cause)
            _log.warning("turntrace lost a record in %s: %s", where, type(error).__name__)

    def drop(self, reason: str, amount: int = 1) -> None:
        """Count something that was left out on purpose."""
        self.dropped[reason] += amount

    def say(self, line: str) -> None:
        """Write a line on stderr, once."""
        if line not in self._lines:
            self._lines.add(line)
            sys.stderr.write(f"turntrace: {line}\n")

    def lost(self, where: str, error: OSError, amount: int) -> None:
        """Note that a file took no more: the first time is a line on stderr, the rest is counted."""
        self.dropped["write_failed"] += amount
        cause = (where, type(error))
        if cause not in self._said:
            self._said.add(cause)
            sys.stderr.write(f"turntrace: cannot write {where}: {error.strerror}; the agent goes on\n")
