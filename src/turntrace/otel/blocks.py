"""Finished blocks on their way to the file: gathered while turns close, appended under one lock."""

import sys
import time
from pathlib import Path
from typing import Final

from turntrace.files.append import Rotation, append_aside, append_blocks
from turntrace.files.calls import Calls
from turntrace.files.lock import LOCK_TIMEOUT_S
from turntrace.otel.guard import Guard
from turntrace.otel.live_turn import TurnLog

__all__ = ["MAX_STDERR_BYTES", "STDERR", "Blocks"]

STDERR: Final = "-"
"""The name of a file that is the process's standard error."""

MAX_STDERR_BYTES: Final = 1_000_000
"""What is written to standard error in one block; a larger one is dropped and counted."""

_GATHER_BYTES: Final = 4 << 20


class Blocks:
    """Appends blocks and then drops the logs they were made of; a log whose block failed stays."""

    __slots__ = ("_bytes", "_calls", "_guard", "_refused_ns", "_rotation", "_waiting")

    def __init__(self, guard: Guard, rotation: Rotation, calls: Calls) -> None:
        self._guard = guard
        self._rotation = rotation
        self._calls = calls
        self._refused_ns: int | None = None
        self._waiting: list[tuple[TurnLog, bytes]] = []
        self._bytes = 0

    def add(self, log: TurnLog, block: bytes) -> None:
        """Take a block; a large heap of them is written at once."""
        self._waiting.append((log, block))
        self._bytes += len(block)
        if self._bytes > _GATHER_BYTES:
            self.finish()

    @property
    def is_waiting(self) -> bool:
        """Whether blocks wait for a file that another process is writing to."""
        return bool(self._waiting)

    def flush(self) -> None:
        """Write what waits; never raises and never waits for another process.

        What finds its file locked stays for a later call, for a second at most: journal lines, which
        pass through the same thread, must not wait for others.
        """
        refused_ns = self._refused_ns
        overdue = refused_ns is not None and time.monotonic_ns() - refused_ns > LOCK_TIMEOUT_S * 1e9
        self._flush(timeout_s=0.0, last=overdue)

    def finish(self) -> None:
        """Write what waits, waiting for the lock for a second."""
        self._flush(timeout_s=LOCK_TIMEOUT_S, last=True)

    def _flush(self, *, timeout_s: float, last: bool) -> None:
        waiting, self._waiting, self._bytes = self._waiting, [], 0
        by_file: dict[Path, list[tuple[TurnLog, bytes]]] = {}
        for log, block in waiting:
            if log.out is not None:
                by_file.setdefault(log.out, []).append((log, block))
        for out, found in by_file.items():
            try:
                is_written = self._write(out, [block for _, block in found], timeout_s, last=last)
            except OSError as error:
                self._guard.lost(str(out), error, len(found))
                for log, _ in found:
                    log.flush()
                    log.close()
            else:
                self._settle(found, is_written=is_written)
        self._refused_ns = (self._refused_ns or time.monotonic_ns()) if self._waiting else None

    def _settle(self, found: list[tuple[TurnLog, bytes]], *, is_written: bool) -> None:
        for log, block in found:
            if is_written:
                log.discard()
            else:
                self._waiting.append((log, block))
                self._bytes += len(block)

    def _write(self, out: Path, blocks: list[bytes], timeout_s: float, *, last: bool) -> bool:
        if str(out) == STDERR:
            self._write_to_stderr(blocks)
            return True
        calls = self._calls
        if append_blocks(out, blocks, self._rotation, timeout_s=timeout_s, calls=calls) is not None:
            return True
        if last:
            path = append_aside(out, blocks, calls)
            self._guard.say(f"another process keeps {out} locked; turns of this one go to {path}")
        return last

    def _write_to_stderr(self, blocks: list[bytes]) -> None:
        for block in blocks:
            if len(block) > MAX_STDERR_BYTES:
                self._guard.drop("stderr")
            else:
                sys.stderr.buffer.write(block)
                sys.stderr.flush()
