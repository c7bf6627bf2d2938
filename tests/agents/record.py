"""Runs real coding agents and writes what they sent, with the truth beside it, to ``traces``.

``python tests/agents/record.py`` records all, with names those; ``codex-approval`` and the like are turns on a
terminal in which a person approves of the tool. The agents must be installed (``make agents``), for those tmux too.
"""

import gzip
import json
import os
import re
import socket
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from agents import setups
from agents.approval_scene import APPROVALS, play_approved
from agents.scene import Played, play

TRACES = Path(__file__).parent / "traces"
APPROVED = "-approval"
LONGEST = 300
"""Prompts and lists of tools are long and of no use here."""
MAX_PLAIN_BYTES = 100_000


def main(names: list[str]) -> int:
    """Record each agent named, or all."""
    for name in names or (*setups.SETUPS, *(f"{agent}{APPROVED}" for agent in APPROVALS)):
        record(name)
    return 0


def record(name: str) -> None:
    """Play the turn of one agent and write it down."""
    agent = name.removesuffix(APPROVED)
    played = play(name) if agent == name else play_approved(agent)
    if played.status:
        raise RuntimeError(f"{name} failed:\n{played.output[-3000:]}")
    lines = "".join(scrubbed(line, played) + "\n" for line in played.lines.splitlines())
    for text in (*played.places, str(Path.home()) + "/", socket.gethostname()):
        if re.search(rf"(?<![\w-]){re.escape(text)}(?![\w-])", lines):
            raise RuntimeError(f"the trace tells of the machine: {text}")
    TRACES.mkdir(exist_ok=True)
    for path in (TRACES / f"{name}.otlp.jsonl", TRACES / f"{name}.otlp.jsonl.gz"):
        path.unlink(missing_ok=True)
    data = lines.encode()
    if len(data) > MAX_PLAIN_BYTES:
        (TRACES / f"{name}.otlp.jsonl.gz").write_bytes(gzip.compress(data, 9, mtime=0))
    else:
        (TRACES / f"{name}.otlp.jsonl").write_bytes(data)
    truth = {**played.truth, "posted": how(played)}
    (TRACES / f"{name}.truth.json").write_text(json.dumps(truth, indent=1) + "\n")
    print(f"{name}: {len(lines.splitlines())} requests, {len(data)} bytes")


def how(played: Played) -> list[dict[str, Any]]:
    """How the agent posts, once for each kind of request."""
    kinds = {
        (one["path"], one["kind"], one["chunked"], one["headers"].get("user-agent", "")) for one in played.how
    }
    return [dict(zip(("path", "kind", "chunked", "user_agent"), kind, strict=True)) for kind in sorted(kinds)]


def scrubbed(line: str, played: Played) -> str:
    """A line without this machine's folders and name, and with long texts cut."""
    value = json.dumps(_cut(json.loads(line)), separators=(",", ":"))
    folder, cache = played.places
    for place, stands_for in (
        (folder, "/agent"),
        (cache, "/agents"),
        (str(Path.home()) + "/", "/agent/"),
        (os.path.realpath(sys.executable), "/usr/bin/python3"),
    ):
        value = value.replace(place, stands_for)
    return re.sub(rf'(?<=:)"{re.escape(socket.gethostname())}"', '"host"', value)


def _cut(value: Any) -> Any:
    if isinstance(value, list):
        return [_cut(one) for one in value]
    if isinstance(value, dict):
        return {key: _cut(one) for key, one in value.items()}
    return value[:LONGEST] if isinstance(value, str) else value


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
