"""The report a person sees: the golden layout at 100 and 80 columns, piped and on a terminal."""

import dataclasses

import pytest

from report.turns import MS, example, span, turn
from turntrace.core.model import Span, Usage, Warn
from turntrace.report.case import examine
from turntrace.report.moments import first_token_parts, moments
from turntrace.report.rounding import SECONDS
from turntrace.report.strings import UNKNOWN, cells
from turntrace.report.text import lines, text
from turntrace.report.view import Choice, turn_view

GOLDEN = """\
demo-agent · gpt-demo · ok              8.420 s wall · 7.220 s active (without waiting for you)
4 rounds · 4 model calls, 1 retried · 3 tool calls · 18,240 tokens in (66 % cached) · 214 out

WHERE THE TURN WENT              wall s      %   calls    busy   critical
generation        ██████████▎     3.480   41.3       4   3.480      3.480   61 tokens/s
tool_execution    ████▏           1.390   16.5       3   2.260      1.390   up to 2 at once
  search          ██▋             0.905   10.7       1   1.340      1.340
  fetch           █▎              0.435    5.2       1   0.870      0       hidden behind search
  edit            ▏               0.050    0.6       1   0.050      0.050
permission_wait   ███▌            1.200   14.3       1   1.200      1.200   human
retry_wait        ██▉             1.000   11.9       1   1.000      1.000   429 in round 2
process_wait      █▊              0.600    7.1       1   0.600      0.600
compaction        █▌              0.510    6.1       1   0.510      0.510
5 more phases     ▌               0.180    2.1      15   0.180      0.180   --all shows them
unattributed      ▏               0.060    0.7                      0.060   0.041 after search
                                  ─────  ─────                      ─────
                                  8.420  100.0                      8.420   accounted for 99.3 %
first token 0.310 s (prompt 0.020, connect 0.060, model 0.230) · visible 0.350 · first tool 1.020

FIX FIRST (on the critical path, yours to change)                                   saves up to
 1  retry_wait   one 429 in round 2; nothing else ran while it waited                   1.000 s
 2  compaction   one compaction kept the turn waiting                                   0.510 s
 3  search       ran 0.470 s after fetch was done                                       0.470 s
"""

GOLDEN_80 = """\
demo-agent · gpt-demo · ok                         8.420 s wall · 7.220 s active
4 rounds · 4 model calls, 1 retried · 3 tool calls
18,240 tokens in (66 % cached) · 214 out

WHERE THE TURN WENT              wall s      %   calls    busy   critical
generation        ██████████▎     3.480   41.3       4   3.480      3.480
tool_execution    ████▏           1.390   16.5       3   2.260      1.390
  search          ██▋             0.905   10.7       1   1.340      1.340
  fetch           █▎              0.435    5.2       1   0.870      0
  edit            ▏               0.050    0.6       1   0.050      0.050
permission_wait   ███▌            1.200   14.3       1   1.200      1.200
retry_wait        ██▉             1.000   11.9       1   1.000      1.000
process_wait      █▊              0.600    7.1       1   0.600      0.600
compaction        █▌              0.510    6.1       1   0.510      0.510
5 more phases     ▌               0.180    2.1      15   0.180      0.180
unattributed      ▏               0.060    0.7                      0.060
                                  ─────  ─────                      ─────
                                  8.420  100.0                      8.420
first token 0.310 s · visible 0.350 · first tool 1.020

FIX FIRST (on the critical path, yours to change)                    saves up to
 1  retry_wait   one 429 in round 2; nothing else ran while it waited    1.000 s
 2  compaction   one compaction kept the turn waiting                    0.510 s
 3  search       ran 0.470 s after fetch was done                        0.470 s
"""

BARS = str.maketrans("█▏▎▍▌▋▊▉", "        ")


def view(record, **choice):
    """The blocks of a turn."""
    return turn_view(examine(record), Choice(**choice))


def shown(record, *, width=100, bars=False, **choice):
    """The text of a turn."""
    return text(view(record, **choice), width=width, bars=bars)


def test_the_golden_report():
    """On a terminal of 100 columns the example looks exactly so."""
    assert shown(example(), bars=True) == GOLDEN


def test_at_80_columns_the_notes_go_and_no_number_does():
    """The narrow report has the same figures; notes and breakdowns are gone."""
    assert shown(example(), width=80, bars=True) == GOLDEN_80


