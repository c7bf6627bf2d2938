"""The page about the file names every field that is written and every issue that is reported."""

import json
import re
from dataclasses import replace
from pathlib import Path

from core.codec.generated import encoded
from core.codec.test_encode import TURN, span
from turntrace.core.codec.event_fields import EVENT_FIELDS
from turntrace.core.codec.journal import header_line, span_line, span_start_line
from turntrace.core.contract import ISSUE_SEVERITY

PAGE = (Path(__file__).parents[3] / "docs" / "contract.md").read_text()
SECTIONS = dict(re.findall(r"^### `?(\w+)`?[^\n]*\n(.*?)(?=^##)", PAGE, re.MULTILINE | re.DOTALL))


def test_every_issue_is_explained():
    """The table of issues has each code once, with its severity."""
    table = re.findall(r"^\| `(\w+)` \| (error|warning|info) \|", PAGE, re.MULTILINE)
    assert dict(table) == ISSUE_SEVERITY
    assert len(table) == len(ISSUE_SEVERITY)


def test_every_key_is_explained():
    """Each key of each line of a block is named in the section of its type."""
    every = span(9, "tool_execution", 1, 1500, parent_id="0000000000000001", round=1, tool="t", model="m",
                 agent="a", run_id="r", parent_source="inferred", attributes={"error.type": "X"})  # fmt: skip
    turn = replace(TURN, spans=(*TURN.spans, every, replace(every, span_id="00000000000000bb", phase=None)))
    sections = {"mark": "mark", "gap": "mark", "warning": "mark"}
    for line in encoded(turn):
        fields = json.loads(line)
        kind = fields["type"]
        section = SECTIONS["prefix_hash" if kind in EVENT_FIELDS else sections.get(kind, kind)]
        assert not {key for key in fields if f"`{key}`" not in section and key != "type"}, kind


def test_every_event_field_is_explained():
    """The fields of zero's events are listed."""
    for fields in EVENT_FIELDS.values():
        assert all(f"`{key}`" in SECTIONS["prefix_hash"] for key in fields)


def test_every_journal_key_is_explained():
    """What only journals have is named in their section."""
    section = PAGE.partition("## Journals")[2].partition("## Reading")[0]
    lines = (
        header_line(TURN, pid=1, pid_started=2, fragment=True),
        span_start_line(None, "x", 1, 2, 3, 4),
        span_line(None, "x", 1, 2, 3, 4, 5),
    )
    for line in lines:
        assert not {key for key in json.loads(line) if f"`{key}`" not in section + SECTIONS["trace"]}
