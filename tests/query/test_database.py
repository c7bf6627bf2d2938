"""Files as a database: the same figures as core's, whatever the files are, and nothing else can be done."""

import gzip
import json
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from cli.conftest import with_real_ids
from recorded_cases import PATHS, cases_of
from report.random_turns import turns
from report.turns import example, span, turn
from turntrace.core.attribution import attributed
from turntrace.core.codec.encode import encode_block
from turntrace.core.codec.journal import header_line, span_line, span_start_line
from turntrace.errors import QueryError, TraceReadError
from turntrace.query.connection import connect, literal
from turntrace.query.database import TurnDatabase, way_for
from turntrace.query.schema import LINES, SUMMARY

US = 1000
both_ways = pytest.mark.parametrize("way", [LINES, SUMMARY], ids=lambda way: way.table)


def asked(paths, sql, way=None, **more):
    """The rows of an answer."""
    with TurnDatabase([str(path) for path in paths], way or way_for(sql), **more) as database:
        return list(database.ask(sql).rows)


def write(path, *records):
    """A file of blocks."""
    path.write_bytes(
        b"".join(line for one in map(with_real_ids, records) for line in encode_block(one, attributed(one)))
    )
    return path


def outermost(path):
    """The cases of a file whose turns lie in no other."""
    return [case for case in cases_of(path) if case.turn.parent_run_id is None]


EXCLUSIVE = (
    "SELECT t.run_id, e.span_id, e.exclusive_ns FROM exclusive e JOIN turns t USING (turn) ORDER BY ALL"
)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_exclusive_time_by_sql_is_cores(path):
    """From raw starts and ends, to the nanosecond, for every recorded trace."""
    expected = sorted(
        (case.turn.run_id, times.span.span_id, times.exclusive_ns)
        for case in outermost(path)
        for times in case.attribution.spans
    )
    assert asked([path], EXCLUSIVE) == expected


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(turns())
def test_exclusive_time_of_any_turn(tmp_path, record):
    """Random forests, read by DuckDB straight from the file."""
    ids = {one.span_id for one in record.spans} | {"root"}
    record = replace(
        record,
        spans=tuple(
            replace(one, parent_id=one.parent_id if one.parent_id in ids else "root")
            for one in sorted(record.spans, key=lambda one: (one.start_ns, one.span_id))
            if one.start_ns >= 0 and one.end_ns >= one.start_ns
        ),
    )
    record = replace(
        record,
        spans=tuple(
            replace(
                one,
                parent_id=one.parent_id
                if one.parent_id in {"root", *(s.span_id for s in record.spans)}
                else "root",
            )
            for one in record.spans
        ),
    )
    path = write(tmp_path / "t.ndjson", record)
    expected = sorted(
        (times.span.span_id, times.exclusive_ns) for times in attributed(with_real_ids(record)).spans
    )
    assert asked([path], "SELECT span_id, exclusive_ns FROM exclusive ORDER BY ALL") == expected


@both_ways
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_phases_are_the_reports(path, way):
    """Calls exactly, times to the microsecond that a file holds; the rows add up to the wall exactly."""
    found = asked(
        [path],
        "SELECT run_id, phase, calls, wall_share_ns, p.critical_ns FROM phases p JOIN turns USING (turn)",
        way,
    )
    rows = {(run_id, phase): (calls, share, critical) for run_id, phase, calls, share, critical in found}
    for case in outermost(path):
        run_id, attribution = case.turn.run_id, case.attribution
        for phase in attribution.phases:
            calls, share, critical = rows.pop((run_id, phase.name))
            assert calls == phase.count
            for by_sql, by_core in ((share, phase.wall_share_ns), (critical, phase.critical_ns)):
                assert (by_sql is None) == (by_core is None)
                assert by_core is None or abs(by_sql - by_core) <= phase.count * US
        if attribution.wall_ns is not None:
            _, share, _ = rows.pop((run_id, "unattributed"))
            spans = sum(phase.count for phase in attribution.phases)
            assert abs(share - attribution.unattributed_ns) <= (spans + 1) * US
    assert rows == {}


