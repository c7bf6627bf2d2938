"""Turns from paths: traces, the journals beside them, OTLP JSON, standard input."""

import io
import os
import sys
from types import SimpleNamespace

import pytest

from core.raws import TRACES
from files.journals import TRACE, dead_pid, phase, root_end, write_fragment, write_journal
from turntrace.errors import ContractError, TraceReadError
from turntrace.files.append import Rotation
from turntrace.files.read import read_paths
from turntrace.files.recovery import finish_dead


@pytest.fixture
def out(tmp_path):
    """A trace without turns yet."""
    path = tmp_path / "t.ndjson"
    path.touch()
    return path


def write_block(out, run_id, *spans, trace_id=TRACE):
    """A complete block in the file."""
    write_journal(out, run_id, dead_pid(), *spans, root_end(run_id, trace_id=trace_id), trace_id=trace_id)
    assert finish_dead(out, Rotation()) == 1


def tools(turn):
    """The tools of a turn's spans."""
    return sorted(span.tool for span in turn.spans)


def test_blocks_and_the_journals_of_live_turns_are_read(out):
    """What stands in the file comes first, what is still open after it, interrupted."""
    write_block(out, "r1", phase(2))
    write_journal(out, "r2", os.getpid(), phase(3))
    turns = read_paths([str(out)]).turns
    assert [(turn.run_id, turn.status, tools(turn)) for turn in turns] == [
        ("r1", "ok", ["t2"]),
        ("r2", "interrupted", ["t3"]),
    ]


def test_a_journal_alone_is_enough(out):
    """A file that is empty because its first turn still runs is no error, even when read strictly."""
    write_journal(out, "r1", os.getpid(), phase(2), root_end("r1"))
    [turn] = read_paths([str(out)], strict=True).turns
    assert (turn.run_id, turn.status) == ("r1", "ok")


def test_a_complete_block_wins_over_its_journal(out):
    """A journal that its process could not delete adds nothing."""
    write_block(out, "r1", phase(2))
    write_journal(out, "r1", dead_pid(), phase(2), phase(3))
    [turn] = read_paths([str(out)], strict=True).turns
    assert tools(turn) == ["t2"]


def test_a_torn_block_gives_way_to_its_journal(out):
    """Of a turn whose block was cut by a kill the journal tells everything, without an issue."""
    spans = [phase(number) for number in range(2, 9)]
    write_block(out, "r1", *spans)
    lines = out.read_bytes().splitlines(keepends=True)
    torn = b"".join(lines[:4]) + lines[4][:10]
    out.write_bytes(torn)
    [cut] = read_paths([str(out)]).turns
    assert len(cut.spans) < len(spans)
    write_journal(out, "r1", dead_pid(), *spans, root_end("r1"))
    [whole] = read_paths([str(out)], strict=True).turns
    assert tools(whole) == [f"t{number}" for number in range(2, 9)]


def test_fragments_are_joined_to_the_turn_of_their_trace(out):
    """Spans of another process stand in the turn, whether it is in the file or in a journal."""
    write_block(out, "r1", phase(2), trace_id="cd" * 16)
    write_journal(out, "r2", os.getpid(), phase(3))
    write_fragment(out, os.getpid(), phase(4), trace_id="cd" * 16)
    write_fragment(out, os.getpid(), phase(5))
    turns = read_paths([str(out)]).turns
    assert {turn.run_id: tools(turn) for turn in turns} == {"r1": ["t2", "t4"], "r2": ["t3", "t5"]}


def test_a_fragment_of_no_known_turn_is_a_turn_of_its_own(out):
    """Where the root is in no file here, what is known of it is shown."""
    write_block(out, "r1", phase(2))
    write_fragment(out, 99, phase(4), trace_id="ef" * 16)
    turns = read_paths([str(out)]).turns
    assert [(turn.run_id, tools(turn)) for turn in turns] == [("r1", ["t2"]), ("part-99", ["t4"])]


def test_a_sub_agent_s_turn_follows_its_own(out):
    """Turns inside a turn are read off it, right behind it."""
    write_block(out, "r1", phase(2), phase(3, name=None, agent="sub", run_id="inner"), phase(4, parent=3))
    turns = read_paths([str(out), str(out)]).turns
    assert [turn.run_id for turn in turns] == ["r1", "inner"] * 2
    assert tools(turns[1]) == ["t4"]


def test_a_damaged_line_is_an_issue_and_an_error_in_strict_reading(out):
    """Lenient reading keeps the rest; strict reading names the file, the line and the code."""
    write_block(out, "r1", phase(2))
    out.write_bytes(out.read_bytes() + b"{oops\n")
    result = read_paths([str(out)])
    assert [turn.run_id for turn in result.turns] == ["r1"]
    assert {path for path, issue in result.issues if issue.severity == "error"} == {str(out)}
    with pytest.raises(ContractError) as caught:
        read_paths([str(out)], strict=True)
    assert (caught.value.path, caught.value.line is not None) == (str(out), True)
    assert caught.value.code in str(caught.value)


def test_what_is_no_error_does_not_stop_strict_reading(out):
    """A byte order mark is said and read over."""
    write_block(out, "r1", phase(2))
    out.write_bytes(b"\xef\xbb\xbf" + out.read_bytes())
    result = read_paths([str(out)], strict=True)
    assert [issue.code for _, issue in result.issues] == ["bom"]


def test_an_empty_file_is_an_issue_of_its_own(out):
    """Nothing to read is said as the contract says it."""
    result = read_paths([str(out)])
    assert (result.turns, [issue.code for _, issue in result.issues]) == ([], ["empty"])


def test_a_fragment_beside_an_empty_file_is_no_error(out):
    """A process may have told its part before the turn's own process wrote anything."""
    write_fragment(out, 99)
    assert [turn.run_id for turn in read_paths([str(out)], strict=True).turns] == ["part-99"]


@pytest.mark.parametrize("name", [".", "none.ndjson", "t.ndjson/below", "none/t.ndjson"])
def test_a_path_that_cannot_be_opened_is_an_error_that_names_it(out, name):
    """Folders, missing files and paths below a file are read errors of ours."""
    path = str(out.parent / name)
    with pytest.raises(TraceReadError) as caught:
        read_paths([path])
    assert caught.value.path == path


@pytest.mark.parametrize("name", ["13-pydantic-ai.json", "edge/e01-lines-in-end-order.jsonl"])
def test_otlp_json_is_known_by_its_content(name, tmp_path):
    """A document or lines of OTLP are assembled to turns, whatever the file is called."""
    path = tmp_path / "any.ndjson"
    path.write_bytes((TRACES / name).read_bytes())
    result = read_paths([str(path)])
    assert result.turns
    assert all(turn.spans for turn in result.turns)


def test_a_rule_says_what_a_turn_is():
    """A rule makes the spans it fits turns, whatever their instrumentation says."""
    path = str(TRACES / "13-pydantic-ai.json")
    assert read_paths([path]).turns[0].turn_source == "dialect"
    assert read_paths([path], rule=lambda raw: True).turns[0].turn_source == "rule"


def test_a_dash_is_standard_input(out, monkeypatch):
    """``-`` reads the pipe, to which no journals belong."""
    write_block(out, "r1", phase(2))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(out.read_bytes())))
    assert [turn.run_id for turn in read_paths(["-"]).turns] == ["r1"]
