"""What of a Dockerfile can be had without a container: a working folder and files copied into it."""

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

__all__ = ["Image", "read_dockerfile"]

_IGNORED: Final = {"FROM", "CMD", "ENTRYPOINT", "LABEL", "MAINTAINER", "EXPOSE", "SHELL"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """The working folder ("" for none), files as (source, path in the working folder), what needs a container."""

    workdir: str
    copies: tuple[tuple[str, str], ...]
    needs: tuple[str, ...]


def read_dockerfile(text: str) -> Image:
    r"""What the Dockerfile would make.

    >>> read_dockerfile("FROM a\nWORKDIR /app\nCOPY data.csv in/\n").copies
    (('data.csv', 'in/data.csv'),)
    """
    workdir, needs = "", list[str]()
    copies: list[tuple[str, str]] = []
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in re.sub(r"\\\n", " ", "\n".join(lines)).splitlines():
        word, _, rest = line.strip().partition(" ")
        if word.upper() == "WORKDIR":
            workdir = str(PurePosixPath(workdir or "/") / rest.strip())
        elif word.upper() in {"COPY", "ADD"}:
            found = _copied(rest, workdir)
            needs += [f"{word} {rest}"] if found is None else []
            copies += found or []
        elif word and word.upper() not in _IGNORED:
            needs.append(f"{word} {' '.join(rest.split())}")
    return Image(workdir=workdir, copies=tuple(copies), needs=tuple(need[:80] for need in needs))


def _copied(rest: str, workdir: str) -> list[tuple[str, str]] | None:
    """Sources and goals of a COPY; None where it takes from elsewhere or leads elsewhere."""
    words = _words(rest)
    if len(words) < 2 or not workdir or any(word.startswith(("--", "http", "git@")) for word in words):  # noqa: PLR2004 - source and goal
        return None
    *sources, goal = words
    at = PurePosixPath(workdir) / goal
    if ".." in at.parts or not at.is_relative_to(workdir):
        return None
    below = at.relative_to(workdir)
    into_folder = goal.endswith(("/", ".")) or len(sources) > 1
    return [(source, (below / Path(source).name if into_folder else below).as_posix()) for source in sources]


def _words(rest: str) -> list[str]:
    try:
        found = json.loads(rest) if rest.lstrip().startswith("[") else shlex.split(rest)
    except ValueError:
        return []
    return [str(word) for word in found]
