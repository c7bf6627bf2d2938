"""Markdown, tab-separated values, the tree, the critical path and the report object."""

import dataclasses
import json
import time

import pytest

from report.turns import MS, example, span, turn
from turntrace.core.attribution import attribute
from turntrace.core.model import Span
from turntrace.report.blocks import Heading, Pointer, Pointers
from turntrace.report.case import examine
from turntrace.report.critical import critical_table
from turntrace.report.markdown import markdown
from turntrace.report.rounding import SECONDS
from turntrace.report.strings import UNKNOWN, Data
from turntrace.report.text import text
from turntrace.report.tree import tree_table
from turntrace.report.tsv import tsv
from turntrace.report.turn_report import TurnReport
from turntrace.report.view import turn_view

MARKDOWN = """\
### `demo-agent` · `gpt-demo` · `ok`

8.420 s wall · 7.220 s active (without waiting for you)

4 rounds · 4 model calls, 1 retried · 3 tool calls · 18,240 tokens in (66 % cached) · 214 out

| Where the turn went | wall s | % | calls | busy | critical | |
|---|---:|---:|---:|---:|---:|---|
| generation | 3.480 | 41.3 | 4 | 3.480 | 3.480 | 61 tokens/s |
| tool\\_execution | 1.390 | 16.5 | 3 | 2.260 | 1.390 | up to 2 at once |
| &nbsp;&nbsp;`search` | 0.905 | 10.7 | 1 | 1.340 | 1.340 |  |
| &nbsp;&nbsp;`fetch` | 0.435 | 5.2 | 1 | 0.870 | 0 | hidden behind `search` |
"""


def test_markdown_of_the_example():
    """The same figures as a table that GitHub renders; findings are a table too."""
    out = markdown(turn_view(examine(example())))
    assert out.startswith(MARKDOWN)
    assert "|  | **8.420** | **100.0** |  |  | **8.420** | accounted for 99.3 % |\n" in out
    assert (
        "\n| 1 | retry\\_wait | one `429` in round 2; nothing else ran while it waited | 1.000 s |\n" in out
    )


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ("a", "`a`"),
        ("a`b", "``a`b``"),
        ("`", "`` ` ``"),
        ("", "`  `"),
        ("a|b", "`a\\x7cb`"),
        (" a", "`  a `"),
    ],
)
def test_code_spans_hold_any_text(raw, code):
    """The fence is longer than any run of backticks inside; edges are padded; pipes are escaped."""
    assert markdown([Heading(title=(Data(raw),))]).startswith(f"### {code}\n")


def test_pointers_in_text_and_markdown():
    """Where the trace is and what comes next; notes go when there is no room, targets are never cut."""
    rows = (
        Pointer(
            name="trace", target=(Data("a.ndjson"),), figures="41 spans, 17 kB", note=", no prompts inside"
        ),
        Pointer(name="next", target=("turntrace report --tree",), note="every span"),
        Pointer(name="", target=("turntrace run",), note="your agent"),
    )
    assert text([Pointers(rows=rows)]) == (
        "trace  a.ndjson                  41 spans, 17 kB, no prompts inside\n"
        "next   turntrace report --tree   every span\n"
        "       turntrace run             your agent\n"
    )
    assert text([Pointers(rows=rows)], width=50).splitlines()[0].endswith("17 kB")
    assert "- trace: `a.ndjson` (41 spans, 17 kB, no prompts inside)\n" in markdown([Pointers(rows=rows)])
    assert "\n- turntrace run (your agent)\n" in markdown([Pointers(rows=rows)])
    assert markdown([]) == "\n"


def test_tsv_rows_are_exact_and_complete():
    """One row a phase, tool and model; the rows without a name add up to the wall."""
    header, *rows = [line.split("\t") for line in "".join(tsv([examine(example())])).splitlines()]
    assert header[:5] == ["run_id", "phase", "name", "count", "wall_share_ns"]
    assert sum(int(row[4]) for row in rows if not row[2]) == 8420 * MS
    assert ["run-1", "tool_execution", "fetch", "1", str(435 * MS), "0"] in [row[:6] for row in rows]


def test_tsv_of_a_turn_without_an_end_leaves_cells_empty():
    """Unknown is empty, not zero, and there is no unattributed row."""
    rows = "".join(tsv([examine(dataclasses.replace(example(), completed_ns=None))]))
    assert "\t4\t\t\t" in rows
    assert "unattributed" not in rows


def test_the_tree_shows_every_span_below_its_parent():
    """Offset, length, exclusive and critical time; what is unusual stands in the note."""
    spans = [
        span("n", None, 0, 800, name="node"),
        span("g", "generation", 100, 500, "n", model="m-1", round=1, outcome="cancelled"),
        span("t", "tool_execution", 500, 900, "n", tool="bash"),
    ]
    case = examine(turn(spans, 1000))
    assert text([tree_table(case, SECONDS)], width=150) == (
        "TREE                                                start s   took s    own s  critical\n"
        "demo-agent                                            0.000    1.000    0.200     0.200\n"
        "  node                                                0.000    0.800    0.100     0.100\n"
        "    generation · cancelled                            0.100    0.400    0.400     0.400"
        "   m-1 · round 1\n"
        "    bash                                              0.500    0.400    0.400     0.300"
        "   outlives its parent\n"
    )


