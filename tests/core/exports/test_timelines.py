"""Perfetto and speedscope: what shares a line nests, each span stands once, totals are the report's."""

import json
from collections import Counter, defaultdict
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings

from recorded_cases import PATHS, cases_of
from report.random_turns import turns
from report.turns import MS, START_NS, example, span, turn
from turntrace.core.exports.chrome_trace import chrome_events, origin_ns
from turntrace.core.exports.lanes import label, laid_out
from turntrace.core.exports.speedscope import speedscope
from turntrace.core.model import Mark
from turntrace.report.case import examine

SPEEDSCOPE = json.loads((Path(__file__).parents[2] / "data" / "speedscope-schema.json").read_text())
"""The JSON Schema in the npm package speedscope 1.25.0 (MIT licence)."""
each_case = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)


def assert_nested(bars):
    """Any two bars of a line, in order, follow one another or lie one in the other."""
    stack = []
    for start, end in bars:
        while stack and stack[-1] <= start and not (start == end == stack[-1]):
            stack.pop()
        assert not stack or end <= stack[-1]
        stack.append(end)


def checked_lanes(case):
    """The bars of a turn, each line of them nested, each span once."""
    placed = laid_out(case.turn, case.attribution)
    lines = defaultdict(list)
    for bar in placed:
        lines[bar.lane].append((bar.start_ns, bar.end_ns))
    for bars in lines.values():
        assert bars == sorted(bars, key=lambda bar: bar[0])
        assert_nested(bars)
    assert sorted(lines) == list(range(len(lines)))
    found = Counter(bar.times.span.span_id for bar in placed if bar.times)
    assert found == Counter(times.span.span_id for times in case.attribution.spans)
    return placed


@settings(max_examples=200, deadline=None)
@given(turns())
def test_lanes_of_any_turn_nest(record):
    """Random forests: parallel, back-dated, outside their parents, empty."""
    placed = checked_lanes(examine(record))
    assert [bar.lane for bar in placed if bar.times is None] == [0]


@each_case
def test_lanes_of_recorded_turns_nest(path):
    """The same for what real frameworks recorded."""
    for case in cases_of(path):
        checked_lanes(case)


def test_parallel_tools_stand_on_lanes_and_children_by_their_parents():
    """Two tools at once take two lines; what runs inside one stands on its line."""
    spans = [
        span("a", "tool_execution", 0, 50, tool="a"),
        span("b", "tool_execution", 10, 60, tool="b"),
        span("b1", "process_wait", 20, 30, "b"),
        span("c", "tool_execution", 70, 80, tool="c"),
        span("late", "process_wait", 75, 90, "c"),
    ]
    placed = laid_out(record := turn(spans, 100), examine(record).attribution)
    lanes = {bar.times.span.span_id if bar.times else "turn": bar.lane for bar in placed}
    assert lanes == {"turn": 0, "a": 0, "b": 1, "b1": 1, "c": 0, "late": 1}


def test_ten_thousand_spans_at_once_take_no_time():
    """Lanes are found without a search among them."""
    spans = [span(f"s{n:05}", "tool_execution", n / 1000, 1000 + n / 1000) for n in range(10_000)]
    placed = laid_out(record := turn(spans, 2000), examine(record).attribution)
    assert len({bar.lane for bar in placed}) == 10_000


def events_of(case):
    """The events of one turn, through JSON."""
    pair = (case.turn, case.attribution)
    return json.loads(json.dumps(list(chrome_events(*pair, 1, origin_ns([pair])))))


def ns(us):
    """Microseconds with three decimals as nanoseconds."""
    exact = round(us * 1000)
    assert abs(us * 1000 - exact) < 0.01
    return exact


@each_case
def test_perfetto_has_the_reports_totals(path):
    """By phase: calls, exclusive, wall share and critical time; the critical path is as long as the wall."""
    for case in cases_of(path):
        events = events_of(case)
        bars = [one for one in events if one["ph"] == "X" and one["cat"] != "critical_path"]
        for phase in case.attribution.phases:
            mine = [one for one in bars if one["cat"] == phase.name]
            assert len(mine) == phase.count
            for key in ("wall_share_ns", "critical_ns"):
                if getattr(phase, key) is not None:
                    assert sum(one["args"][key] for one in mine) == getattr(phase, key)
        path_ns = sum(ns(one["dur"]) for one in events if one.get("cat") == "critical_path")
        assert path_ns == (case.attribution.wall_ns or 0)


