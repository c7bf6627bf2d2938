"""What a command is, before it is started: where it lies, whether it is Python, what to call it."""

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from turntrace.otel.launch import LAUNCHERS, is_launcher, target_name

__all__ = ["Command", "interpreter_of", "name_of", "recognised"]

_PYTHON: Final = re.compile(r"(python|pypy)[\d.]*[a-z]?(\.exe)?", re.IGNORECASE)
_SHEBANG_BYTES: Final = 4096
_TRAMPOLINE: Final = re.compile(r"""'''exec' (?P<quote>["']?)(?P<python>.+?)(?P=quote) ["']\$0""")
_VERBS: Final = frozenset({"exec", "run"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command and what was found out about it.

    ``path`` is the executable file, None when there is none. ``python`` is the interpreter that runs it,
    None for another program. ``is_launcher``: it starts another command, as ``uv run`` does.
    """

    arguments: tuple[str, ...]
    path: str | None
    python: str | None
    is_launcher: bool

    @property
    def can_record(self) -> bool:
        """Whether a Python can be expected to come of it."""
        return self.python is not None or self.is_launcher


def recognised(arguments: Sequence[str], search_path: str | None = None) -> Command:
    """What ``arguments`` would run; ``search_path`` stands for PATH when it is given."""
    word = arguments[0]
    path = shutil.which(word, path=search_path)
    python = None if path is None else interpreter_of(Path(path))
    return Command(
        arguments=tuple(arguments),
        path=path,
        python=python,
        is_launcher=_leads_on(arguments, path, python),
    )


def interpreter_of(path: Path) -> str | None:
    """The Python that runs the file ``path``: itself, or what its ``#!`` line names; None for others.

    Where that line would be too long for the kernel, installers write a shell script that starts Python
    in its second line.
    """
    if _is_python(path.name) or _is_python(path.resolve().name):
        return str(path)
    first, second = _first_lines(path)
    if not first.startswith("#!"):
        return None
    trampoline = _TRAMPOLINE.match(second)
    words = [trampoline["python"]] if trampoline else first[2:].split()
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    return words[0] if words and _is_python(Path(words[0]).name) else None


def name_of(command: Command) -> str:
    """A short name for the agent: the module or script that Python runs, else the program.

    >>> name_of(recognised(["python3", "-m", "pkg.agent", "x"])), name_of(recognised(["uv", "run", "bot.py"]))
    ('agent', 'bot')
    """
    word = Path(command.arguments[0]).name
    if command.is_launcher:
        return _launched_name(command.arguments) or word
    if command.python is not None and command.python == command.path:
        return target_name(command.arguments) or "python"
    return word.removesuffix(".py")


def _launched_name(arguments: Sequence[str]) -> str | None:
    """The agent among the arguments of a launcher: what its Python runs, else the first word that can be it."""
    for at, word in enumerate(arguments):
        if _is_python(Path(word).name):
            return target_name(arguments[at:])
    names = (Path(word).name for word in arguments[1:] if not word.startswith("-") and "=" not in word)
    found = next((name for name in names if not name.isdecimal() and name not in LAUNCHERS | _VERBS), None)
    return None if found is None else found.removesuffix(".py")


def _leads_on(arguments: Sequence[str], path: str | None, python: str | None) -> bool:
    """Whether the command only starts another one.

    So do the small scripts with which version managers find the real program, and a ``python`` that is a
    script itself.
    """
    if path is None or python != path:
        return Path(arguments[0]).name in LAUNCHERS or (
            path is not None and Path(path).parent.name == "shims"
        )
    return is_launcher(arguments) or _first_lines(Path(path))[0].startswith("#!")


def _is_python(name: str) -> bool:
    return _PYTHON.fullmatch(name) is not None


def _first_lines(path: Path) -> tuple[str, str]:
    try:
        with path.open("rb") as file:
            start = file.read(_SHEBANG_BYTES)
    except OSError:
        return "", ""
    lines = [*start.decode("utf-8", errors="replace").split("\n", 2), "", ""]
    return lines[0].strip(), lines[1].strip()
