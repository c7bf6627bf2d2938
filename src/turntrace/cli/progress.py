"""Progress of long work: a bar on standard error, on a terminal only."""

import sys
from typing import Any, Self

from turntrace.report.strings import printable

__all__ = ["ProgressBar"]


class ProgressBar:
    """``with ProgressBar("reading", 40) as bar: bar.advance()``; silent where nobody watches."""

    def __init__(self, what: str, total: int, *, least: int = 2) -> None:
        self._what = what
        self._total = total
        self._is_shown = total >= least and sys.stderr.isatty()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if self._is_shown:
            from rich.console import Console
            from rich.progress import Progress

            self._bar = Progress(console=Console(stderr=True, force_terminal=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task(printable(self._what), total=self._total)
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Take the bar away, before something else is printed."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def advance(self, count: int = 1) -> None:
        """Another ``count`` of the total are done."""
        if self._bar is not None:
            self._bar.advance(self._task, count)

    def rename(self, what: str) -> None:
        """Say something else beside the bar."""
        if self._bar is not None:
            self._bar.update(self._task, description=printable(what))
