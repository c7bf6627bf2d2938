"""Collecting what is wrong with an input."""

from typing import Final

from turntrace.core.model import Issue

__all__ = ["MAX_ISSUES", "IssueLog"]

MAX_ISSUES: Final = 10_000
"""Issues kept for one block; the rest is counted, so that garbage cannot fill the memory."""


class IssueLog:
    """The issues of one block or journal, in the order they were found."""

    __slots__ = ("_issues", "errors", "omitted")

    def __init__(self) -> None:
        self._issues: list[Issue] = []
        self.errors = 0
        self.omitted = 0

    def add(self, code: str, message: str, line: int | None, offset: int | None) -> None:
        """Note an issue at a 1-based line that starts at ``offset`` bytes."""
        issue = Issue(code=code, message=message, line=line, offset=offset)
        self.errors += issue.severity == "error"
        if len(self._issues) < MAX_ISSUES:
            self._issues.append(issue)
        else:
            self.omitted += 1

    def sorted(self) -> tuple[Issue, ...]:
        """The issues by line; those of the whole input come first."""
        return tuple(sorted(self._issues, key=lambda issue: issue.line or 0))
