"""Roots that belong to one turn though nothing is above them: joined by session, process and time.

A coding agent may make a trace of each model call and each tool call, or lose the root of its turn when it
ends. What was started by one ``run`` is one agent's whatever it is made of.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from turntrace.core.agent_dialects import CODING_AGENTS
from turntrace.core.dialect_facts import FACTS
from turntrace.core.dialect_model import Role
from turntrace.core.model import TurnSource
from turntrace.core.readings import Readings
from turntrace.core.root_calls import process_of
from turntrace.core.turn_roots import Draft, Overlapping

__all__ = ["joined"]

Prompts = Mapping[tuple[str, str], Sequence[int]]
"""When prompts came, by dialect and session, in order."""

_ALL: Final = "run"

_Group = tuple[object, ...]


def joined(readings: Readings, drafts: Iterable[Draft], prompts: Prompts, *, whole_run: bool) -> list[Draft]:
    """``drafts`` by start, those of local roots joined.

    What lies within exactly one finished turn of its process is part of it. The rest is one turn for each
    prompt of a coding agent's session; with ``whole_run`` the rest of other agents is one turn too.
    """
    kept: list[Draft] = []
    parts: list[tuple[Draft, str]] = []
    for draft in drafts:
        dialect = _dialect(readings, draft)
        is_part = draft.source == "local_root" and (whole_run or dialect in CODING_AGENTS)
        if is_part:
            parts.append((draft, dialect))
        else:
            kept.append(draft)
    if not parts:
        return kept
    left = _taken_in(readings, kept, parts, whole_run=whole_run)
    groups: defaultdict[_Group, list[Draft]] = defaultdict(list)
    begun: dict[_Group, int | None] = {}
    sessions = _sessions(readings, left)
    for draft, dialect in left:
        process = process_of(readings[draft.rows[0]].raw.resource)
        session = _session(readings, draft) or sessions.get((dialect, process), "")
        times = prompts.get((dialect, session), ())
        number = max(1, bisect_right(times, draft.started_ns)) if times else 0
        group = (_ALL, number) if whole_run else (dialect, process, session, number)
        groups[group].append(draft)
        begun[group] = times[number - 1] if number else None
    source: TurnSource = "run" if whole_run else "dialect"
    kept += [_joined(readings, group, begun[key], source) for key, group in groups.items()]
    return sorted(kept, key=lambda draft: draft.started_ns)


def _dialect(readings: Readings, draft: Draft) -> str:
    """The dialect of the first phase."""
    found = (readings[row].verdict for row in draft.rows)
    return next((verdict.dialect for verdict in found if verdict.role is Role.PHASE), "")


def _session(readings: Readings, draft: Draft) -> str:
    return next((session for row in draft.rows if (session := readings[row].facts.session_id)), "")


def _sessions(readings: Readings, parts: Iterable[tuple[Draft, str]]) -> dict[tuple[str, object], str]:
    """The one session of each process that has but one: spans that name none are its own."""
    found: defaultdict[tuple[str, object], set[str]] = defaultdict(set)
    for draft, dialect in parts:
        session = _session(readings, draft)
        if session:
            found[dialect, process_of(readings[draft.rows[0]].raw.resource)].add(session)
    return {key: next(iter(sessions)) for key, sessions in found.items() if len(sessions) == 1}


def _taken_in(
    readings: Readings, kept: Iterable[Draft], parts: Iterable[tuple[Draft, str]], *, whole_run: bool
) -> list[tuple[Draft, str]]:
    """Put parts into the turns that contain them; gives those that are left."""

    def home(draft: Draft) -> object:
        first = draft.rows[0] if draft.root is None else draft.root
        return _ALL if whole_run else process_of(readings[first].raw.resource)

    by_home: defaultdict[object, list[Draft]] = defaultdict(list)
    for draft in kept:
        if draft.completed_ns is not None:
            by_home[home(draft)].append(draft)
    around = {key: Overlapping(group) for key, group in by_home.items()}
    left = []
    for draft, dialect in parts:
        turns = around.get(home(draft))
        turn = turns.around(draft.started_ns, draft.completed_ns) if turns and draft.completed_ns else None
        if turn is None:
            left.append((draft, dialect))
        else:
            rows = _rows(draft)
            turn.rows += rows
            turn.inferred.update(rows)
    return left


def _rows(draft: Draft) -> list[int]:
    return draft.rows if draft.root is None else [draft.root, *draft.rows]


def _joined(readings: Readings, parts: Sequence[Draft], begun_ns: int | None, source: TurnSource) -> Draft:
    """One turn of ``parts``, which began with the prompt at ``begun_ns``."""
    rows = sorted(row for part in parts for row in _rows(part))
    ends = [part.completed_ns for part in parts]
    first = parts[0]
    started_ns = min(part.started_ns for part in parts)
    return Draft(
        root=None,
        rows=rows,
        source=source,
        started_ns=started_ns if begun_ns is None else min(begun_ns, started_ns),
        completed_ns=None if None in ends else max(end for end in ends if end is not None),
        is_interrupted=any(part.is_interrupted for part in parts),
        absent_ids=frozenset().union(*(part.absent_ids for part in parts)),
        agent=_agent(readings, first),
    )


def _agent(readings: Readings, draft: Draft) -> str | None:
    called = next((readings[row].facts.agent for row in draft.rows if readings[row].facts.agent), None)
    return called or FACTS[_dialect(readings, draft) or "otel"].called
