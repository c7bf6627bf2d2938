"""The file of a trace before anything is recorded."""

import os
import stat

import pytest

from turntrace.errors import TraceWriteError
from turntrace.files.out import fragment_path, journal_path
from turntrace.files.preparation import prepare


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


def test_a_name_without_room_for_those_beside_it(tmp_path):
    """It is refused before the agent runs: its journal could not be made, and nobody could be told later."""
    longest = os.pathconf(tmp_path, "PC_NAME_MAX")
    with pytest.raises(TraceWriteError, match="File name too long"):
        prepare(tmp_path / ("x" * (longest - 47)), truncate=True)
    assert list(tmp_path.iterdir()) == []
    out = tmp_path / ("x" * (longest - 48))
    prepare(out, truncate=True)
    fragment_path(out, 1, 4_194_304).touch()