def test_piped_the_rows_are_the_same_without_bars():
    """Only the bars differ between a terminal and a pipe."""
    piped = shown(example())
    assert piped == "\n".join(line.rstrip() for line in GOLDEN.translate(BARS).split("\n"))


@pytest.mark.parametrize("width", [40, 60, 79, 95, 100, 160])
def test_no_line_is_wider_than_the_window(width):
    """Whatever the width, tables and titles keep to it as far as their figures fit."""
    least = 59  # the label and the figures, which never go
    for line in shown(example(), width=width, bars=True).splitlines():
        assert cells(line) <= max(width, least)


def test_below_the_width_of_the_figures_the_bars_go_first():
    """At 60 columns the table has labels and figures and nothing else."""
    narrow = shown(example(), width=60, bars=True)
    rows = [line.split() for line in narrow.splitlines()]
    assert ["retry_wait", "1.000", "11.9", "1", "1.000", "1.000"] in rows
    assert "█" not in narrow


def test_bars_are_in_proportion():
    """A turn with one large phase shortens all bars alike; none is longer than its room."""
    spans = [span("a", "generation", 0, 800), span("b", "plan", 800, 1000)]
    rows = shown(turn(spans, 1000), bars=True).splitlines()[3:5]
    assert [row.count("█") for row in rows] == [14, 3]
    assert "▌" in rows[1]


def test_the_longest_call_says_what_hid_a_tool():
    """Of several calls of a hidden tool the longest one counts."""
    spans = [
        span("a", "tool_execution", 0, 100, tool="slow"),
        span("x", "tool_execution", 0, 50, tool="fast"),
        span("b", "plan", 100, 400),
        span("y", "tool_execution", 100, 350, tool="fast"),
    ]
    assert "hidden behind plan" in shown(turn(spans, 400))


def test_long_tool_names_take_the_room_of_the_bars():
    """A long name shortens the bars before it is cut itself."""
    record = turn([span("a", "tool_execution", 0, 900, tool="mcp__github__search_code")], 1000)
    wide = shown(record, bars=True)
    assert "  mcp__github__search_code  ████" in wide
    cut = turn([span("a", "tool_execution", 0, 900, tool="x" * 60)], 1000)
    assert "  " + "x" * 28 + "…   0.900" in shown(cut, bars=True)


def test_large_figures_widen_their_column():
    """Hours and millions keep their digits apart from their neighbours."""
    row = shown(turn([span("a", "generation", 0, 36_000_000)], 36_000_000)).splitlines()[3]
    assert row.split()[:6] == ["generation", "36000.000", "100.0", "1", "36000.000", "36000.000"]


def test_a_short_turn_is_shown_in_milliseconds():
    """The unit follows the length of the turn, in the table, the title and the moments."""
    out = shown(turn([span("a", "generation", 0, 3)], 4, first_token_ns=example().started_ns + 2 * MS))
    assert "4.000 ms wall" in out
    assert "wall ms" in out
    assert "first token 2.000 ms (model 2.000)" in out


def test_everything_unfolds_the_small_phases():
    """--all shows each phase below 1 %."""
    out = shown(example(), everything=True)
    assert "more phases" not in out
    for name in ("provider_connect", "prompt_build", "tool_queue", "verification", "tool_partition"):
        assert f"\n{name} " in out


def test_a_single_small_phase_is_not_folded():
    """Folding one row would hide its name and save nothing."""
    out = shown(turn([span("a", "generation", 0, 990), span("b", "plan", 990, 995)], 1000))
    assert "\nplan " in out
    assert "more" not in out


def test_unknown_tokens_are_a_dash_with_what_is_known():
    """A partial sum is never printed as a total, and a reported zero is a zero."""
    usage = (
        Usage(span_id="a", input_tokens=10, output_tokens=0),
        Usage(span_id="b", provenance="missing"),
    )
    spans = [span("a", "generation", 0, 500), span("b", "generation", 500, 1000)]
    out = shown(turn(spans, 1000, usage=usage, counters={"model_requests": 2}))
    assert (
        f"2 model calls · {UNKNOWN} tokens in (10 from 1 of 2 calls) · {UNKNOWN} out (0 from 1 of 2 calls)"
        in out
    )
    nothing = shown(turn(spans, 1000, usage=usage[1:], counters={"model_requests": 1}))
    assert f"1 model call · {UNKNOWN} tokens in · {UNKNOWN} out" in nothing


