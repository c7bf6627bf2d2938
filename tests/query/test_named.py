"""The named questions: what each answers, by hand-made turns."""

import pytest

from query.test_database import write
from report.turns import START_NS, example, span, turn
from turntrace.core.model import Usage
from turntrace.query.database import TurnDatabase, way_for
from turntrace.query.named import NAMED

DAY_MS = 86_400_000


def answer(path, name, **parameters):
    """The rows of a named query as mappings."""
    named = NAMED[name]
    with TurnDatabase([str(path)], way_for(named.sql)) as database:
        found = database.ask(named.sql, {**named.parameters, **parameters})
        return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


def plan(run_id, length, wall=100, day=0, **more):
    """A turn that starts so many days later and plans for so many ms."""
    import dataclasses

    made = turn([span("p", "plan", 0, length)], wall, run_id=run_id, trace_id=run_id[-1] * 32, **more)
    shift = day * DAY_MS * 1_000_000
    return dataclasses.replace(
        made,
        started_ns=START_NS + shift,
        completed_ns=made.completed_ns + shift,
        span_id=f"{int(run_id[-1]) + 100:016x}",
        spans=tuple(
            dataclasses.replace(
                one,
                parent_id=f"{int(run_id[-1]) + 100:016x}",
                start_ns=one.start_ns + shift,
                end_ns=one.end_ns + shift,
            )
            for one in made.spans
        ),
    )


def test_top_phases_over_the_last_days(tmp_path):
    """The days end with the newest turn; the rows add up to the wall of the turns they count."""
    path = write(tmp_path / "t.ndjson", plan("r1", 10, day=0), plan("r2", 40, day=9), plan("r3", 60, day=10))
    rows = {row["phase"]: row for row in answer(path, "top-phases")}
    assert (rows["plan"]["turns"], rows["plan"]["wall_s"], rows["plan"]["median_s"]) == (2, 0.1, 0.04)
    assert sum(row["wall_s"] for row in rows.values()) == 0.2
    assert sum(row["percent"] for row in rows.values()) == 100
    every = {row["phase"]: row for row in answer(path, "top-phases", days=0)}
    assert every["plan"]["turns"] == 3
    assert len(answer(path, "top-phases", top=1)) == 1


def test_slowest_turns_name_their_largest_phase(tmp_path):
    """The slowest first, with what took the most of each."""
    path = write(tmp_path / "t.ndjson", plan("r1", 10), plan("r2", 390, wall=400), example(trace_id="e" * 32))
    rows = answer(path, "slowest-turns", top=2)
    assert [row["run_id"] for row in rows] == ["run-1", "r2"]
    assert (rows[0]["most_in"], rows[0]["percent"], rows[0]["active_s"]) == ("generation", 41.3, 7.22)
    assert rows[1]["most_in"] == "plan"


def test_tokens_by_model_do_not_make_unknown_zero(tmp_path):
    """A sum is of the calls that told it; a model that told nothing has no sum."""
    spans = [span("g", "generation", 0, 5, model="m"), span("h", "generation", 5, 9, model="quiet")]
    usage = (
        Usage(span_id="g", model="m", input_tokens=100, cached_input_tokens=25, output_tokens=3),
        Usage(span_id="h", model="quiet", provenance="missing"),
    )
    path = write(tmp_path / "t.ndjson", turn(spans, 10, usage=usage, counters={"model_requests": 2}))
    told, quiet = answer(path, "tokens-by-model")
    assert (told["model"], told["input_tokens"], told["cached_percent"], told["reasoning_tokens"]) == (
        "m",
        100,
        25,
        None,
    )
    assert (quiet["model"], quiet["calls"], quiet["calls_that_told"], quiet["input_tokens"]) == (
        "quiet",
        1,
        0,
        None,
    )


def test_coverage_outliers_are_far_from_their_agents_others(tmp_path):
    """A turn that is as badly covered as all of its agent's is none."""
    turns = [
        plan("r1", 95),
        plan("r2", 96),
        plan("r3", 40),
        *(plan(f"s{n}", 50, agent="bad") for n in (4, 5, 6)),
    ]
    path = write(tmp_path / "t.ndjson", *turns)
    assert [row["run_id"] for row in answer(path, "coverage-outliers")] == ["r3"]
    assert len(answer(path, "coverage-outliers", apart=0)) == 4
    assert answer(path, "coverage-outliers", below=0.1) == []


def test_retry_storms_name_their_reason(tmp_path):
    """Three waits or more in one turn; what they waited for most often."""
    waits = [
        span(f"w{n}", "retry_wait", n * 100, n * 100 + 50, attributes={"turntrace.reason": reason})
        for n, reason in enumerate(["429", "timeout", "429"])
    ]
    path = write(tmp_path / "t.ndjson", turn(waits, 1000), plan("r2", 5))
    [row] = answer(path, "retry-storms")
    assert (row["waits"], row["most_often"], row["waited_s"], row["percent"]) == (3, "429", 0.15, 15)
    assert answer(path, "retry-storms", least=4) == []


def test_unattributed_time_by_agent(tmp_path):
    """The agent that is least accounted for comes first, with its worst turn."""
    path = write(
        tmp_path / "t.ndjson", plan("r1", 95), plan("r2", 10, agent="dark"), plan("r3", 50, agent="dark")
    )
    rows = answer(path, "unattributed-by-agent")
    assert [(row["agent"], row["turns"], row["percent"]) for row in rows] == [
        ("dark", 2, 70),
        ("demo-agent", 1, 5),
    ]
    assert rows[0]["that_turn"] == "r2"


@pytest.mark.parametrize("name", NAMED)
def test_each_answers_of_turns_without_an_end_too(tmp_path, name):
    """Nothing fails where walls are unknown."""
    import dataclasses

    path = write(
        tmp_path / "t.ndjson", dataclasses.replace(example(), completed_ns=None, status="interrupted")
    )
    answer(path, name)
