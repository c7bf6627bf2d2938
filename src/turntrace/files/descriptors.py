"""Descriptors that a forked child does not keep, whatever moment the fork came at.

A fork copies descriptors, and the copy of one that is locked holds the lock as long as the child lives.
A number that its owner has closed in the meantime may be another file's: so a descriptor is opened and
noted, or closed and forgotten, in one piece that no fork comes between.
"""

import os
import threading
from collections.abc import Callable
from typing import Final

__all__ = ["give_back", "take"]

_taken: Final[set[int]] = set()
_changing: Final = threading.RLock()


def take(opened: Callable[[], int]) -> int:
    """The descriptor that ``opened`` returns; a forked child has it closed before any of its code runs.

    Raises:
        OSError: what ``opened`` raises.
    """
    with _changing:
        fd = opened()
        _taken.add(fd)
    return fd


def give_back(fd: int, close: Callable[[int], None] = os.close) -> None:
    """Close a descriptor of ``take``; nothing happens to one that a fork has closed.

    Raises:
        OSError: what ``close`` raises; the descriptor is gone all the same.
    """
    with _changing:
        if fd in _taken:
            _taken.discard(fd)
            close(fd)


def _close_in_child() -> None:
    for fd in _taken:
        try:
            os.close(fd)
        except OSError:  # the program closed what it did not open, as daemons do before they fork
            continue
    _taken.clear()
    _changing.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_changing.acquire, after_in_parent=_changing.release, after_in_child=_close_in_child
    )
