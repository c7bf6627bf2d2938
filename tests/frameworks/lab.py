"""What an agent that runs in a framework's own environment needs: where the model is, and a diary of its tools.

Only the standard library is used, so that it can be imported beside any version of anything.
"""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

__all__ = ["EVENING", "PROMPTS", "SILENT", "TRIP", "URL", "ToolBrokeError", "agent", "atool", "note", "tool"]

URL = os.environ["FRAMEWORKS_URL"]
"""The model server, without a path."""

TRIP = "Plan a trip by boat."
EVENING = "Describe the evening."
SILENT = "How are you?"
PROMPTS = (TRIP, EVENING, SILENT)

_DIARY = Path(os.environ["FRAMEWORKS_DIARY"])


class ToolBrokeError(Exception):
    """What the tool that fails says."""


def note(what: str, began_ns: int, *, failed: bool = False) -> None:
    """Write down that ``what`` happened."""
    noted = {"what": what, "start_ns": began_ns, "end_ns": time.time_ns(), "failed": failed}
    with _DIARY.open("a") as file:
        file.write(json.dumps(noted) + "\n")


@contextmanager
def agent(name: str) -> Iterator[None]:
    """Note that a sub-agent runs."""
    began = time.time_ns()
    try:
        yield
    finally:
        note(f"agent:{name}", began)


@contextmanager
def tool(name: str, seconds: float = 0.0, *, fails: bool = False) -> Iterator[None]:
    """Note that a tool runs; it takes ``seconds`` before its body and raises when it ``fails``."""
    began = time.time_ns()
    try:
        time.sleep(seconds)
        if fails:
            raise ToolBrokeError(f"{name} is closed")
        yield
    finally:
        note(f"tool:{name}", began, failed=fails)


@asynccontextmanager
async def atool(name: str, seconds: float = 0.0, *, fails: bool = False) -> AsyncIterator[None]:
    """The same for a tool that waits without blocking others."""
    began = time.time_ns()
    try:
        await asyncio.sleep(seconds)
        if fails:
            raise ToolBrokeError(f"{name} is closed")
        yield
    finally:
        note(f"tool:{name}", began, failed=fails)