def test_cached_share_needs_a_known_cache():
    """Unknown cached tokens print no share; zero input prints none either."""
    spans = [span("a", "generation", 0, 1000)]
    unknown = turn(spans, 1000, usage=(Usage(span_id="a", input_tokens=10, output_tokens=1),))
    assert "10 tokens in · 1 out" in shown(unknown)
    empty = Usage(span_id="a", input_tokens=0, output_tokens=1, cached_input_tokens=0)
    assert "0 tokens in · 1 out" in shown(turn(spans, 1000, usage=(empty,)))


def test_a_turn_without_an_end_shows_what_is_known():
    """No wall, no shares: counts, busy and exclusive times, in the order of the vocabulary or of time."""
    out = shown(dataclasses.replace(example(), completed_ns=None, status="interrupted"))
    assert "demo-agent · gpt-demo · interrupted" in out
    assert "wall unknown: the turn has no end" in out
    assert "generation                             4    3.480     0.900    0.940" in out
    assert "FIX FIRST" not in out


def test_an_empty_turn_has_an_unattributed_row():
    """With no span and no time the table still stands."""
    out = shown(turn([], 0))
    assert [line.split() for line in out.splitlines() if "unattributed" in line] == [
        ["unattributed", "0", "0.0", "0"]
    ]
    assert "0.000 ms wall" in out


def test_time_in_structure_is_named():
    """The unattributed row names the structure that holds most of it."""
    spans = [span("n", None, 0, 900, name="node tools"), span("g", "generation", 100, 200, "n")]
    assert "0.800 in node tools" in shown(turn(spans, 1000))


def test_a_tool_beside_structure_only_is_hidden_behind_nothing():
    """Where the turn waited for structure, no phase is named as the reason."""
    spans = [span("t", "tool_execution", 0, 400, tool="fetch"), span("n", None, 0, 1000, name="node")]
    [row] = [line.split() for line in shown(turn(spans, 1000)).splitlines() if "fetch" in line]
    assert row == ["fetch", "0.400", "40.0", "1", "0.400", "0"]


def test_a_gap_before_the_first_phase_is_named_by_what_follows():
    """Where nothing came before, the note says what came after."""
    assert "0.400 before plan" in shown(turn([span("a", "plan", 400, 1000)], 1000))
    assert "0.400" not in shown(turn([], 1000)).splitlines()[3]


def test_models_are_listed_when_there_are_several():
    """One model needs no row of its own; two do, and spans without a name are a row too."""
    spans = [
        span("a", "generation", 0, 500, model="m-1"),
        span("b", "generation", 500, 800, model="m-2"),
        span("c", "generation", 800, 1000),
    ]
    out = shown(turn(spans, 1000))
    for label in ("  m-1 ", "  m-2 ", "  unnamed "):
        assert f"\n{label}" in out
    assert "m-1" not in shown(turn(spans[:1], 1000)).split("\n", 3)[3]


def test_small_tools_are_folded():
    """Beyond the third tool those below 1 % of the wall share a row; their sum is the phase's."""
    tools = [span(f"t{n}", "tool_execution", n * 4, n * 4 + 4, tool=f"tool-{n}") for n in range(5)]
    out = shown(turn([*tools, span("big", "tool_execution", 100, 1000, tool="big")], 1000))
    assert "\n  3 more " in out
    assert "\n  tool-1 " in out
    assert "tool-1" in shown(turn(tools, 1000), everything=True)


def test_a_long_breakdown_of_the_first_token_wraps():
    """With room for notes none is dropped; the line is broken between facts."""
    phases = ["prompt_build", "provider_queue", "provider_connect", "retry_wait", "guardrail", "generation"]
    spans = [span(phase, phase, at * 100, at * 100 + 100) for at, phase in enumerate(phases)]
    start = example().started_ns
    record = turn(spans, 1000, first_token_ns=start + 590 * MS, first_visible_ns=start + 600 * MS)
    lines = shown(record).splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("first token"))
    first, second = lines[at : at + 2]
    names = [part.rsplit(" ", 1)[0] for part in first.partition("(")[2].split(", ")]
    assert first.startswith("first token 0.590 s (prompt 0.100, ")
    assert names == ["prompt", "queue", "connect", "model", "retry", "guardrail"]
    assert second == "visible 0.600"


def test_moments_need_a_start():
    """Without a start there are no offsets, without a first token nothing to split."""
    assert moments(examine(dataclasses.replace(example(), started_ns=None)), SECONDS) is None
    assert first_token_parts(examine(turn([], 10))) == {}


