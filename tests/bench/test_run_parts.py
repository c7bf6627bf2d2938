"""The parts of a run by themselves: changes, answers, agents, masks, gates, what rows say together."""

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turntrace.bench.agents import PRESETS, Agent, agent_of
from turntrace.bench.answers import answer_of
from turntrace.bench.changes import changes, put_changes
from turntrace.bench.gates import FIGURES, gate_of
from turntrace.bench.masking import MASK, Masking, secrets_of
from turntrace.bench.order import schedule
from turntrace.bench.readout import read_trace, self_reported
from turntrace.bench.result_text import result_lines
from turntrace.bench.results import summary
from turntrace.bench.rows import Header, ResultError, Results, Row, RowFile, read_results
from turntrace.errors import ConfigurationError
from turntrace.files.read import read_paths

SAMPLE = Path(__file__).parents[1] / "data" / "ndjson" / "valid_full.ndjson"


@pytest.fixture
def folders(tmp_path):
    """A fixture, an agent's copy and a fresh one."""
    made = [tmp_path / name for name in ("fixture", "workspace", "fresh")]
    for folder in made:
        (folder / "pkg").mkdir(parents=True)
        (folder / "pkg" / "a.py").write_text("a = 1\n")
        (folder / "pkg" / "old.py").write_text("old\n")
        (folder / "test_it.py").write_text("assert True\n")
    return made


def test_what_is_allowed_is_applied_and_what_is_not_is_told(folders):
    """Files, bits, links and removals; hooks and existing tests stay as they were."""
    fixture, workspace, fresh = folders
    (workspace / "pkg" / "a.py").write_text("a = 2\n")
    (workspace / "pkg" / "old.py").unlink()
    (workspace / "test_it.py").unlink()
    (workspace / "test_new.py").write_text("new\n")
    (workspace / "conftest.py").write_text("hook\n")
    (workspace / "run.sh").write_text("x\n")
    (workspace / "run.sh").chmod(0o755)
    (workspace / "link").symlink_to("pkg/a.py")
    (workspace / ".git").mkdir()
    (workspace / ".git" / "config").write_text("state\n")
    os.mkfifo(workspace / "pipe")
    found = changes(fixture, workspace, ())
    assert found.written == ("link", "pkg/a.py", "run.sh", "test_new.py")
    assert (found.removed, found.outside) == (("pkg/old.py",), ("conftest.py", "test_it.py"))
    put_changes(found, workspace, fresh)
    assert (fresh / "pkg" / "a.py").read_text() == "a = 2\n"
    assert not (fresh / "pkg" / "old.py").exists()
    assert (fresh / "test_it.py").exists()
    assert not (fresh / "conftest.py").exists()
    assert (fresh / "run.sh").stat().st_mode & stat.S_IXUSR
    assert (fresh / "link").readlink() == Path("pkg/a.py")


def test_patterns_replace_the_rule(folders):
    """Only what they name."""
    fixture, workspace, _ = folders
    (workspace / "pkg" / "a.py").write_text("a = 2\n")
    (workspace / "other.txt").write_text("x\n")
    found = changes(fixture, workspace, ("pkg/*.py",))
    assert (found.written, found.outside) == (("pkg/a.py",), ("other.txt",))


def test_a_folder_that_became_a_link_leads_nowhere(folders, tmp_path):
    """What is written below its name in the copy stays in the copy."""
    fixture, workspace, fresh = folders
    outside = tmp_path / "outside"
    outside.mkdir()
    for path in (workspace / "pkg").iterdir():
        path.unlink()
    (workspace / "pkg").rmdir()
    (workspace / "pkg").symlink_to(outside)
    found = changes(fixture, workspace, ())
    assert found.removed == ("pkg/a.py", "pkg/old.py")
    put_changes(found, workspace, fresh)
    assert (fresh / "pkg").is_symlink()
    assert not list(outside.iterdir())


def test_a_file_in_the_place_of_a_folder_that_has_to_stay_is_not_applied(folders):
    """The test below it stays."""
    fixture, workspace, fresh = folders
    for folder in (fixture, fresh):
        (folder / "pkg" / "test_below.py").write_text("x")
    for path in (workspace / "pkg").iterdir():
        path.unlink()
    (workspace / "pkg").rmdir()
    (workspace / "pkg").write_text("a file now")
    put_changes(changes(fixture, workspace, ()), workspace, fresh)
    assert [path.name for path in (fresh / "pkg").iterdir()] == ["test_below.py"]


def test_a_bit_and_a_kind_are_changes(folders):
    """Not only bytes."""
    fixture, workspace, _ = folders
    (workspace / "pkg" / "a.py").chmod(0o755)
    (workspace / "pkg" / "old.py").unlink()
    (workspace / "pkg" / "old.py").symlink_to("a.py")
    assert changes(fixture, workspace, ()).written == ("pkg/a.py", "pkg/old.py")
    assert changes(None, workspace, ()).removed == ()


