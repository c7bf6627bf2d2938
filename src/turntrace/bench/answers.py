"""The last words of an agent, from wherever its preset says that they stand."""

import os
from pathlib import Path
from typing import Any

import orjson

from turntrace.bench.agents import Agent

__all__ = ["answer_of"]

_MAX_BYTES = 4 << 20


def answer_of(agent: Agent, stdout: bytes, file: Path) -> str:
    """Empty where there are none: a line that cannot be read is nobody's answer."""
    if agent.answer == "stdout":
        return stdout.decode(errors="replace")
    if agent.answer == "file":
        return _content(file)
    key = {"json:result": "result", "json:final": "text"}[agent.answer]
    found = ""
    for record in map(_record, stdout.splitlines()):
        if record.get("type") in {"result", "final"} and isinstance(record.get(key), str):
            found = record[key]
    return found


def _content(file: Path) -> str:
    """The agent may have put a link there: it is not followed."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    with os.fdopen(handle, "rb") as opened:
        return opened.read(_MAX_BYTES).decode(errors="replace")


def _record(line: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