def test_warnings_are_counted_by_code():
    """A reader sees when to distrust a figure."""
    record = turn([span("a", "plan", 0, 10), span("b", "plan", 5, 20, "a")], 1000)
    record = dataclasses.replace(record, warnings=(Warn(code="folded", message="two spans, one call"),))
    assert "warnings · 1 x detached · 1 x folded" in shown(record)


def test_a_phase_that_is_no_word_of_ours_is_shown_as_data():
    """Files may hold any phase name."""
    assert "\nmade\\x1bup " in shown(turn([span("a", "made\x1bup", 0, 500)], 1000))


def test_spans_named_other_keep_their_own_name():
    """A span that fits no phase is told by its name."""
    spans = [Span(span_id="a", parent_id=None, name="sync state", phase="other", start_ns=1, end_ns=2)]
    out = shown(dataclasses.replace(turn(spans, 0), started_ns=0, completed_ns=4), by="span")
    assert "\nsync state " in out


def test_styles_mark_titles_bars_and_notes():
    """A terminal gets pieces with styles; joined they are the plain text."""
    styled = list(lines(view(example()), bars=True))
    assert styled[0][0] == ("demo-agent · gpt-demo · ok", "bold")
    styles = {style for line in styled for _, style in line}
    kinds = {"model", "tool", "human", "process", "agent", "io"}
    assert styles == {"", "bold", "dim", "bar", "warn", *kinds}


def test_bars_are_coloured_by_who_spends_the_time():
    """The model, tools, a person, a process, the agent itself, the network; what is nobody's has a colour of its own."""
    found = {}
    for line in lines(view(example(), everything=True), bars=True):
        if len(line) > 2 and line[0][0].strip():
            found.setdefault(line[0][0].strip(), line[1][1])
    expected = {
        "generation": "model",
        "tool_execution": "tool",
        "search": "tool",
        "permission_wait": "human",
        "retry_wait": "io",
        "process_wait": "process",
        "compaction": "agent",
        "unattributed": "bar",
    }
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize("by", ["tool", "model"])
def test_by_name_keeps_the_rest_as_one_row(by):
    """--by tool and --by model end in everything else and unattributed."""
    rows = shown(example(), by=by).splitlines()
    labels = [row[:18].strip() for row in rows[4:]]
    expected = {"tool": ["search", "fetch", "edit"], "model": ["gpt-demo"]}[by]
    assert labels[: len(expected) + 2] == [*expected, "everything else", "unattributed"]
    assert "FIX FIRST" not in "\n".join(rows)


def test_by_tool_without_tools_is_everything_else():
    """A turn without tools still adds up."""
    out = shown(turn([span("a", "plan", 0, 500)], 1000), by="tool")
    assert "\neverything else " in out


def test_by_span_shows_the_largest_and_adds_up_the_rest():
    """--top says how many; their own time stands beside the share; --all shows every span."""
    out = shown(example(), by="span", top=2)
    assert "calls     own" in out
    assert [row.split()[0] for row in out.splitlines()[4:7]] == ["permission_wait", "retry_wait", "24"]
    assert "more spans" not in shown(example(), by="span", everything=True)


def test_by_round_shows_model_tools_and_cached_share():
    """Each round with its tokens; what lies outside rounds has its row."""
    rows = shown(example(), by="round").splitlines()[3:]
    assert rows[1].split() == [
        "round",
        "1",
        "2.360",
        "28.0",
        "4,000",
        "50",
        "%",
        "gpt-demo",
        "search,",
        "fetch",
    ]
    assert rows[5].split()[:3] == ["outside", "rounds", "0.530"]
    assert rows[-1].split()[:2] == ["8.420", "100.0"]


def test_by_round_prints_dashes_for_what_is_unknown():
    """No model, no tokens: a dash, not a zero."""
    out = shown(turn([span("a", "generation", 0, 1000, round=1)], 1000), by="round")
    assert f"round 1             1.000  100.0          {UNKNOWN}       {UNKNOWN}           {UNKNOWN}" in out
    usage = (Usage(span_id="a", input_tokens=5, output_tokens=1),)
    out = shown(turn([span("a", "generation", 0, 1000, round=1)], 1000, usage=usage), by="round")
    assert f"100.0          5       {UNKNOWN}" in out


def test_a_title_that_leaves_no_room_puts_its_figures_below():
    """The figures are never cut for a long name."""
    out = shown(turn([], 1000, agent="a" * 90)).splitlines()
    assert out[1] == "1.000 s wall"