@both_ways
def test_turns_have_their_facts(tmp_path, way):
    """Who, when, how long; the start to the nanosecond, unknown as null."""
    path = write(tmp_path / "t.ndjson", example(), turn([], 10, run_id="r2", agent=None))
    sql = "SELECT run_id, agent, rounds, wall_ns, active_ns, coverage, first_token_ns, started_ns, file FROM turns ORDER BY 1"
    rows = asked([path], sql, way)
    assert rows[0][:5] == ("r2", None, None, 10_000_000, 10_000_000)
    assert rows[0][5:7] == (0.0, None)
    assert rows[1][:5] == ("run-1", "demo-agent", 4, 8_420_000_000, 7_220_000_000)
    assert rows[1][6:] == (310_000_000, 1_796_072_700_000_000_000, str(path))


def test_spans_counters_and_usage(tmp_path):
    """Every line that a turn has, under the turn it belongs to, in a file of several."""
    path = write(
        tmp_path / "t.ndjson", example(), turn([span("n", None, 0, 5, name="node")], 10, run_id="r2")
    )
    spans = asked(
        [path],
        "SELECT run_id, count(*), count(phase), min(name) FROM spans JOIN turns USING (turn) GROUP BY 1 ORDER BY 1",
    )
    assert spans[0] == ("r2", 1, 0, "node")
    assert spans[1][:3] == ("run-1", 26, 26)
    counters = asked(
        [path], "SELECT name, value FROM counters JOIN turns USING (turn) WHERE run_id = 'run-1' ORDER BY 1"
    )
    assert ("retry_count", 1) in counters
    assert asked([path], "SELECT sum(input_tokens), count(*) FROM usage") == [(18_240, 4)]


@both_ways
def test_what_is_no_whole_file_is_read_by_turntraces_reader(tmp_path, way):
    """Torn blocks, repeated turns, compressed files, other formats and live turns are read as report reads them."""
    whole = write(tmp_path / "whole.ndjson", example())
    lines = whole.read_bytes().splitlines(keepends=True)
    (tmp_path / "torn.ndjson").write_bytes(b"".join(lines[:12]) + b"".join(lines))
    (tmp_path / "damaged.ndjson").write_bytes(b"".join([*lines[:5], b"no json\n", *lines[6:]]))
    (tmp_path / "late.ndjson").write_bytes(b"".join([lines[1], *lines]))
    (tmp_path / "twice.ndjson").write_bytes(b"".join(lines) * 2)
    (tmp_path / "packed.ndjson.gz").write_bytes(gzip.compress(whole.read_bytes()))
    (tmp_path / "live.ndjson").write_bytes(whole.read_bytes())
    live = turn([], 10, run_id="live", trace_id="9" * 32, span_id=f"{9:016x}", status="interrupted")
    (tmp_path / "live.ndjson.live.part").write_bytes(
        header_line(replace(live, completed_ns=None), pid=1)
        + span_start_line("plan", "plan", 7, 9, 9, live.started_ns)
        + span_line("plan", "plan", 7, 9, 9, live.started_ns, live.started_ns + 5)
    )
    names = ["whole", "torn", "damaged", "late", "twice", "live"]
    paths = [tmp_path / f"{name}.ndjson" for name in names] + [tmp_path / "packed.ndjson.gz"]
    found = asked(paths, "SELECT file, run_id, status FROM turns", way)
    by_file = {}
    for file, run_id, status in found:
        by_file.setdefault(file.rpartition("/")[2].partition(".")[0], []).append((run_id, status))
    from turntrace.files.read import read_paths

    for path in paths:
        expected = sorted({(one.run_id, one.status) for one in read_paths([str(path)]).turns})
        assert sorted(by_file[path.name.partition(".")[0]]) == expected, path
    assert len(by_file["live"]) == 2


@both_ways
def test_turns_that_share_an_id_of_their_roots_stay_apart(tmp_path, way):
    """Each has its own phases, though their files give both roots one id; a run that is told twice counts once."""
    plan = turn([span("p", "plan", 0, 4)], 10, run_id="r1")
    memory = turn([span("m", "memory", 0, 3)], 10, run_id="r2")
    path = write(tmp_path / "t.ndjson", plan, memory, plan)
    rows = asked(
        [path],
        "SELECT run_id, phase, p.wall_share_ns FROM phases p JOIN turns USING (turn) ORDER BY ALL",
        way,
    )
    ms = 1_000_000
    assert rows == [
        ("r1", "plan", 4 * ms),
        ("r1", "unattributed", 6 * ms),
        ("r2", "memory", 3 * ms),
        ("r2", "unattributed", 7 * ms),
    ]


