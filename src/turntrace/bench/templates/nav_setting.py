"""A setting that several modules name: where is it assigned, and who imports it from there?"""

import random
import re
from collections.abc import Callable
from typing import Any, Final

from turntrace.bench.variants import Attempt, Variant

__all__ = ["FACTS", "ORACLE", "TASK_CLASS", "answer", "variant"]

TASK_CLASS: Final = "nav"
FACTS: dict[str, Any] = {}
_SETTINGS: Final = ("RETRY_CEILING", "BATCH_WIDTH", "IDLE_SECONDS", "SHARD_COUNT")
_FOLDERS: Final = ("engine", "intake", "ledger", "relay")
_MODULES: Final = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "haven", "islet", "joule")


def variant(seed: int) -> Variant:
    """The task of ``seed``."""
    draw = random.Random(f"nav-setting {seed}")  # noqa: S311 - a fixture, no secret
    setting, folder = draw.choice(_SETTINGS), draw.choice(_FOLDERS)
    names = draw.sample(_MODULES, 8)
    home, importers = names[0], names[1 : draw.randrange(3, 6)]
    decoys = names[1 + len(importers) :]
    before, value = draw.randrange(4, 30), draw.randrange(100, 900)
    files = {f"{folder}/__init__.py": f'"""The {folder}."""\n'}
    files[f"{folder}/{home}.py"] = _home(setting, value, before)
    files |= {f"{folder}/{name}.py": _importer(folder, home, setting) for name in importers}
    files |= {f"{folder}/{name}.py": _decoy(draw, setting) for name in decoys}
    line = next(
        n for n, text in enumerate(_home(setting, value, before).split("\n"), 1) if text.startswith(setting)
    )
    right = {"file": f"{folder}/{home}.py", "line": line, "importers": len(importers)}
    return Variant(
        prompt=(
            f"In which file of this folder is the setting `{setting}` assigned at the top level of a module, on which "
            "line, and how many other files import it from there? Comments and texts do not count. End with three "
            "lines: `file:` with the path from here, `line:` with its number, `importers:` with how many."
        ),
        files=dict(sorted(files.items())),
        solution=Attempt(answer=_words(right)),
        wrong={
            "found-the-comment": Attempt(
                answer=_words({**right, "file": f"{folder}/{decoys[0]}.py", "line": 3})
            ),
            "counted-every-mention": Attempt(answer=_words({**right, "importers": len(names)})),
        },
        facts=right,
    )


def _words(found: dict[str, Any]) -> str:
    return "\n".join(f"{key}: {value}" for key, value in found.items()) + "\n"


def _home(setting: str, value: int, before: int) -> str:
    fill = "\n".join(f"STEP_{number} = {number * 7}" for number in range(before))
    return f'"""Settings of all."""\n\n# {setting} is assigned below\n{fill}\n{setting} = {value}\n'


def _importer(folder: str, home: str, setting: str) -> str:
    return f'''"""Uses a setting."""

from {folder}.{home} import {setting}


def allowed(count):
    """Whether so many are allowed."""
    return count <= {setting}
'''


def _decoy(draw: random.Random, setting: str) -> str:
    number = draw.randrange(10, 99)
    return f'''"""Names the setting and does not use it."""

# {setting} = {number} was here once

TEXT = "from settings import {setting}"


def local():
    """Has one of its own."""
    {setting} = {number}
    return {setting}
'''


def answer(text: str) -> list[str]:
    """What is wrong with the last three lines of the answer."""
    faults = []
    for key, right in FACTS.items():
        said = re.findall(
            rf"^[ \t*`>-]*{key}[`*]*[ \t]*:[ \t`*]*([^\s`*]+)", text, re.MULTILINE | re.IGNORECASE
        )
        if not said:
            faults.append(f"no line says {key}")
        elif said[-1].removeprefix("./").rstrip(".") != str(right) or len(set(said)) > 1:
            faults.append(f"{key} is another")
    return faults


ORACLE: Final[tuple[Callable[..., Any], ...]] = (answer,)
