"""Names, placeholders and preparation of a trace file."""

import os
import stat

import pytest

from turntrace.errors import TraceWriteError
from turntrace.files.out import (
    default_out,
    expand,
    fragment_path,
    journal_path,
    newest,
    parts_of,
    prepare,
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


def test_prepare_makes_folders_and_a_private_file(tmp_path):
    """The folder is made, the file is 0600, and .turntrace ignores itself."""
    out = tmp_path / ".turntrace" / "t.ndjson"
    prepare(out, truncate=False)
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert (out.parent / ".gitignore").read_text() == "*\n"


def test_truncate_empties_the_file_and_deletes_its_journals_only(tmp_path):
    """A new run never mistakes a stale trace or journal for its own; other files stay."""
    out, other = tmp_path / "t.ndjson", tmp_path / "t2.ndjson.x.part"
    out.write_text("old\n")
    part = journal_path(out, "run_1")
    part.write_text("{}\n")
    other.write_text("{}\n")
    prepare(out, truncate=True)
    assert out.read_text() == ""
    assert not part.exists()
    assert other.exists()


def test_append_mode_keeps_what_is_there(tmp_path):
    """Without truncate nothing is lost."""
    out = tmp_path / "t.ndjson"
    out.write_text("old\n")
    prepare(out, truncate=False)
    assert out.read_text() == "old\n"


def test_what_is_no_regular_file_is_an_error_that_names_it(tmp_path):
    """A folder, a pipe and a path below a file are refused with the path and the reason."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    (tmp_path / "file").write_text("")
    for path in (tmp_path, fifo, tmp_path / "file" / "x"):
        with pytest.raises(TraceWriteError) as caught:
            prepare(path, truncate=True)
        assert str(path) in str(caught.value)


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
