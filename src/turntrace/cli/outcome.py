"""What is known when a recorded command has ended: its turns, whether they are whole, and if not, why."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from turntrace.cli.preparation import shown
from turntrace.cli.selection import Selection
from turntrace.config import Settings
from turntrace.core.model import Turn
from turntrace.errors import TraceReadError
from turntrace.files.append import Rotation
from turntrace.files.read import read_paths
from turntrace.files.recovery import finish_dead
from turntrace.otel.launch import Note, Plan, read_notes
from turntrace.report.case import examine

__all__ = ["Outcome", "outcome_of"]

_UNTRACED: Final = "the command ran untraced"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The turns of a run, None without one. ``remarks`` are lines for people, ``is_whole`` is for --strict."""

    selection: Selection | None
    remarks: tuple[str, ...]
    is_whole: bool


def outcome_of(plan: Plan, settings: Settings, since_ns: int, status: int = 0) -> Outcome:
    """Finish what a dead agent left beside the trace, and read the turns that started at ``since_ns`` or later.

    ``status`` is what the command ended with.
    """
    out = Path(plan.trace)
    notes = read_notes(Path(plan.notes)) if plan.notes else ()
    remarks = _said(notes)
    turns: list[Turn] = []
    is_whole = True
    try:
        rotation = Rotation(settings.trace_max_bytes, settings.trace_keep)
        finish_dead(out, rotation, ended=plan.trace_id)
        found = read_paths([plan.trace])
        turns = [turn for turn in found.turns if (turn.started_ns or since_ns) >= since_ns]
        is_whole = not any(issue.severity == "error" for _, issue in found.issues)
    except (OSError, TraceReadError) as error:
        remarks.append(f"the trace cannot be finished: {error}")
    if not turns:
        return Outcome(
            selection=None,
            remarks=(*remarks, _why_nothing(notes, status, was_instrumented=plan.instrument)),
            is_whole=False,
        )
    return Outcome(
        selection=Selection(paths=(shown(plan.trace),), cases=tuple(examine(turn) for turn in turns)),
        remarks=tuple(remarks),
        is_whole=is_whole and all(_is_whole(turn) for turn in turns),
    )


def _is_whole(turn: Turn) -> bool:
    return turn.status != "interrupted" and not turn.dropped


def _said(notes: Sequence[Note]) -> list[str]:
    """What OpenTelemetry's loader had to say, unless the one reason why nothing started covers it."""
    if any(note.outcome == "failed" for note in notes):
        return []
    return [note.message for note in notes if note.outcome == "said"]


def _why_nothing(notes: Sequence[Note], status: int, *, was_instrumented: bool) -> str:
    """Why a command that ran left no turn, as far as the Pythons that it started told."""
    last = {note.outcome: note for note in notes}
    if not was_instrumented:
        why = "no turn was recorded: nothing that the command started sent spans or wrote to TURNTRACE_TRACE"
    elif "started" in last and status:
        why = f"no turn was recorded: the command ended with status {status} before a model call, tool or agent was seen"
    elif "started" in last:
        why = "no turn was recorded: no model call, tool or agent was seen; turntrace doctor lists what is instrumented"
    elif "failed" in last:
        why = f"recording did not start ({last['failed'].message}); {_UNTRACED}"
    elif "lacking" in last:
        why = f"this Python ({last['lacking'].python}) has no turntrace installed; {_UNTRACED}"
    else:
        why = f"no Python that reads PYTHONPATH was started (-I, -E and -S do not); {_UNTRACED}"
    return why