@pytest.mark.parametrize(
    ("kind", "stdout", "expected"),
    [
        ("stdout", b"hi\xff", "hi\ufffd"),
        ("json:result", b'noise\n{"type":"result","result":"42"}\n', "42"),
        ("json:final", b'{"type":"final","text":"a"}\n[1]\n{"type":"final","text":"b"}\n', "b"),
        ("json:final", b'{"type":"final"}\n', ""),
    ],
)
def test_an_answer_is_where_the_preset_says(tmp_path, kind, stdout, expected):
    """The last one wins, noise is none."""
    assert answer_of(Agent(name="x", argv=("x",), answer=kind), stdout, tmp_path / "none") == expected


def test_an_answer_file_is_read_and_a_link_is_not(tmp_path):
    """What is behind a link is not the agent's."""
    agent = PRESETS["codex"]
    (tmp_path / "a.txt").write_text("words")
    (tmp_path / "link.txt").symlink_to("a.txt")
    assert answer_of(agent, b"", tmp_path / "a.txt") == "words"
    assert answer_of(agent, b"", tmp_path / "link.txt") == ""


def test_agents_come_by_name_command_and_function():
    """Words are filled in once: a prompt that holds placeholders stays as it is."""
    assert agent_of(None, "my-agent --x {prompt} {model}").needs_model
    filled = agent_of(None, "a --p={prompt}:{task_id}").command({"prompt": "{task_id}{x}", "task_id": "7"})
    assert filled == ("a", "--p={task_id}{x}:7")
    assert agent_of("python:json:dumps", None).argv[-3:] == ("json", "dumps", "{prompt}")
    for name, command in ((None, None), ("nop", "x"), (None, ""), ("python:json", None), ("who", None)):
        with pytest.raises(ConfigurationError):
            agent_of(name, command)


@given(st.text(min_size=6), st.text(), st.text())
def test_no_secret_survives_a_mask(secret, before, after):
    """Wherever it stands, unless it is part of the mask's own word."""
    if secret not in MASK:
        masked = Masking((secret,))(before + secret + after)
        assert secret not in masked.replace(MASK, "") or secret in (before + after)


def test_secrets_are_found_by_name_and_by_shape():
    """A short value is no secret: it would be found in innocent words."""
    env = {"MY_TOKEN": "abcdefgh", "PASSWORD": "x", "OTHER": "12345678", "LANG": "C.UTF-8"}
    assert set(secrets_of(env, ["OTHER"])) == {"abcdefgh", "12345678"}
    text = "Bearer abcdefghijklmnop ghp_" + "a" * 24 + " AKIA" + "B" * 16
    assert Masking(())(text) == f"Bearer {MASK} {MASK} {MASK}"


@given(st.integers(0, 2**31), st.integers(1, 5), st.integers(1, 6))
def test_every_run_is_planned_once_round_by_round(seed, iterations, count):
    """Any seed."""
    names = [f"t{number}" for number in range(count)]
    turns = list(schedule(names, iterations, seed))
    assert sorted(turn.key for turn in turns) == sorted((n, i + 1) for n in names for i in range(iterations))
    assert [turn.iteration for turn in turns] == sorted(turn.iteration for turn in turns)
    assert [turn.position for turn in turns] == list(range(len(turns)))


HEADER = Header(
    suite="s", suite_sha256="0", agent="a", agent_sha256="1", agent_argv=("a",), model=None, seed=1, iterations=1,
    tasks=("t",), start="cold", serial=False, isolation="process", isolation_reason="asked for", cannot_stop=(),
    network=True, auth=(), jobs=1, machine={}, created_at="2026-01-02T03:04:05Z",
)  # fmt: skip
ROW = Row(
    task="t", task_class="c", tier="correctness", iteration=1, position=0, seed=1, start="cold", expect=None,
    started_at_ns=1, exit=0, timed_out=False, forced=False, left_running=None, interrupted=False, error="",
    verdict="pass", reason="", passed=True, failures=(), outside=(), samples=True, throttled=False,
    cached_twice=False, wall_ns=10**9, set_up_ns=1, oracle_ns=1, output_bytes=0, output_cut_bytes=0, requests=None,
    attempts_refused=None, usage=None, overlap=None, trace="off", trace_issues=(), self_reported=None,
)  # fmt: skip


def results(*rows):
    """A file of these rows."""
    return Results(header=replace(HEADER, iterations=len(rows)), rows=rows, ended=True)


def test_a_p95_needs_twenty_samples_and_an_interval_six():
    """Below, it is the maximum, and is called so."""
    rows = [replace(ROW, iteration=n + 1, wall_ns=n + 1) for n in range(20)]
    assert summary(results(*rows[:19])).wall.p95_ns is None
    assert summary(results(*rows)).wall.p95_ns == 19
    assert summary(results(*rows[:5])).wall.interval_ns is None
    assert summary(results(*rows[:6])).wall.interval_ns == (1, 6)