def test_a_long_tree_is_cut_unless_all_is_wanted():
    """200 lines and a count of the rest; --all has no limit."""
    case = examine(turn([span(f"s{n:03}", "plan", n, n + 1) for n in range(300)], 300))
    cut = tree_table(case, SECONDS).rows
    assert len(cut) == 202  # the turn, 200 spans, the rest
    assert cut[-1].label == ("100 more spans",)
    assert len(tree_table(case, SECONDS, everything=True).rows) == 301


def test_a_tree_without_an_end_has_dashes():
    """Wall and critical time are unknown; starts are offsets from the first span."""
    case = examine(dataclasses.replace(example(), started_ns=None, completed_ns=None))
    rows = text([tree_table(case, SECONDS)]).splitlines()
    assert rows[1].split() == ["demo-agent", "0.000", UNKNOWN, UNKNOWN, UNKNOWN]
    assert rows[2].split() == ["prompt_build", "0.000", "0.016", "0.016", UNKNOWN]


@pytest.mark.slow
def test_a_deep_tree_is_neither_recursive_nor_wide():
    """50,000 spans, one inside the other, print in seconds with bounded indentation."""
    depth = 50_000
    spans = [
        Span(
            span_id=f"{n:016x}",
            parent_id=f"{n - 1:016x}" if n else None,
            name="chain",
            phase="plan",
            start_ns=n,
            end_ns=2 * depth - n,
            round=1 if n == 0 else None,
        )
        for n in range(depth)
    ]
    began = time.perf_counter()
    case = examine(dataclasses.replace(turn(spans, 0), started_ns=0, completed_ns=2 * depth))
    out = text([tree_table(case, SECONDS, everything=True)])
    assert f"{depth} deep: plan" in out
    assert max(map(len, out.splitlines())) <= 110
    assert case.rounds[f"{depth - 1:016x}"] == 1
    assert time.perf_counter() - began < 20


def test_the_critical_path_in_order_of_time():
    """Sections from the start to the end, the turn's own among them."""
    rows = text([critical_table(examine(example()), SECONDS)]).splitlines()
    assert rows[1].split() == ["prompt_build", "0.000", "0.016", "0.2", "round", "1"]
    assert rows[6].split() == ["the", "turn", "itself", "2.360", "0.041", "0.5"]
    assert rows[-1].split() == ["8.420", "100.0"]


def test_a_long_critical_path_keeps_the_longest_sections():
    """Fifty sections and the sum of the shorter ones, still in order of time."""
    spans = [span(f"s{n:03}", "plan", n * 10, n * 10 + 10 - n % 7) for n in range(80)]
    case = examine(turn(spans, 800))
    rows = critical_table(case, SECONDS).rows
    assert len(rows) == 51
    assert rows[-1].label[0].endswith("shorter ones")
    assert len(critical_table(case, SECONDS, everything=True).rows) > 80


def test_the_critical_path_of_nothing():
    """A turn without an end has no path; the table is empty and stands."""
    case = examine(dataclasses.replace(example(), completed_ns=None))
    assert critical_table(case, SECONDS).rows == ()


def test_the_report_object():
    """Figures to compute with, the table to print, HTML for a notebook, JSON for programs."""
    report = TurnReport.of(example())
    assert report.wall_ns == 8420 * MS
    assert report.active_ns == 7220 * MS
    assert report.attributed_ns + report.unattributed_ns == report.wall_ns
    assert report.coverage == report.attributed_ns / report.wall_ns
    assert report.phases["generation"].wall_share_ns == 3480 * MS
    assert next(iter(report.phases)) == "generation"
    assert len(report.spans) == len(report.turn.spans) == 26
    assert report.usage.output_tokens == 214
    assert str(report).startswith("demo-agent · gpt-demo · ok ")
    assert report._repr_html_().startswith("<div><p><b>demo-agent · gpt-demo")
    assert repr(report) == "<TurnReport 'demo-agent': 8420000000 ns, 26 spans>"
    assert json.loads(report.json())["turns"][0]["run_id"] == "run-1"
    assert report.case.turn is report.turn


def test_the_report_object_takes_an_attribution():
    """What was computed already is not computed again."""
    record = example()
    made = attribute(record.spans, started_ns=record.started_ns, completed_ns=None, root_id="root")
    report = TurnReport(record, made)
    assert report.attribution is made
    assert "no end" in repr(report)
    assert report.coverage is None


def test_rings_of_parents_end():
    """Spans that are each other's parent have no round of an ancestor, and the walk ends."""
    spans = [span("a", "plan", 0, 10, "b"), span("b", "plan", 2, 8, "a")]
    case = examine(turn(spans, 10))
    assert case.rounds == {"a": None, "b": None}
