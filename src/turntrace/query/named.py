"""The questions that are asked again and again, each with its parameters."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["NAMED", "NamedQuery"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedQuery:
    """SQL over the views. ``parameters`` are its ``$names`` with their defaults, which tell their types."""

    name: str
    meaning: str
    sql: str
    parameters: Mapping[str, int | float]


_RECENT: Final = """
recent AS (
    SELECT * FROM turns
    WHERE started_ns IS NULL OR $days <= 0
        OR started_ns > (SELECT max(started_ns) FROM turns) - CAST($days * 86400000000000 AS BIGINT)
)"""
"""The turns of so many days up to the newest one; those without a start are never left out."""

_QUERIES: Final = (
    NamedQuery(
        name="top-phases",
        meaning="which phases took the wall time of the last days; unattributed time is a row, the rows add up",
        sql=f"""
WITH {_RECENT}
SELECT p.phase, count(*) AS turns, CAST(sum(p.calls) AS BIGINT) AS calls,
    round(sum(p.wall_share_ns) / 1e9, 3) AS wall_s,
    round(100 * sum(p.wall_share_ns) / nullif(sum(sum(p.wall_share_ns)) OVER (), 0), 1) AS percent,
    round(quantile_disc(p.wall_share_ns, 0.5) / 1e9, 3) AS median_s,
    round(quantile_disc(p.wall_share_ns, 0.95) / 1e9, 3) AS p95_s,
    round(sum(p.critical_ns) / 1e9, 3) AS critical_s
FROM phases p JOIN recent USING (turn) WHERE p.wall_share_ns IS NOT NULL
GROUP BY p.phase ORDER BY sum(p.wall_share_ns) DESC, p.phase LIMIT $top""",
        parameters={"days": 7.0, "top": 30},
    ),
    NamedQuery(
        name="slowest-turns",
        meaning="the slowest turns, and the phase that took the most of each",
        sql=f"""
WITH {_RECENT}, most AS (
    SELECT turn, arg_max(phase, wall_share_ns) AS phase, max(wall_share_ns) AS ns FROM phases GROUP BY turn
)
SELECT run_id, agent, status, started_at, round(wall_ns / 1e9, 3) AS wall_s, round(active_ns / 1e9, 3) AS active_s,
    rounds, most.phase AS most_in, round(100 * most.ns / nullif(wall_ns, 0), 1) AS percent, file
FROM recent LEFT JOIN most USING (turn) WHERE wall_ns IS NOT NULL ORDER BY wall_ns DESC, run_id LIMIT $top""",
        parameters={"days": 0.0, "top": 10},
    ),
    NamedQuery(
        name="tokens-by-model",
        meaning="tokens of each model; a sum is of the calls that told it, their number stands beside it",
        sql=f"""
WITH {_RECENT}
SELECT coalesce(u.model, '(not told)') AS model, count(*) AS calls, count(u.input_tokens) AS calls_that_told,
    CAST(sum(u.input_tokens) AS BIGINT) AS input_tokens,
    CAST(sum(u.cached_input_tokens) AS BIGINT) AS cached_input_tokens,
    round(100 * sum(u.cached_input_tokens)
        / nullif(sum(CASE WHEN u.cached_input_tokens IS NOT NULL THEN u.input_tokens END), 0), 1) AS cached_percent,
    CAST(sum(u.output_tokens) AS BIGINT) AS output_tokens,
    CAST(sum(u.reasoning_tokens) AS BIGINT) AS reasoning_tokens
FROM usage u JOIN recent USING (turn)
GROUP BY u.model ORDER BY sum(u.input_tokens) DESC NULLS LAST, model""",
        parameters={"days": 0.0},
    ),
    NamedQuery(
        name="coverage-outliers",
        meaning="turns of which less is accounted for than $below, and far less than of its agent's others",
        sql=f"""
WITH {_RECENT}, typical AS (
    SELECT agent, median(coverage) AS median, count(*) AS turns FROM recent WHERE coverage IS NOT NULL GROUP BY agent
)
SELECT r.run_id, r.agent, round(r.coverage, 3) AS coverage, round(t.median, 3) AS agents_median, t.turns AS agents_turns,
    round(r.unattributed_ns / 1e9, 3) AS unattributed_s, round(r.wall_ns / 1e9, 3) AS wall_s, r.file
FROM recent r JOIN typical t ON r.agent IS NOT DISTINCT FROM t.agent
WHERE r.coverage < $below AND (t.turns < 2 OR r.coverage <= t.median - $apart)
ORDER BY r.coverage, r.run_id LIMIT $top""",
        parameters={"days": 0.0, "below": 0.9, "apart": 0.05, "top": 20},
    ),
    NamedQuery(
        name="retry-storms",
        meaning="turns that waited $least times or more to send a request again, what for, and how long",
        sql=f"""
WITH {_RECENT}, waits AS (
    SELECT turn, count(*) AS waits, sum(wall_share_ns) AS wall_ns, sum(critical_ns) AS critical_ns,
        mode(json_extract_string(attributes, '$."turntrace.reason"')) AS reason
    FROM spans WHERE phase IN ('retry_wait', 'reconnect_wait') GROUP BY turn
)
SELECT r.run_id, r.agent, w.waits, w.reason AS most_often, round(w.wall_ns / 1e9, 3) AS waited_s,
    round(w.critical_ns / 1e9, 3) AS critical_s, round(100 * w.wall_ns / nullif(r.wall_ns, 0), 1) AS percent, r.file
FROM waits w JOIN recent r USING (turn) WHERE w.waits >= $least
ORDER BY w.wall_ns DESC NULLS LAST, r.run_id LIMIT $top""",
        parameters={"days": 0.0, "least": 3, "top": 20},
    ),
    NamedQuery(
        name="unattributed-by-agent",
        meaning="how much of each agent's wall time no phase accounts for",
        sql=f"""
WITH {_RECENT}
SELECT coalesce(agent, '(not told)') AS agent, count(*) AS turns, round(sum(wall_ns) / 1e9, 3) AS wall_s,
    round(sum(unattributed_ns) / 1e9, 3) AS unattributed_s,
    round(100 * sum(unattributed_ns) / nullif(sum(wall_ns), 0), 1) AS percent,
    round(max(unattributed_ns) / 1e9, 3) AS most_in_one_turn_s, arg_max(run_id, unattributed_ns) AS that_turn
FROM recent WHERE wall_ns IS NOT NULL GROUP BY agent ORDER BY sum(unattributed_ns) DESC, agent""",
        parameters={"days": 0.0},
    ),
)

NAMED: Final = {query.name: query for query in _QUERIES}
"""The named queries in the order of the help."""