def test_issues_are_told_and_files_count_once(tmp_path):
    """What was wrong with a file is handed on; a path given twice is one file."""
    whole = write(tmp_path / "whole.ndjson", example())
    (tmp_path / "cut.ndjson").write_bytes(whole.read_bytes()[:-20])
    done = []
    paths = [str(tmp_path / "cut.ndjson"), str(whole), str(whole)]
    with TurnDatabase(paths, SUMMARY, done=done.append) as database:
        assert {path for path, _ in database.issues} == {paths[0]}
        assert list(database.ask("SELECT count(*) FROM turns").rows) == [(2,)]
    assert sum(done) == 2


def test_a_file_that_cannot_be_read_is_an_error(tmp_path):
    """The path is named."""
    with pytest.raises(TraceReadError, match="nothing"):
        asked([tmp_path / "nothing.ndjson"], "SELECT 1")


FORBIDDEN = [
    "COPY turns TO '{folder}/out.csv'",
    "COPY (SELECT 1) TO '{folder}/out.parquet' (FORMAT parquet)",
    "EXPORT DATABASE '{folder}/out'",
    "ATTACH '{folder}/out.db' AS out",
    "SELECT * FROM read_text('{folder}/secret')",
    "SELECT * FROM read_csv('{folder}/secret')",
    "SELECT * FROM '{folder}/secret.csv'",
    "SELECT * FROM glob('{folder}/*')",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SELECT * FROM 'https://localhost/x.parquet'",
    "SET enable_external_access = true",
    "RESET lock_configuration",
    "SET temp_directory = '{folder}'",
    "CREATE SECRET s (TYPE s3)",
]


@pytest.mark.parametrize("sql", FORBIDDEN)
def test_sql_reads_the_views_and_nothing_else(tmp_path, sql):
    """No file is read or written, no extension is loaded, no setting is changed."""
    (tmp_path / "secret").write_text("s")
    path = write(tmp_path / "t.ndjson", example())
    before = sorted(tmp_path.iterdir())
    with pytest.raises(QueryError):
        asked([path], sql.format(folder=tmp_path), LINES)
    assert sorted(tmp_path.iterdir()) == before


def test_files_may_be_written_when_asked(tmp_path):
    """Unlocked, COPY works."""
    path = write(tmp_path / "t.ndjson", example())
    asked([path], f"COPY turns TO {literal(str(tmp_path / 'out.csv'))}", unlocked=True)
    assert "run-1" in (tmp_path / "out.csv").read_text()


def test_an_answer_that_fails_half_way_is_an_error(tmp_path):
    """What only shows when rows are fetched is told in the same way."""
    path = write(tmp_path / "t.ndjson", example())
    with pytest.raises(QueryError):
        asked([path], "SELECT CAST(if(range = 40000, 'x', '1') AS INTEGER) FROM range(50000), turns")


def test_parquet_of_an_answer(tmp_path):
    """The rows of a SELECT, a comment at its end included, as a file."""
    path = write(tmp_path / "t.ndjson", example())
    with TurnDatabase([str(path)], SUMMARY) as database:
        (tmp_path / "o.parquet").write_bytes(b"".join(database.parquet("SELECT run_id FROM turns -- all")))
    with connect(tmp_path, "test") as reader:
        assert reader.execute(f"FROM {literal(str(tmp_path / 'o.parquet'))}").fetchall() == [("run-1",)]


def test_which_sql_needs_every_line():
    """A word that names a view of lines, or looks at the catalogue, loads all of them."""
    assert way_for("select * from SPANS") is LINES
    assert way_for("show tables") is LINES
    assert way_for("SELECT agent FROM turns JOIN phases USING (turn)") is SUMMARY


def test_quotes_in_paths_are_no_sql(tmp_path):
    """A name with a quote is a name."""
    path = write(tmp_path / "it's.ndjson", example())
    packed = tmp_path / "that's.ndjson.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert asked([path, packed], "SELECT count(*) FROM turns") == [(2,)]
    assert json.dumps(literal("a'b")) == "\"'a''b'\""
