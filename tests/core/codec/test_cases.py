"""The traces written by hand: what zero makes of each, and what strict and lenient reading must."""

import io
import json
from pathlib import Path

import pytest

from turntrace.core.codec.compat import read_compat
from turntrace.core.codec.decode import read_blocks, verdict_on
from turntrace.core.codec.keys import event_keys, missing_keys
from turntrace.core.contract import REQUIRED_EVENT_KEYS
from turntrace.errors import TraceReadError

FOLDER = Path(__file__).parents[2] / "data" / "ndjson"
SAMPLES = json.loads((FOLDER / "index.json").read_text())["samples"]
each_sample = pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["file"])


def data_of(sample) -> bytes:
    """The bytes of a sample."""
    return (FOLDER / sample["file"]).read_bytes()


def test_every_file_is_listed():
    """The index names each file of the folder once."""
    assert sorted(path.name for path in FOLDER.glob("*.ndjson")) == sorted(s["file"] for s in SAMPLES)


@each_sample
@pytest.mark.parametrize("mode", ["strict", "lenient"])
def test_our_reading(sample, mode):
    """Strict and lenient reading come to the recommended verdict, with exactly these issues."""
    strict = mode == "strict"
    blocks = list(read_blocks(io.BytesIO(data_of(sample)), strict=strict))
    assert sample["recommended"][mode] == verdict_on(blocks, strict=strict)
    codes = {issue.code for block in blocks for issue in block.issues}
    assert sorted(sample["recommended"]["issues"]) == sorted(codes)


@each_sample
def test_zero_reading(sample):
    """The compatible reader returns what zero's own does, its errors word for word."""
    zero = dict(sample["zero"])
    del zero["keys"], zero["missing_required"]
    assert zero == zero_result(data_of(sample))


def zero_result(data: bytes):
    """What the compatible reader makes of a file, in the words of the index."""
    try:
        trace = read_compat(data)
    except TraceReadError as error:
        return {"ok": False, "error": str(error)}
    return {
        "ok": True,
        "wall_ns": trace.wall_ns,
        "attributed_ns": trace.attributed_ns,
        "coverage": trace.coverage,
        "spans": [
            {
                "name": span.name,
                "duration_ns": span.duration_ns,
                "exclusive_ns": span.exclusive_ns,
                "parent": span.parent,
            }
            for span in trace.spans
        ],
        "counters": [[name, value] for name, value in trace.counters],
        "n_prefix": len(trace.prefix_hashes),
        "n_budget": len(trace.output_budgets),
        "n_task_state": len(trace.task_states),
    }


@each_sample
def test_event_keys(sample):
    """Event keys and missing ones are those of zero's harness."""
    lines = data_of(sample).split(b"\n")
    assert sample["zero"]["keys"] == event_keys(lines)
    assert sample["zero"]["missing_required"] == missing_keys(REQUIRED_EVENT_KEYS, lines)
