"""The fields of a trace's lines that queries can ask for, with their types in DuckDB."""

from collections.abc import Iterable
from typing import Final

__all__ = ["HEADER_FIELDS", "LINE_FIELDS", "TIMES", "columns", "moment", "ns"]

HEADER_FIELDS: Final = {
    "run_id": "VARCHAR",
    "parent_run_id": "VARCHAR",
    "trace_id": "VARCHAR",
    "span_id": "VARCHAR",
    "agent": "VARCHAR",
    "model": "VARCHAR",
    "provider": "VARCHAR",
    "session_id": "VARCHAR",
    "source": "VARCHAR",
    "turn_source": "VARCHAR",
    "status": "VARCHAR",
    "labels": "JSON",
    "rounds": "BIGINT",
    "started_at": "VARCHAR",
    "completed_at": "VARCHAR",
    "first_token_at": "VARCHAR",
    "wall_ms": "DOUBLE",
    "active_ms": "DOUBLE",
    "attributed_ms": "DOUBLE",
    "unattributed_ms": "DOUBLE",
    "busy_ms": "DOUBLE",
    "critical_path_ms": "DOUBLE",
    "schema_version": "BIGINT",
    "lines": "BIGINT",
}
"""Those of a turn's first line."""

LINE_FIELDS: Final = {
    **HEADER_FIELDS,
    "type": "VARCHAR",
    "name": "VARCHAR",
    "span_name": "VARCHAR",
    "parent_id": "VARCHAR",
    "turn_id": "VARCHAR",
    "start_ns": "BIGINT",
    "end_ns": "BIGINT",
    "wall_share_ms": "DOUBLE",
    "critical_ms": "DOUBLE",
    "outcome": "VARCHAR",
    "round": "BIGINT",
    "tool": "VARCHAR",
    "detached": "BOOLEAN",
    "attributes": "JSON",
    "value": "BIGINT",
    "code": "VARCHAR",
    "provenance": "VARCHAR",
    "input_tokens": "BIGINT",
    "cached_input_tokens": "BIGINT",
    "cache_write_tokens": "BIGINT",
    "output_tokens": "BIGINT",
    "reasoning_tokens": "BIGINT",
}
"""Those of every line."""


def columns(names: Iterable[str]) -> str:
    """Fields as read_json takes them."""
    return "{" + ", ".join(f"{name}: '{LINE_FIELDS[name]}'" for name in names) + "}"


def ns(field: str) -> str:
    """Milliseconds of the file, which have three decimals, as nanoseconds: exact to the microsecond."""
    return f"CAST(round({field} * 1000) AS BIGINT) * 1000"


def moment(field: str) -> str:
    """A time of the file in nanoseconds since the epoch, exact."""
    return f"epoch_ns(TRY_CAST(nullif({field}, '') AS TIMESTAMP_NS))"


TIMES: Final = f"""
    run_id, trace_id, span_id, agent, model, provider, session_id, source, turn_source, status, labels, rounds,
    {moment("started_at")} AS started_ns, {moment("completed_at")} AS ended_ns,
    {moment("first_token_at")} - {moment("started_at")} AS first_token_ns,
    {ns("wall_ms")} AS wall_ns, {ns("active_ms")} AS active_ns, {ns("attributed_ms")} AS attributed_ns,
    {ns("unattributed_ms")} AS unattributed_ns, {ns("busy_ms")} AS busy_ns,
    {ns("critical_path_ms")} AS critical_path_ns"""
"""What a turn's row is made of."""
