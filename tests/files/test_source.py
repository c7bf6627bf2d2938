"""Inputs as they come: pipes, compressed files, cut ones, lines without an end."""

import gzip
import io
import sys
import zlib

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from turntrace.errors import MissingExtraError
from turntrace.files.divided import Divided
from turntrace.files.source import SNIFF_BYTES, bounded_lines, plain

TEXT = b"".join(b'{"type":"counter","name":"n%d","value":%d}\n' % (number, number) for number in range(5000))


class Dripping(io.RawIOBase):
    """A pipe that gives a few bytes at a time."""

    def __init__(self, data, size):
        self.data, self.size = io.BytesIO(data), size

    def readable(self):
        return True

    def readinto(self, buffer):
        data = self.data.read(min(self.size, len(buffer)))
        buffer[: len(data)] = data
        return len(data)


def read(data, size=None):
    """What an input holds, and what was said of it."""
    said = []
    file = io.BytesIO(data) if size is None else io.BufferedReader(Dripping(data, size))
    source, head = plain(file, said.append)
    found = source.read()
    assert found[: len(head)] == head
    return found, said


PACKED = {
    "plain": TEXT,
    "gzip": gzip.compress(TEXT),
    "gzip in members": gzip.compress(TEXT[:7000]) + gzip.compress(TEXT[7000:]),
    "gzip and padding": gzip.compress(TEXT) + b"\0" * 600,
    "zstd": zstandard.compress(TEXT),
    "zstd in frames": zstandard.compress(TEXT[:7000]) + zstandard.compress(TEXT[7000:]),
    "zstd in gzip": gzip.compress(zstandard.compress(TEXT)),
}


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("size", [None, 1000])
def test_what_is_compressed_is_read_as_if_it_were_not(name, size):
    """From a file and from a pipe, in one piece or several."""
    assert read(PACKED[name], size) == (TEXT, [])


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_what_is_cut_is_read_as_far_as_it_goes(pack):
    """A download that broke off."""
    packed = pack(b"".join(zlib.crc32(b"%d" % number).to_bytes(4) for number in range(200_000)))
    found, said = read(packed[: len(packed) * 3 // 4])
    assert len(found) > 200_000
    assert said == ["the compressed input is cut"]


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_what_is_damaged_ends_at_the_damage(pack):
    """What was before it is read."""
    packed = pack(TEXT)
    found, said = read(packed + b"noise")
    assert found == TEXT
    assert len(said) == 1
    assert "damaged" in said[0]


def test_a_bomb_in_a_bomb_is_not_followed_for_ever():
    """Three layers are opened; the fourth is what it is."""
    packed = TEXT
    for _ in range(4):
        packed = gzip.compress(packed, mtime=0)  # else the second of the clock is inside
    assert read(packed) == (gzip.compress(TEXT, mtime=0), [])


def test_zstd_without_its_package_says_which(monkeypatch):
    """The error names the extra."""
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingExtraError, match=r"turntrace\[zstd\]"):
        read(PACKED["zstd"])


@given(st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\r\n", b"\n\n"])), st.integers(1, 9))
def test_the_lines_are_the_files_however_a_pipe_gives_them(pieces, size):
    """Looking at the start of a pipe loses no byte and moves no line end."""
    data = b"".join(pieces)
    source, _ = plain(io.BufferedReader(Dripping(data, size)), pytest.fail)
    assert list(bounded_lines(source, 1 << 20)) == io.BytesIO(data).readlines()


def test_a_line_that_does_not_end_is_cut():
    """The rest of it is passed over; the next line is whole."""
    data = b"short\n" + b"x" * 25 + b"\nnext\n" + b"y" * 25
    assert list(bounded_lines(io.BytesIO(data), 10)) == [
        b"short\n",
        b"x" * 10 + b"\n",
        b"next\n",
        b"y" * 10 + b"\n",
    ]
    assert list(bounded_lines(io.BytesIO(b"x" * 9 + b"\n"), 10)) == [b"x" * 9 + b"\n"]


def test_a_long_input_is_looked_at_once():
    """The first look is a part; what follows comes from the input itself."""
    data = b"z" * (3 * SNIFF_BYTES + 7)
    assert read(data) == (data, [])


@given(st.lists(st.tuples(st.booleans(), st.binary(max_size=6))))
def test_each_reader_has_its_lines_in_their_places(lines):
    """Lines and offsets are the input's, whoever reads; blanks stand for what is another's."""
    given_lines = [(b"o" if other else b"m") + data.replace(b"\n", b"") + b"\n" for other, data in lines]
    divided = Divided(given_lines, lambda line: line.startswith(b"o"))
    mine, others = list(divided.mine()), list(divided.others())
    assert divided.is_mixed is any(other for other, _ in lines)
    assert [len(line) for line in mine] == [len(line) for line in given_lines]
    for index, (other, _) in enumerate(lines):
        assert mine[index].isspace() if other else mine[index] == given_lines[index]
        assert (others[index] == given_lines[index]) if other else not others or others[index].isspace()