@each_case
def test_perfetto_follows_the_published_format(path):
    """Fields and types as the trace event format has them; the events of a thread nest."""
    for case in cases_of(path):
        threads = defaultdict(list)
        named = set()
        for event in events_of(case):
            assert isinstance(event["name"], str)
            assert isinstance(event["pid"], int)
            assert isinstance(event["tid"], int)
            if event["ph"] == "X":
                assert event["ts"] >= 0
                assert event["dur"] >= 0
                threads[event["tid"]].append((ns(event["ts"]), ns(event["ts"]) + ns(event["dur"])))
            elif event["ph"] == "M":
                assert event["name"] in {"process_name", "thread_name"}
                named.add(event["tid"])
            else:
                assert (event["ph"], event["s"]) == ("i", "p")
        for bars in threads.values():
            assert_nested(bars)
        assert set(threads) <= named


def test_perfetto_of_the_example():
    """Names, categories, exact microseconds, tokens, marks."""
    events = events_of(examine(example()))
    [search] = [one for one in events if one["name"] == "search" and one["cat"] == "tool_execution"]
    assert (search["ts"], search["dur"], search["args"]["round"]) == (1_020_000.0, 1_340_000.0, 1)
    [mark] = [one for one in events if one["ph"] == "i"]
    assert (mark["name"], mark["ts"]) == ("first_token", 310_000.0)
    generations = [one for one in events if one.get("cat") == "generation"]
    assert sum(one["args"]["input_tokens"] for one in generations) == 18_240
    assert "model" in generations[0]["args"]


def test_the_origin_is_the_earliest_moment():
    """A span that started before its turn does not get a negative time; no turn gives zero."""
    early = examine(turn([span("a", "plan", -5, 10)], 20))
    assert origin_ns([(early.turn, early.attribution)]) == START_NS - 5 * MS
    assert origin_ns([]) == 0


def self_and_total(profile, frames):
    """What speedscope computes of a profile: own and total weight by frame name, events checked as it does."""
    own, total, stack, last = Counter(), Counter(), [], profile["startValue"]
    for event in profile["events"]:
        assert event["at"] >= last
        if stack:
            own[stack[-1][0]] += event["at"] - last
        last = event["at"]
        name = frames[event["frame"]]["name"]
        if event["type"] == "O":
            stack.append((name, event["at"]))
        else:
            top, since = stack.pop()
            assert top == name
            total[name] += event["at"] - since
    assert not stack
    assert last == profile["endValue"]
    return own, total


def document_of(case):
    """The speedscope document of one turn, valid by its schema."""
    document = json.loads(json.dumps(speedscope([(case.turn, case.attribution)], "run")))
    jsonschema.Draft7Validator(SPEEDSCOPE).validate(document)
    return document


def assert_speedscope(case):
    """Every span's length is in the lanes; shares and path add up to the wall, by phase as reported."""
    document = document_of(case)
    frames = document["shared"]["frames"]
    found, titles = Counter(), set()
    for profile in document["profiles"]:
        if profile["type"] == "evented":
            own, total = self_and_total(profile, frames)
            if profile["name"].endswith("critical path"):
                assert sum(own.values()) == case.attribution.wall_ns
            else:
                found += total
        else:
            by_phase = Counter()
            for stack, weight in zip(profile["samples"], profile["weights"], strict=True):
                by_phase[frames[stack[1]]["name"] if len(stack) > 1 else None] += weight
            assert by_phase.pop(None) == case.attribution.unattributed_ns
            assert by_phase == {
                one.name: one.wall_share_ns for one in case.attribution.phases if one.wall_share_ns
            }
            assert sum(profile["weights"]) == profile["endValue"] == case.attribution.wall_ns
        titles.add(profile["name"])
    expected = Counter()
    for times in case.attribution.spans:
        expected[label(times)] += max(times.span.end_ns - times.span.start_ns, 0)
    title = case.turn.agent or case.turn.root_name or case.turn.run_id
    expected[title] += case.attribution.wall_ns or 0
    assert +found == +expected
    assert len(titles) == len(document["profiles"])


@each_case
def test_speedscope_has_the_reports_totals(path):
    """Recorded turns: the lengths of spans by name, wall shares by phase, the critical path."""
    for case in cases_of(path):
        assert_speedscope(case)


@settings(max_examples=100, deadline=None)
@given(turns())
def test_speedscope_of_any_turn(record):
    """The same for random turns: events balance and are in order."""
    assert_speedscope(examine(record))


def test_a_turn_without_an_end_has_lanes_only():
    """No window: no shares and no critical path; the first span's start is the origin."""
    record = turn([span("a", "plan", 3, 10)], 20)
    import dataclasses

    case = examine(dataclasses.replace(record, completed_ns=None, marks=(Mark(name="m", at_ns=START_NS),)))
    document = document_of(case)
    assert [profile["type"] for profile in document["profiles"]] == ["evented"]
    case = examine(dataclasses.replace(record, started_ns=None, completed_ns=None))
    assert document_of(case)["profiles"][0]["events"][0]["at"] == 0
    assert not [one for one in events_of(case) if one.get("cat") in {"turn", "critical_path"}]
