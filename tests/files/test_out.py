"""Names and placeholders of a trace, and what lies beside it."""

import os

import pytest

from turntrace.files.out import (
    default_out,
    expand,
    fragment_path,
    journal_path,
    newest,
    parts_of,
    safe_name,
)


def test_placeholders_are_expanded_and_nothing_else():
    """Known placeholders become values; other braces stay."""
    text = expand("{run_id}-{pid}-{agent}-{other}.ndjson", run_id="r1", agent="a b/../c")
    assert text == f"r1-{os.getpid()}-a-b-..-c-{{other}}.ndjson"
    assert "{" not in expand(default_out(), run_id="r", agent=None)


@pytest.mark.parametrize("name", ["", "..", "/", "../../x", "a/b", "-rf", "\x00"])
def test_a_name_from_data_never_leaves_the_folder(name):
    """Whatever an agent is called, its file is one path component that hides nothing."""
    safe = safe_name(name)
    assert "/" not in safe
    assert safe
    assert not safe.startswith((".", "-"))


def test_parts_are_the_journals_of_this_file(tmp_path):
    """Journals and fragments are found by the name of their trace."""
    out = tmp_path / "t.ndjson"
    journal, fragment = journal_path(out, "run_1"), fragment_path(out, 0xAB, 7)
    for path in (journal, fragment, tmp_path / "u.ndjson.run_1.part", tmp_path / "t.ndjson.lock"):
        path.write_text("")
    assert parts_of(out) == sorted([journal, fragment])
    assert fragment.name == f"t.ndjson.{'0' * 30}ab.7.part"
    assert parts_of(tmp_path / "none" / "t.ndjson") == []


def test_newest_counts_the_journal_of_a_live_turn(tmp_path):
    """The trace that was written last wins, its journal counted."""
    assert newest(tmp_path) is None
    old, new = tmp_path / "a.ndjson", tmp_path / "b.ndjson"
    for at, path in enumerate((old, new, journal_path(old, "r"))):
        path.write_text("")
        os.utime(path, (at, at))
    assert newest(tmp_path) == old


def test_a_journal_that_goes_meanwhile_does_not_hide_its_trace(tmp_path, monkeypatch):
    """A turn that is closed between the listing and the look at the time counts by its trace."""
    trace = tmp_path / "a.ndjson"
    trace.write_text("")
    monkeypatch.setattr("turntrace.files.out.parts_of", lambda out: [tmp_path / "gone.part"])
    assert newest(tmp_path) == trace
