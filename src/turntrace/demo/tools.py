"""The demo agent's tools. They touch nothing outside their workspace, a dictionary of texts."""

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import turntrace as tt

__all__ = ["Workspace"]

_PARSER: Final = """\
def read_lines(text):
    lines = []
    while "\\n" in text:
        line, _, text = text.partition("\\n")
        lines.append(line)
    return lines
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """What the tools work on, and how fast: ``speed`` divides every pause."""

    speed: float = 1.0
    files: dict[str, str] = field(default_factory=lambda: {"reader.py": _PARSER})

    def pause(self, milliseconds: float) -> None:
        """Stand in for work that takes so long."""
        time.sleep(milliseconds / 1000 / self.speed)

    def run(self, name: str, arguments: Mapping[str, str]) -> str:
        """Run a tool and return what the model gets to read.

        Raises:
            KeyError: There is no such tool.
        """
        tools: dict[str, Callable[..., str]] = {
            "search": self._search,
            "fetch": self._fetch,
            "read_file": self._read_file,
            "python": self._python,
            "edit_file": self._edit_file,
        }
        return tools[name](**arguments)

    def check(self) -> str:
        """Check the agent's own work: does every file compile."""
        self.pause(45)
        for path, text in self.files.items():
            compile(text, path, "exec")
        return "passed"

    def _search(self, query: str) -> str:
        self.pause(320)
        return "\n".join(f"{path}: defines {query}" for path, text in self.files.items() if query in text)

    def _fetch(self, page: str) -> str:
        self.pause(150)
        return f"{page}: the lines of the text, without line breaks; a last line needs no line break."

    def _read_file(self, path: str) -> str:
        self.pause(90)
        return self.files[path]

    def _python(self, code: str) -> str:
        """Run code in another process, if the person at the keyboard allows it."""
        with tt.phase("permission_wait"):
            self.pause(430)  # they read it and press y
        self.pause(100)
        with tt.phase("process_wait"):
            return subprocess.run(  # noqa: S603 - the code is scripted
                [sys.executable, "-I", "-c", code],
                env=tt.child_env(),  # were the child traced, its spans would belong to this turn
                capture_output=True,
                text=True,
                check=True,
            ).stdout

    def _edit_file(self, path: str, text: str) -> str:
        self.pause(140)
        self.files[path] = text
        return f"wrote {path}"
