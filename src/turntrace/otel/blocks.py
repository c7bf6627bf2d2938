"""Finished blocks on their way to the file: gathered while turns close, appended under one lock."""

import sys
from pathlib import Path
from typing import Final

from turntrace.files.append import Rotation, append_blocks
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

    __slots__ = ("_bytes", "_guard", "_rotation", "_waiting")

    def __init__(self, guard: Guard, rotation: Rotation) -> None:
        self._guard = guard
        self._rotation = rotation
        self._waiting: list[tuple[TurnLog, bytes]] = []
        self._bytes = 0

    def add(self, log: TurnLog, block: bytes) -> None:
        """Take a block; a large heap of them is written at once."""
        self._waiting.append((log, block))
        self._bytes += len(block)
        if self._bytes > _GATHER_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what waits; never raises."""
        waiting, self._waiting, self._bytes = self._waiting, [], 0
        by_file: dict[Path, list[tuple[TurnLog, bytes]]] = {}
        for log, block in waiting:
            if log.out is not None:
                by_file.setdefault(log.out, []).append((log, block))
        for out, found in by_file.items():
            try:
                self._write(out, [block for _, block in found])
            except OSError as error:
                self._guard.lost(str(out), error, len(found))
                for log, _ in found:
                    log.flush()
            else:
                for log, _ in found:
                    log.discard()

    def _write(self, out: Path, blocks: list[bytes]) -> None:
        if str(out) != STDERR:
            append_blocks(out, blocks, self._rotation)
            return
        for block in blocks:
            if len(block) > MAX_STDERR_BYTES:
                self._guard.drop("stderr")
            else:
                sys.stderr.buffer.write(block)
                sys.stderr.flush()
