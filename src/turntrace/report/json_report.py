"""The report as JSON, schema 1 (docs/report.schema.json): exact nanoseconds, null for unknown.

``started_at_ns`` is a decimal string, since a JSON number loses its last digits in many readers; every
other time is an integer offset from it, every ``*_ns`` a duration or such an offset.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final

import orjson

from turntrace.core.contract import PHASES
from turntrace.core.model import Usage
from turntrace.core.results import PhaseTotals, SpanTimes, Totals
from turntrace.core.usage import TOKEN_FIELDS, UsageTotals, total
from turntrace.report.case import Case
from turntrace.report.findings import find, observe
from turntrace.report.rounding import unit_for
from turntrace.report.rounds import rounds_of
from turntrace.report.strings import plain

__all__ = ["TOKEN_KEYS", "dumped", "json_report", "turn_json"]

TOKEN_KEYS: Final = (*TOKEN_FIELDS, "total_tokens")
_INT64: Final = 1 << 63


def json_report(cases: Iterable[Case]) -> Iterator[bytes]:
    """The document in pieces, a turn at a time."""
    yield b'{"schema":1,"turns":['
    separator = b""
    for case in cases:
        yield separator + dumped(turn_json(case))
        separator = b","
    yield b"]}\n"


def dumped(turn: Any) -> bytes:  # a JSON value
    """``turn`` as JSON, whatever its strings hold."""
    try:
        return orjson.dumps(turn)
    except TypeError:  # a lone surrogate or an integer beyond 64 bits among the strings and attributes
        return orjson.dumps(_writable(turn))


def _writable(value: Any) -> Any:  # a JSON value
    """``value`` without what JSON cannot hold; as deep as the schema, not as the input."""
    match value:
        case str():
            value = value.encode("utf-8", "replace").decode()
        case dict():
            value = {_writable(key): _writable(item) for key, item in value.items()}
        case list():
            value = [_writable(item) for item in value]
        case int() if not -_INT64 <= value < _INT64:
            value = str(value)
    return value


def turn_json(case: Case) -> dict[str, Any]:
    """One turn of the document."""
    turn = case.turn
    return {
        "run_id": turn.run_id,
        "parent_run_id": turn.parent_run_id,
        "session_id": turn.session_id,
        "trace_id": turn.trace_id,
        "agent": turn.agent,
        "model": turn.model,
        "source": turn.source,
        "turn_source": turn.turn_source,
        "labels": dict(turn.labels),
        "status": turn.status,
        **_sums(case),
        **_moments(case),
        "usage": _usage(case.usage),
        "counters": dict(turn.counters),
        "max_concurrency": dict(case.attribution.max_concurrency),
        "phases": [_phase(totals) for totals in case.attribution.phases],
        "by_round": _by_round(case),
        "marks": _marks(case),
        "spans": _spans(case),
        **_timeline(case),
        "findings": _findings(case),
        "warnings": _warnings(case),
    }


def _sums(case: Case) -> dict[str, Any]:
    turn, attribution = case.turn, case.attribution
    started_ns = _start_ns(case)
    return {
        "started_at_ns": None if started_ns is None else str(started_ns),
        "wall_ns": attribution.wall_ns,
        "active_ns": attribution.active_ns,
        "attributed_ns": attribution.attributed_ns,
        "unattributed_ns": attribution.unattributed_ns,
        "coverage": attribution.coverage,
        "busy_ns": attribution.busy_ns,
        "critical_path_ns": attribution.critical_path_ns,
        "parallelism": attribution.parallelism,
        "rounds": turn.rounds,
        "root": {
            "span_id": turn.span_id,
            "name": turn.root_name,
            "exclusive_ns": attribution.root_exclusive_ns,
            "critical_ns": attribution.root_critical_ns,
        },
    }


def _start_ns(case: Case) -> int | None:
    """The start of the turn, else of its first span."""
    if case.turn.started_ns is not None:
        return case.turn.started_ns
    return min((times.span.start_ns for times in case.attribution.spans), default=None)


def _moments(case: Case) -> dict[str, int | None]:
    turn = case.turn
    start_ns = _start_ns(case)
    moments = {
        "first_chunk_ns": turn.first_chunk_ns,
        "first_token_ns": turn.first_token_ns,
        "first_visible_ns": turn.first_visible_ns,
        "first_useful_ns": turn.first_useful_ns,
    }
    return {name: None if at is None or start_ns is None else at - start_ns for name, at in moments.items()}


def _usage(usage: UsageTotals) -> dict[str, Any]:
    return {
        **{key: getattr(usage, key) for key in TOKEN_KEYS},
        "complete": usage.complete,
        "reports": usage.reports,
        "missing": usage.missing,
        "known": {key: usage.known.get(key) for key in TOKEN_KEYS},
    }


def _figures(totals: Totals) -> dict[str, int | None]:
    return {
        "count": totals.count,
        "inclusive_ns": totals.inclusive_ns,
        "busy_ns": totals.busy_ns,
        "wall_share_ns": totals.wall_share_ns,
        "critical_ns": totals.critical_ns,
        "exclusive_p50_ns": totals.exclusive_p50_ns,
        "exclusive_p95_ns": totals.exclusive_p95_ns,
    }


def _phase(totals: PhaseTotals) -> dict[str, Any]:
    phase = PHASES.get(totals.name, PHASES["other"])
    return {
        "phase": totals.name,
        "kind": phase.kind,
        "controllable": phase.controllable,
        **_figures(totals),
        "by": [{"name": part.name, **_figures(part)} for part in totals.by],
    }


def _by_round(case: Case) -> list[dict[str, Any]]:
    return [
        {
            "round": found.number,
            "wall_ns": found.wall_ns,
            "model": found.model,
            "tools": list(found.tools),
            "input_tokens": found.usage.input_tokens,
            "cached_input_tokens": found.usage.cached_input_tokens,
            "output_tokens": found.usage.output_tokens,
        }
        for found in rounds_of(case)
    ]


def _spans(case: Case) -> list[dict[str, Any]]:
    usages: dict[str, list[Usage]] = defaultdict(list)
    for usage in case.turn.usage:
        usages[usage.span_id].append(usage)
    start_ns = _start_ns(case) or 0
    return [_span(times, start_ns, case, usages.get(times.span.span_id)) for times in case.attribution.spans]


def _span(times: SpanTimes, start_ns: int, case: Case, usages: list[Usage] | None) -> dict[str, Any]:
    span = times.span
    return {
        "span_id": span.span_id,
        "parent_id": times.parent_id,
        "parent_source": times.parent_source,
        "name": span.name,
        "phase": times.phase,
        "structure": times.phase is None,
        "round": case.rounds[span.span_id],
        "tool": span.tool,
        "model": span.model,
        "usage": _usage(total(usages, len(usages))) if usages else None,
        "attributes": dict(span.attributes),
        "start_ns": span.start_ns - start_ns,
        "end_ns": span.end_ns - start_ns,
        "exclusive_ns": times.exclusive_ns,
        "wall_share_ns": times.wall_share_ns,
        "critical_ns": times.critical_ns,
        "status": span.status,
        "outcome": span.outcome,
        "detached": times.detached,
    }


def _marks(case: Case) -> list[dict[str, Any]]:
    start_ns = _start_ns(case) or 0
    return [
        {"name": mark.name, "at_ns": mark.at_ns - start_ns, "span_id": mark.span_id}
        for mark in case.turn.marks
    ]


def _timeline(case: Case) -> dict[str, list[dict[str, Any]]]:
    start_ns = _start_ns(case) or 0
    attribution = case.attribution
    return {
        "critical_path": [
            {"span_id": part.span_id, "start_ns": part.start_ns - start_ns, "end_ns": part.end_ns - start_ns}
            for part in sorted(attribution.critical_path, key=lambda part: -part.start_ns)
        ],
        "gaps": [
            {
                "start_ns": gap.start_ns - start_ns,
                "end_ns": gap.end_ns - start_ns,
                "after": gap.after,
                "before": gap.before,
            }
            for gap in attribution.gaps
        ],
        "unattributed": [
            {"span_id": part.span_id, "name": part.name, "ns": part.ns} for part in attribution.unattributed
        ],
    }


def _findings(case: Case) -> list[dict[str, Any]]:
    unit = unit_for(case.attribution.wall_ns)
    return [
        {
            "code": finding.code,
            "message": f"{plain(finding.label)}: {plain(finding.message)}",
            "saves_ns": finding.saves_ns,
            "span_ids": list(finding.span_ids),
        }
        for finding in (*find(case, unit), *observe(case, unit))
    ]


def _warnings(case: Case) -> list[dict[str, Any]]:
    warnings = (*case.turn.warnings, *case.attribution.warnings)
    return [
        *({"code": warning.code, "message": warning.message, "line": None} for warning in warnings),
        *({"code": issue.code, "message": issue.message, "line": issue.line} for issue in case.issues),
    ]
