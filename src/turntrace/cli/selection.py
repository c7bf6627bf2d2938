"""The turns that a command works on: read from files, and one of them chosen."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from turntrace.cli.output import UsageError, say
from turntrace.config import Settings
from turntrace.core.model import Issue, RawSpan
from turntrace.files.out import DEFAULT_FOLDER, newest
from turntrace.files.read import NO_FORMAT, read_paths
from turntrace.report.case import Case, examine

__all__ = ["Selection", "choose", "load", "newest_path", "nothing_in", "rule_of", "say_errors"]

_NOTHING_YET = (
    f"no trace in {DEFAULT_FOLDER} yet; name a file, record one with: turntrace run -- python agent.py,"
    " or see one with: turntrace demo"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Turns that were read, in the order of the files, and where from."""

    paths: tuple[str, ...]
    cases: tuple[Case, ...]

    @property
    def outermost(self) -> tuple[Case, ...]:
        """The turns that lie in no other: the figures of the others are part of theirs."""
        return tuple(case for case in self.cases if case.turn.parent_run_id is None) or self.cases

    def command(self, number: int) -> str:
        """The command that opens the outermost turn ``number``, counted from 1."""
        return f"turntrace report {shlex.join(self.paths)} --turn {number}"


def newest_path() -> str:
    """The newest trace of the current folder.

    Raises:
        UsageError: when there is none.
    """
    found = newest(Path(DEFAULT_FOLDER))
    if found is None:
        raise UsageError(_NOTHING_YET)
    return str(found)


def load(paths: Sequence[str], rule: str | None = None) -> Selection:
    """The turns of the files, or of the newest one; what could not be read is said on standard error.

    ``rule`` (NAME=VALUE) says which span is a turn; else TURNTRACE_TURN, else the span's dialect.

    Raises:
        UsageError: when the files hold no turn.
        TraceReadError: when a file cannot be read at all.
    """
    paths = tuple(paths) or (newest_path(),)
    text = rule or Settings.from_env().turn_rule
    result = read_paths(paths, rule=None if text is None else rule_of(text))
    if not result.turns:
        raise nothing_in(paths, result.issues)
    say_errors(result.issues)
    # What is wrong with one file belongs to its first turn; of several files nothing says whose it is.
    issues = [issue for _, issue in result.issues] if len(paths) == 1 else []
    first, *others = result.turns
    return Selection(paths=paths, cases=(examine(first, issues=issues), *map(examine, others)))


def rule_of(text: str) -> Callable[[RawSpan], bool]:
    """The rule NAME=VALUE: a span whose name, or else whose attribute of that name, has the value.

    Raises:
        UsageError: when there is no ``=`` or nothing before it.
    """
    name, equals, value = text.partition("=")
    if not equals or not name:
        message = f"{text} is no rule; write NAME=VALUE, for instance 'name=POST /chat'"
        raise UsageError(message)
    if name == "name":
        return lambda span: span.name == value
    return lambda span: name in span.attributes and str(span.attributes[name]) == value


def nothing_in(paths: Sequence[str], issues: Sequence[tuple[str, Issue]]) -> UsageError:
    """The error that says that the files hold no turn, and why as far as ``issues`` tell."""
    return UsageError(f"no turn in {shlex.join(paths)}{_first_reason(issues)}")


def _first_reason(issues: Sequence[tuple[str, Issue]]) -> str:
    for _, issue in issues:
        if issue.code == "no_header":
            return f": {NO_FORMAT}"
        where = "" if issue.line is None else f" in line {issue.line}"
        return f": {issue.code}{where}, {issue.message}"
    return ""


def say_errors(issues: Sequence[tuple[str, Issue]]) -> None:
    """Tell how many records of each file are not in what is shown or written."""
    counts: dict[str, int] = {}
    for path, issue in issues:
        if issue.severity == "error":
            counts[path] = counts.get(path, 0) + 1
    for path, count in counts.items():
        lines = "1 error" if count == 1 else f"{count} errors"
        say(f"{path}: {lines}, the rest is read; all of them: turntrace check {shlex.quote(path)}")


def choose(selection: Selection, wanted: str) -> Case:
    """The turn that ``wanted`` names: ``slowest``, a number from 1, or the start of an id.

    Raises:
        UsageError: when it names no turn or several.
    """
    outermost = selection.outermost
    if wanted == "slowest":
        return max(outermost, key=lambda case: case.attribution.wall_ns or 0)
    if wanted.isdecimal() and 1 <= int(wanted) <= len(outermost):
        return outermost[int(wanted) - 1]
    found = [case for case in outermost if _has_id(case, wanted)]
    found = found or [case for case in selection.cases if _has_id(case, wanted)]
    if len(found) == 1:
        return found[0]
    problem = "several turns match" if found else "no turn matches"
    numbers = "1" if len(outermost) == 1 else f"1 to {len(outermost)}"
    message = f"{problem} --turn {wanted}; use {numbers}, slowest, or a run id"
    raise UsageError(message)


def _has_id(case: Case, wanted: str) -> bool:
    turn = case.turn
    return turn.run_id.startswith(wanted) or wanted in {turn.span_id, turn.trace_id}
