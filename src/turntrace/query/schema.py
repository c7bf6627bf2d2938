"""How files become tables, in two ways, and the views that queries read. All SQL of DuckDB.

``LINES`` keeps every line, in the order of the files: a turn is a header and the lines up to the next one.
``SUMMARY`` adds lines up while they are read, by turn and phase: enough for ``turns`` and ``phases`` and several
times as fast. Both end in the tables ``turn_rows`` and ``shares``.
"""

from dataclasses import dataclass
from typing import Final

from turntrace.query.fields import HEADER_FIELDS, LINE_FIELDS, TIMES, columns, ns

__all__ = ["LINES", "SUMMARY", "Way"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """SQL that fills one table from files and makes the views of it.

    Attributes:
        table: its name; it has a column ``file``.
        create: makes it, empty.
        fields: what is read of a line, as read_json takes it.
        select: what becomes of the lines, without FROM; ``{file}`` is the file's name.
        group: what follows FROM.
        torn: gives the files of which something is torn, repeated or damaged.
        views: makes turns, phases and the like, once all is read.
    """

    table: str
    create: str
    fields: str
    select: str
    group: str
    torn: str
    views: str


_TURNS_AND_PHASES: Final = """
CREATE VIEW turns AS
SELECT *, CASE WHEN wall_ns > 0 THEN attributed_ns / wall_ns WHEN wall_ns = 0 THEN 0 END AS coverage,
    make_timestamp_ns(started_ns) AS started_at
FROM turn_rows;
CREATE VIEW phases AS
SELECT turn, phase, calls, wall_share_ns, critical_ns FROM shares
UNION ALL
SELECT t.turn, 'unattributed', NULL, t.wall_ns - CAST(coalesce(sum(s.wall_share_ns), 0) AS BIGINT),
    t.wall_ns - CAST(coalesce(sum(s.critical_ns), 0) AS BIGINT)
FROM turn_rows t LEFT JOIN shares s USING (turn) WHERE t.wall_ns IS NOT NULL GROUP BY t.turn, t.wall_ns;
"""

_SPANS: Final = f"""
CREATE TABLE turn_rows AS
SELECT turn, file, {TIMES} FROM (SELECT rowid AS turn, * FROM lines WHERE type = 'trace') WHERE parent_run_id IS NULL;
CREATE VIEW placed AS
SELECT t.turn, l.* FROM lines l ASOF JOIN (SELECT turn FROM turn_rows) t ON l.rowid >= t.turn;
CREATE VIEW spans AS
SELECT turn, span_id, parent_id, CASE type WHEN 'span' THEN name END AS phase, span_name AS name, tool, model, agent,
    round, coalesce(status, 'unset') AS status, coalesce(outcome, 'ok') AS outcome,
    coalesce(detached, false) AS detached, start_ns, end_ns, {ns("wall_share_ms")} AS wall_share_ns,
    {ns("critical_ms")} AS critical_ns, attributes
FROM placed WHERE type IN ('span', 'structure');
CREATE VIEW shares AS
SELECT turn, phase, count(*) AS calls, CAST(sum(wall_share_ns) AS BIGINT) AS wall_share_ns,
    CAST(sum(critical_ns) AS BIGINT) AS critical_ns
FROM spans WHERE phase IS NOT NULL GROUP BY turn, phase;
CREATE VIEW counters AS
SELECT turn, name, value FROM placed WHERE type = 'counter';
CREATE VIEW usage AS
SELECT turn, span_id, model, provider, provenance, input_tokens, cached_input_tokens, cache_write_tokens,
    output_tokens, reasoning_tokens
FROM placed WHERE type = 'usage';
"""

_EXCLUSIVE: Final = """
CREATE VIEW exclusive AS
WITH cut AS (
    SELECT s.turn, s.span_id, s.parent_id,
        CASE WHEN t.ended_ns IS NULL THEN s.start_ns
            ELSE least(greatest(s.start_ns, t.started_ns), t.ended_ns) END AS low,
        CASE WHEN t.ended_ns IS NULL THEN s.end_ns
            ELSE greatest(least(s.end_ns, t.ended_ns), t.started_ns) END AS high
    FROM spans s JOIN turn_rows t USING (turn)
), inside AS (
    SELECT p.turn, p.span_id, greatest(c.low, p.low) AS low, least(c.high, p.high) AS high
    FROM cut c JOIN cut p ON c.turn = p.turn AND c.parent_id = p.span_id
    WHERE greatest(c.low, p.low) < least(c.high, p.high)
), runs AS (
    SELECT *, max(high) OVER (
        PARTITION BY turn, span_id ORDER BY low, high ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS covered_to
    FROM inside
), covered AS (
    SELECT turn, span_id, sum(greatest(high - greatest(low, coalesce(covered_to, low)), 0)) AS ns
    FROM runs GROUP BY turn, span_id
)
SELECT cut.turn, cut.span_id,
    CAST(greatest(cut.high - cut.low, 0) - coalesce(covered.ns, 0) AS BIGINT) AS exclusive_ns
FROM cut LEFT JOIN covered USING (turn, span_id);
"""
"""A span's length without the union of its children, each cut to it: raw starts and ends, to the nanosecond."""

LINES: Final = Way(
    table="lines",
    create=f"CREATE TABLE lines (file VARCHAR, {', '.join(f'{name} {kind}' for name, kind in LINE_FIELDS.items())})",
    fields=columns(LINE_FIELDS),
    select=f"{{file}}, {', '.join(LINE_FIELDS)}",
    group="",
    torn="""
WITH ends AS (
    SELECT file, max(rowid) AS last, min(rowid) AS first FROM lines GROUP BY file
), headers AS (
    SELECT rowid AS turn, file, lines, schema_version, run_id FROM lines WHERE type = 'trace'
), blocks AS (
    SELECT h.file, h.turn, h.lines, h.schema_version, e.first, min(h.turn) OVER (PARTITION BY h.file) AS first_turn,
        coalesce(lead(h.turn) OVER (PARTITION BY h.file ORDER BY h.turn), e.last + 1) - h.turn - 1 AS found
    FROM headers h JOIN ends e USING (file)
)
SELECT DISTINCT file FROM blocks
WHERE lines IS DISTINCT FROM found OR schema_version IS DISTINCT FROM 1 OR first <> first_turn
UNION SELECT file FROM headers GROUP BY file HAVING count(*) > count(DISTINCT run_id)
UNION SELECT file FROM ends WHERE file NOT IN (SELECT file FROM headers)
UNION SELECT DISTINCT file FROM lines
WHERE type IS NULL
    OR (type IN ('span', 'structure') AND (span_id IS NULL OR start_ns IS NULL OR end_ns IS NULL))
    OR (type = 'warning' AND code IN ('cycle', 'duplicate_span'))
""",
    views=_SPANS + _TURNS_AND_PHASES + _EXCLUSIVE,
)

_SUMMED: Final = ("type", "name", "turn_id", "wall_share_ms", "critical_ms")

SUMMARY: Final = Way(
    table="sums",
    create="CREATE TABLE sums (file VARCHAR, type VARCHAR, name VARCHAR, turn_id VARCHAR, head VARCHAR, found BIGINT,"
    " share_us HUGEINT, critical_us HUGEINT,"
    f" {', '.join(f'{name} {kind}' for name, kind in HEADER_FIELDS.items())})",
    fields=columns([*_SUMMED, *HEADER_FIELDS]),
    select="{file}, type, name, turn_id, CASE type WHEN 'trace' THEN run_id END AS head, count(*),"
    " sum(CAST(round(wall_share_ms * 1000) AS BIGINT)), sum(CAST(round(critical_ms * 1000) AS BIGINT)),"
    f" {', '.join(f'any_value({name})' for name in HEADER_FIELDS)}",
    group="GROUP BY 1, 2, 3, 4, 5",
    torn="""
WITH files AS (
    SELECT file, sum(found) AS found, bool_or(type IS NULL) AS is_damaged,
        sum(CASE type WHEN 'trace' THEN found END) AS heads, sum(CASE type WHEN 'trace' THEN lines END) AS told,
        count(DISTINCT head) AS runs, count(DISTINCT CASE type WHEN 'trace' THEN span_id END) AS roots,
        bool_or(type = 'trace' AND schema_version IS DISTINCT FROM 1) AS is_other
    FROM sums GROUP BY file
)
SELECT file FROM files
WHERE is_damaged OR is_other OR found IS DISTINCT FROM heads + told OR heads <> runs OR heads <> roots
UNION SELECT s.file FROM sums s WHERE s.type = 'span' AND NOT EXISTS (
    SELECT 1 FROM sums h WHERE h.type = 'trace' AND h.file = s.file AND h.span_id = s.turn_id
)
""",
    views=f"""
CREATE TABLE turn_rows AS
SELECT row_number() OVER (ORDER BY file, started_at, run_id) AS turn, file, {TIMES}
FROM sums WHERE type = 'trace' AND parent_run_id IS NULL;
CREATE VIEW shares AS
SELECT t.turn, s.name AS phase, CAST(sum(s.found) AS BIGINT) AS calls,
    CAST(sum(s.share_us) * 1000 AS BIGINT) AS wall_share_ns, CAST(sum(s.critical_us) * 1000 AS BIGINT) AS critical_ns
FROM sums s JOIN turn_rows t ON s.file = t.file AND s.turn_id = t.span_id
WHERE s.type = 'span' GROUP BY t.turn, s.name;
"""
    + _TURNS_AND_PHASES,
)
