"""zero's result document, schemaVersion 5, made from what runs left: its arithmetic, false zeros included."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from turntrace.bench.tasks import Tier
from turntrace.bench.zero_statistics import round_2, zero_summary

__all__ = ["ZeroCase", "ZeroHead", "ZeroOutcome", "ZeroTask", "zero_document"]

SCHEMA_VERSION: Final = 5
_TOP: Final = 3
_COUNTERS: Final = {
    "inputTokens": "input_tokens",
    "cachedInputTokens": "cached_input_tokens",
    "outputTokens": "output_tokens",
    "modelRequests": "model_requests",
    "toolCalls": "tool_calls",
    "retries": "retry_count",
    "reconnects": "reconnect_count",
    "compactions": "compaction_count",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroHead:
    """What stands above the figures. ``date`` is RFC 3339 in seconds, UTC."""

    suite: str
    model: str
    date: str
    iterations: int
    mode: str = ""
    exec_profile: str = ""
    self_correct: bool = False
    version: str = ""
    commit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroTask:
    """What zero knows of a task. A blank class is ``default``."""

    id: str
    task_class: str
    tier: Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroOutcome:
    """One iteration. ``spans`` are (name, exclusive ms) in the order of the trace; absent counters add 0."""

    passed: bool = False
    wall_ms: float = 0.0
    trace_wall_ms: float = 0.0
    spans: tuple[tuple[str, float], ...] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    error: str = ""
    trace_issue: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroCase:
    """A task with its iterations in order. It passed if all did; it is errored if all were."""

    task: ZeroTask
    outcomes: tuple[ZeroOutcome, ...]

    @property
    def class_name(self) -> str:
        """The class as zero prints it."""
        return self.task.task_class.strip() or "default"

    @property
    def passed(self) -> bool:
        """Whether every iteration passed."""
        return all(outcome.passed for outcome in self.outcomes)

    @property
    def errored(self) -> bool:
        """Whether no iteration came to an end that counts."""
        return all(outcome.error for outcome in self.outcomes)


def zero_document(head: ZeroHead, cases: Sequence[ZeroCase]) -> dict[str, Any]:
    """The document as a mapping whose order is the order of zero's keys."""
    spans = [span for case in cases for outcome in case.outcomes for span in outcome.spans]
    warnings = [warning for case in cases for warning in _warnings(case)]
    return {
        **_head(head),
        **_tiers(cases),
        "iterations": head.iterations,
        **_spans(spans),
        "perClass": _classes(cases),
        "totals": {
            name: sum(outcome.counters.get(counter, 0) for case in cases for outcome in case.outcomes)
            for name, counter in _COUNTERS.items()
        },
        **({"warnings": warnings} if warnings else {}),
    }


def _head(head: ZeroHead) -> dict[str, Any]:
    optional = {
        "mode": head.mode.strip(),
        "execProfile": head.exec_profile.strip().lower(),
    }
    versions = {"version": head.version, "commit": head.commit}
    return {
        "schemaVersion": SCHEMA_VERSION,
        "suite": head.suite.strip(),
        "model": head.model.strip(),
        **{name: value for name, value in optional.items() if value},
        "selfCorrect": head.self_correct,
        **{name: value for name, value in versions.items() if value},
        "date": head.date,
    }


def _tiers(cases: Sequence[ZeroCase]) -> dict[str, Any]:
    by_tier = {tier: [case for case in cases if case.task.tier is tier] for tier in Tier}
    passed = {tier: sum(case.passed for case in found) for tier, found in by_tier.items()}
    classes = {
        f"{name}Classes": sorted({case.class_name for case in by_tier[tier]})
        for name, tier in (
            ("correctness", Tier.CORRECTNESS),
            ("buildOnly", Tier.BUILD),
            ("latencyOnly", Tier.LATENCY),
        )
    }
    verified, built = by_tier[Tier.CORRECTNESS], by_tier[Tier.BUILD]
    return {
        "tasksAttempted": len(cases),
        "tasksErrored": sum(case.errored for case in cases),
        "tasksVerified": len(verified),
        "tasksPassed": passed[Tier.CORRECTNESS],
        "latencyOnlyTasks": len(by_tier[Tier.LATENCY]),
        "buildCheckedTasks": len(built),
        "buildPassedTasks": passed[Tier.BUILD],
        "correctnessPassRate": _rate(passed[Tier.CORRECTNESS], len(verified)),
        "buildPassRate": _rate(passed[Tier.BUILD], len(built)),
        **{name: found for name, found in classes.items() if found},
    }


def _rate(passed: int, count: int) -> float:
    return round_2(passed / count) if count else 0.0


def _spans(spans: Iterable[tuple[str, float]]) -> dict[str, Any]:
    """Statistics by span name, and the three names with the largest sums."""
    samples: dict[str, list[float]] = defaultdict(list)
    for name, exclusive_ms in spans:
        samples[name].append(exclusive_ms)
    totals = {name: round_2(_sum(found)) for name, found in samples.items()}
    per_span = {}
    for name, found in sorted(samples.items()):
        summary = zero_summary(found)
        per_span[name] = {
            "count": len(found),
            "totalMs": totals[name],
            "medianMs": summary.median,
            "p95Ms": summary.p95,
            "maxMs": summary.max,
        }
    whole = _sum(totals.values())
    ranked = sorted(totals.items(), key=lambda item: (-item[1], item[0]))[:_TOP]
    return {
        "perSpan": per_span,
        "topLatency": [
            {"span": name, "totalMs": total, "share": round_2(total / whole) if whole else 0.0}
            for name, total in ranked
        ],
    }


def _sum(values: Iterable[float]) -> float:
    """Added one after the other, as zero does; Python 3.12's sum compensates and would differ."""
    total = 0.0
    for value in values:
        total += value
    return total


def _classes(cases: Sequence[ZeroCase]) -> dict[str, Any]:
    by_class: dict[str, list[ZeroCase]] = defaultdict(list)
    for case in cases:
        by_class[case.class_name].append(case)
    return {name: _class(found) for name, found in sorted(by_class.items())}


def _class(cases: Sequence[ZeroCase]) -> dict[str, Any]:
    outcomes = [outcome for case in cases for outcome in case.outcomes if not outcome.error]
    walls = [outcome.wall_ms if outcome.wall_ms > 0 else outcome.trace_wall_ms for outcome in outcomes]
    summary = asdict(zero_summary([wall for wall in walls if wall > 0]))
    totals: dict[str, float] = {}
    for outcome in outcomes:
        for name, exclusive_ms in outcome.spans:
            totals[name] = totals.get(name, 0.0) + exclusive_ms
    oracles = [case for case in cases if case.task.tier is not Tier.LATENCY]
    return {
        "tasks": len(cases),
        "verified": len(oracles),
        "passed": sum(case.passed for case in oracles),
        "latencyOnly": len(cases) - len(oracles),
        "wallMs": summary,
        "spanTotals": dict(sorted(totals.items())) or None,
    }


def _warnings(case: ZeroCase) -> Iterable[dict[str, Any]]:
    for outcome in case.outcomes:
        for metric, detail in (("run", outcome.error), ("trace", outcome.trace_issue)):
            if detail:
                yield {
                    "metric": metric,
                    "statistic": "",
                    "observed": 0,
                    "threshold": 0,
                    "unit": "",
                    "message": f"task {case.task.id}: {detail}",
                }
