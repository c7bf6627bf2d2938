"""Journals for tests, as processes write them: whole ones, dead ones, fragments, runs in one file."""

import subprocess
import sys

from turntrace.core.attribution import attribute
from turntrace.core.codec import journal as lines
from turntrace.core.codec.encode import encode_block
from turntrace.core.model import Turn
from turntrace.files.out import fragment_path, journal_path

__all__ = [
    "TRACE",
    "block",
    "dead_pid",
    "header",
    "phase",
    "root_end",
    "turn_lines",
    "write_fragment",
    "write_journal",
]

TRACE = "ab" * 16
START_NS = 1_700_000_000_000_000_000
MS = 1_000_000


def dead_pid():
    """The number of a process that ran and is gone."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def turn(run_id, *, trace_id=TRACE, **fields):
    """A turn of a run; its root has the id 1."""
    return Turn(
        run_id=run_id, trace_id=trace_id, span_id=f"{1:016x}", started_ns=START_NS, agent="a", **fields
    )


def header(run_id, pid, *, fragment=False, **fields):
    """The first line of a journal."""
    return lines.header_line(turn(run_id, **fields), pid=pid, fragment=fragment)


def phase(span_id, *, name="tool_execution", parent=1, at=(1, 2), **fields):
    """The line of a phase that ended."""
    start_ns, end_ns = (START_NS + ms * MS for ms in at)
    if name == "tool_execution":
        fields.setdefault("tool", f"t{span_id}")
    return lines.span_line(name, name or "work", span_id, parent, 1, start_ns, end_ns, **fields)


def root_end(run_id, *, at=10, **fields):
    """The line of a root that ended."""
    return lines.root_line(turn(run_id, completed_ns=START_NS + at * MS, root_name="turn", **fields))


def turn_lines(run_id, pid, *spans, **fields):
    """The lines of a turn whose root never ended."""
    return [header(run_id, pid, **fields), *(spans or (phase(2),))]


def write_journal(out, run_id, pid, *spans, **fields):
    """A journal beside ``out``."""
    path = journal_path(out, run_id)
    path.write_bytes(b"".join(turn_lines(run_id, pid, *spans, **fields)))
    return path


def write_fragment(out, pid, *spans, trace_id=TRACE):
    """A fragment of a trace beside ``out``."""
    path = fragment_path(out, int(trace_id, 16), pid)
    path.write_bytes(header(f"part-{pid}", pid, fragment=True, trace_id=trace_id) + b"".join(spans))
    return path


def block(turn):
    """The lines of a turn's block."""
    attribution = attribute(
        turn.spans, started_ns=turn.started_ns, completed_ns=turn.completed_ns, root_id=turn.span_id
    )
    return encode_block(turn, attribution)