def test_tiers_are_not_averaged_and_latency_has_no_rate():
    """Three lines, no fourth."""
    rows = [ROW, replace(ROW, task="l", tier="latency", passed=False, verdict="none")]
    found = summary(Results(header=replace(HEADER, tasks=("t", "l")), rows=tuple(rows), ended=True))
    assert [(tier.tier, tier.passes) for tier in found.tiers] == [("correctness", 1), ("latency", None)]
    assert FIGURES["build"](found) is None
    said = gate_of("build<50%").holds(found)
    assert "not known" in said
    text = "\n".join(result_lines(HEADER, found))
    assert "latency: 1 tasks without an oracle, 1 runs" in text


def test_a_row_taken_on_a_busy_machine_is_disturbed_and_counts_until_told():
    """Load, steal and frequency against the median of the run."""
    calm = {"load_1": 1.0, "steal_ticks": 0, "ticks": 0, "frequency_mhz": 2000.0}
    after = calm | {"ticks": 100}
    rows = [replace(ROW, iteration=n, load_before=calm, load_after=after) for n in range(1, 6)]
    rows += [
        replace(rows[0], iteration=6, load_before=calm | {"load_1": 9.0}),
        replace(rows[0], iteration=7, load_after=after | {"steal_ticks": 30}),
        replace(rows[0], iteration=8, load_before=calm | {"frequency_mhz": 800.0}),
    ]
    found = summary(results(*rows))
    assert [iteration for _, iteration in found.disturbed] == [6, 7, 8]
    assert found.wall.count == 8
    assert summary(results(*rows), drop_disturbed=True).wall.count == 5
    assert any("disturbed" in line for line in result_lines(HEADER, found))


def test_throttled_and_cached_runs_are_shown_and_not_sampled():
    """They are attempts all the same."""
    rows = [ROW, replace(ROW, iteration=2, throttled=True, samples=False)]
    rows.append(replace(ROW, iteration=3, cached_twice=True, samples=False, trace_issues=("odd",)))
    found = summary(results(*rows))
    assert (found.attempted, found.wall.count, found.throttled, found.cached_twice) == (3, 1, 1, 1)
    text = "\n".join(result_lines(HEADER, found, "markdown"))
    assert "1 runs throttled" in text
    assert "trace issue in 1: odd" in text


def test_files_that_are_no_results_are_refused(tmp_path):
    """With the path."""
    path = tmp_path / "x.ndjson"
    with pytest.raises(ResultError, match="cannot read"):
        read_results(path)
    for text in ("", "no json\n", '{"type":"trace"}\n'):
        path.write_text(text)
        with pytest.raises(ResultError, match="is no result"):
            read_results(path)
    path.unlink()
    with RowFile.create(path, HEADER, str) as file:
        file.add(ROW)
    lines = path.read_text().splitlines()
    row = json.loads(lines[1])
    del row["wall_ns"]
    path.write_text(f"{lines[0]}\n{json.dumps(row)}\n")
    with pytest.raises(ResultError, match="not whole"):
        read_results(path)
    with pytest.raises(ResultError, match="cannot write"):
        RowFile.create(path / "below", HEADER, str)


def test_a_row_comes_back_as_it_was_written(tmp_path):
    """Nothing is rounded, lists are tuples again."""
    path = tmp_path / "x.ndjson"
    with RowFile.create(path, HEADER, str) as file:
        file.add(ROW)
        file.add(ROW)
        file.end()
    assert read_results(path) == Results(header=HEADER, rows=(ROW,), ended=True)


def test_a_trace_is_held_against_the_server_and_the_life_of_the_process(tmp_path):
    """Issues take the phases away, not the rest."""
    spans = [span for turn in read_paths([str(SAMPLE)]).turns for span in turn.spans]
    begins, ends = min(span.start_ns for span in spans), max(span.end_ns for span in spans)
    found = read_trace(SAMPLE, began_ns=begins, ended_ns=ends, requests=None)
    assert self_reported(found)["wall_ns"] > 0
    wrong = read_trace(SAMPLE, began_ns=ends + 10**9, ended_ns=ends + 2 * 10**9, requests=999)
    assert wrong.status == "issues"
    assert any("outside the life" in issue for issue in wrong.issues)
    assert any("the model server answered 999" in issue for issue in wrong.issues)
    assert self_reported(wrong)["phases"] is None
    none = read_trace(tmp_path / "none", began_ns=0, ended_ns=1, requests=None)
    assert (none.status, self_reported(none)) == ("missing", None)
    (tmp_path / "bad").write_text("what is this\n")
    assert read_trace(tmp_path / "bad", began_ns=0, ended_ns=1, requests=None).status == "unreadable"
