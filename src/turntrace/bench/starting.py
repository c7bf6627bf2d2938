"""``bench init``: a suite of one task that can be validated, proven and run as it is."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from turntrace.bench.publishing import patch_text
from turntrace.errors import ConfigurationError

__all__ = ["starter_files", "write_starter"]

_BROKEN: Final = '''"""Reading sizes as people write them."""

UNITS = {"k": 1000, "m": 1000 * 1000}


def size_of(text):
    """The number that ``text`` means: 12, 3k, 2m."""
    unit = text[-1:]
    if unit in UNITS:
        return int(text[:-1])
    return int(text)
'''
_RIGHT: Final = _BROKEN.replace("return int(text[:-1])\n", "return int(text[:-1]) * UNITS[unit]\n")
_WRONG: Final = _BROKEN.replace("return int(text[:-1])\n", "return int(text[:-1]) * 1000\n")
_ORACLE: Final = '''"""Judges the task. It runs apart from the agent's files, which never see it.

calls(seed) gives what to call, at least 20 calls; reference(name, *arguments) gives what each has to return.
structure(files) and answer(text) may be there too: they return what is wrong, an empty list if nothing is.
"""

import random


def calls(seed):
    """Numbers without and with units, drawn from the run's seed, and what is no number."""
    draw = random.Random(seed)
    texts = [f"{draw.randrange(100)}{unit}" for unit in ("", "k", "m") for _ in range(7)]
    return [("sizes:size_of", [text]) for text in [*texts, "", "x", "3x"]]


def reference(name, text):
    """What size_of returns."""
    for zeros, unit in ((3, "k"), (6, "m")):
        if text.endswith(unit):
            return int(text.removesuffix(unit)) * 10**zeros
    return int(text)
'''
_PROMPT: Final = (
    "`size_of` in sizes.py ignores the unit: `3k` has to give 3000. Mend it; nothing else changes.\n"
)


def starter_files() -> Mapping[str, str]:
    """The files of the suite by relative path."""
    before = {"sizes.py": _BROKEN}
    at = "tasks/fix-units"
    return {
        "suite.toml": 'id = "my-suite"\nname = "My suite"\ndescription = ""\n',
        f"{at}/task.toml": 'class = "fix"\ntimeout_s = 300\n',
        f"{at}/prompt.md": _PROMPT,
        f"{at}/fixture/sizes.py": _BROKEN,
        f"{at}/oracle.py": _ORACLE,
        f"{at}/solution.patch": patch_text(before, {"sizes.py": _RIGHT}),
        f"{at}/mutants/one-unit-for-all.patch": patch_text(before, {"sizes.py": _WRONG}),
    }


def write_starter(root: Path) -> None:
    """Write the suite to ``root``, which is made.

    Raises:
        ConfigurationError: when something is there already, or the folder cannot be written.
    """
    try:
        if root.exists() and (not root.is_dir() or any(root.iterdir())):
            raise ConfigurationError(f"{root} is there already; name a folder that is not, or an empty one")
        for relative, text in starter_files().items():
            path = root / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    except OSError as error:
        raise ConfigurationError(f"cannot write {root}: {error.strerror or error}") from error
