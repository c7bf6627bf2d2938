"""Journals: what a live turn writes line by line, and what is left of it after a kill at any byte."""

import json
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.codec.generated import encoded, only_block, turns
from turntrace.core.codec.encode import span_details
from turntrace.core.codec.journal import (
    counter_line,
    event_line,
    header_line,
    mark_line,
    read_journal,
    root_line,
    span_line,
    span_start_line,
    usage_line,
    warning_line,
)
from turntrace.core.model import Event, Mark, Span, Turn, Usage, Warn
from turntrace.errors import TraceReadError

NOON_NS = 1_772_366_400_000_000_000
ROOT = 0xAA
TURN = Turn(
    run_id="r1",
    trace_id="0" * 31 + "1",
    span_id=f"{ROOT:016x}",
    root_name="invoke_agent demo",
    started_ns=NOON_NS,
    session_id="s",
    labels={"prompt": "v7"},
    turn_source="dialect",
    source="openinference",
)


def header(**options) -> bytes:
    """The header of the journal."""
    return header_line(TURN, pid=7, **options)


def start(number: int, at_ms: int, *, parent: int | None = ROOT, phase: str | None = "generation") -> bytes:
    """A line of a span that opens."""
    return span_start_line(phase, f"s{number}", number, parent, ROOT, NOON_NS + at_ms * 10**6)


def end(
    number: int,
    from_ms: int,
    to_ms: int,
    *,
    parent: int | None = ROOT,
    phase: str | None = "generation",
    **details,
) -> bytes:
    """A line of a span that ended."""
    times = NOON_NS + from_ms * 10**6, NOON_NS + to_ms * 10**6
    return span_line(phase, f"s{number}", number, parent, ROOT, *times, **details)


def journal_of(*lines: bytes):
    """The journal that the lines tell."""
    return read_journal(b"".join(lines).splitlines(keepends=True))


# -- lines ------------------------------------------------------------------------------------------------


def test_header_line():
    """The header has an open end, the process, and what is known of the turn."""
    line = json.loads(header(pid_started=99, fragment=True))
    assert tuple(line[key] for key in ("completed_at", "pid", "pid_started", "fragment", "start_ns")) == (
        "",
        7,
        99,
        True,
        NOON_NS,
    )
    assert tuple(line[key] for key in ("type", "name", "run_id", "schema_version")) == (
        "trace",
        "run",
        "r1",
        1,
    )
    assert not {"pid_started", "fragment"} & set(json.loads(header()))
    assert "start_ns" not in json.loads(header_line(Turn(run_id="r"), pid=1))


def test_span_lines():
    """A start and an end have ids in hex and integer times; structure has no name."""
    assert json.loads(start(1, 0, phase=None)) == {
        "type": "span_start",
        "name": None,
        "span_name": "s1",
        "span_id": "0000000000000001",
        "parent_id": "00000000000000aa",
        "turn_id": "00000000000000aa",
        "start_ns": NOON_NS,
    }
    assert json.loads(
        end(1, 0, 5, parent=None, status="ok", outcome="cancelled", round_number=2, attributes={"a": 1})
    ) == {
        "type": "span",
        "name": "generation",
        "span_name": "s1",
        "span_id": "0000000000000001",
        "parent_id": None,
        "turn_id": "00000000000000aa",
        "start_ns": NOON_NS,
        "end_ns": NOON_NS + 5_000_000,
        "status": "ok",
        "outcome": "cancelled",
        "round": 2,
        "attributes": {"a": 1},
    }


def test_every_line_ends_once():
    """Each line is one object with one LF, whatever is in its strings."""
    nasty = 'a"b\\c\nd\u2028\ud800' + "x" * 300
    lines = [
        span_start_line(nasty, nasty, 1, None, 0, 5),
        span_line(nasty, nasty, 1, 2, 3, 4, 5, tool=nasty, model=nasty, agent=nasty, run_id=nasty,
                  parent_source="inferred", attributes={nasty: nasty}),
        counter_line(nasty, 2**70),
        mark_line(Mark(name=nasty, at_ns=5)),
        usage_line(Usage(span_id="x", model=nasty)),
        warning_line(Warn(code=nasty, message=nasty)),
        event_line(Event(type="prefix_hash", fields={nasty: nasty})),
        header_line(replace(TURN, agent=nasty), pid=1),
        root_line(replace(TURN, completed_ns=NOON_NS, agent=nasty)),
    ]  # fmt: skip
    for line in lines:
        assert line.count(b"\n") == 1
        assert len(line.decode().splitlines()) == 1
        assert isinstance(json.loads(line), dict)
    assert nasty.replace("\ud800", "\ufffd") == json.loads(lines[1])["tool"]
    assert json.loads(lines[0])["turn_id"] is None


# -- reading ----------------------------------------------------------------------------------------------


def test_a_finished_turn():
    """With the root's end the journal tells the whole turn."""
    done = replace(TURN, completed_ns=NOON_NS + 10**9, agent="demo", model="m", rounds=1, status="cancelled")
    journal = journal_of(
        header(),
        span_start_line(None, "invoke_agent", ROOT, None, ROOT, NOON_NS),
        start(1, 100),
        counter_line("retry_count", 1),
        mark_line(Mark(name="first_token", at_ns=NOON_NS + 7, span_id="0000000000000001")),
        mark_line(Mark(name="first_token", at_ns=NOON_NS + 5)),
        mark_line(Mark(name="mine", at_ns=NOON_NS + 3)),
        counter_line("retry_count", 3),
        end(
            1, 100, 200, tool="t", model="m", round_number=4, parent_source="inferred", attributes={"a": 1.5}
        ),
        usage_line(Usage(span_id="0000000000000001", input_tokens=3)),
        warning_line(Warn(code="c", message="m")),
        event_line(Event(type="task_state", fields={"revision": 4})),
        root_line(done, status="error", outcome="cancelled"),
    )
    assert journal.issues == ()
    assert (
        journal.root_ended,
        journal.fragment,
        journal.pid,
        journal.pid_started,
        journal.open_span_ids,
    ) == (True, False, 7, None, ())
    expected = replace(
        done,
        spans=(
            Span(
                span_id="0000000000000001",
                parent_id="00000000000000aa",
                name="s1",
                phase="generation",
                start_ns=NOON_NS + 10**8,
                end_ns=NOON_NS + 2 * 10**8,
                parent_source="inferred",
                round=4,
                tool="t",
                model="m",
                attributes={"a": 1.5},
            ),
        ),
        counters={"retry_count": 3},
        first_token_ns=NOON_NS + 5,
        usage=(Usage(span_id="0000000000000001", input_tokens=3),),
        marks=(
            Mark(name="first_token", at_ns=NOON_NS + 7, span_id="0000000000000001"),
            Mark(name="first_token", at_ns=NOON_NS + 5),
            Mark(name="mine", at_ns=NOON_NS + 3),
        ),
        events=(Event(type="task_state", fields={"revision": 4}),),
        warnings=(Warn(code="c", message="m"),),
    )
    assert expected == journal.turn


@pytest.mark.parametrize(
    ("details", "status"),
    [
        ({}, "ok"),
        ({"status": "ok"}, "ok"),
        ({"status": "error"}, "error"),
        ({"outcome": "error"}, "error"),
        ({"outcome": "cancelled", "status": "error"}, "cancelled"),
        ({"outcome": "incomplete"}, "interrupted"),
        ({"outcome": "abandoned"}, "ok"),
    ],
)
def test_a_plain_line_of_the_root(details, status):
    """A root that ended like any span gives window, agent and status."""
    journal = journal_of(header(), end(ROOT, 1, 900, parent=None, phase=None, agent="demo", **details))
    turn = journal.turn
    assert (status, "demo", None) == (turn.status, turn.agent, turn.model)
    assert (turn.started_ns, turn.completed_ns) == (NOON_NS + 10**6, NOON_NS + 900 * 10**6)
    assert turn.spans == ()


def test_a_start_that_is_told_after_the_end_opens_nothing():
    """Two threads write: what one saw begin may be over when it tells it."""
    journal = read_journal([header(), start(1, 0), end(2, 1, 3), start(2, 1), start(3, 2)])
    assert journal.open_span_ids == (f"{1:016x}", f"{3:016x}")
    assert [span.span_id for span in journal.turn.spans] == [f"{2:016x}", f"{1:016x}", f"{3:016x}"]
    assert [span.outcome for span in journal.turn.spans] == ["ok", "incomplete", "incomplete"]


def test_names_with_signs_that_mean_something_in_a_template_are_told_as_they_are():
    """A percent sign, a quote, a long name: what is read is what was given."""
    for name in ("100 %d", '%b "x" %(y)s %%', "%" * 600):
        line = span_start_line("a%sb", name, 1, None, ROOT, NOON_NS)
        assert json.loads(line)["span_name"] == name
        ended = span_line("a%sb", name, 1, ROOT, 0, NOON_NS, NOON_NS + 1, round_number=2, tool="t%d")
        told = json.loads(ended)
        assert (told["span_name"], told["name"], told["tool"], told["round"]) == (name, "a%sb", "t%d", 2)
        assert told["turn_id"] is None


def test_a_root_that_ends_before_it_starts():
    """The window of such a turn is empty."""
    turn = journal_of(header(), end(ROOT, 5, 1)).turn
    assert turn.started_ns == turn.completed_ns == NOON_NS + 5 * 10**6


def test_a_killed_turn():
    """Open spans end at the last time seen, incomplete; the turn is interrupted and its window open."""
    journal = journal_of(
        header(),
        span_start_line(None, "invoke_agent", ROOT, None, ROOT, NOON_NS + 1),
        start(1, 100, phase=None),
        start(2, 200, parent=1),
        end(2, 200, 300, parent=1),
        start(3, 400, parent=1),
        mark_line(Mark(name="x", at_ns=NOON_NS + 500 * 10**6)),
    )
    turn = journal.turn
    assert (journal.root_ended, journal.open_span_ids) == (False, ("0000000000000001", "0000000000000003"))
    assert (turn.status, turn.started_ns, turn.completed_ns) == ("interrupted", NOON_NS + 1, None)
    assert [(span.span_id, span.outcome, (span.end_ns - NOON_NS) // 10**6) for span in turn.spans] == [
        ("0000000000000002", "ok", 300),
        ("0000000000000001", "incomplete", 500),
        ("0000000000000003", "incomplete", 500),
    ]
    assert [issue.code for issue in journal.issues] == ["interrupted"]
    assert only_block(encoded(turn)).verdict == "accept"


def test_a_turn_of_which_only_the_header_is_there():
    """The header alone tells when the turn started."""
    turn = journal_of(header()).turn
    assert (turn.started_ns, turn.completed_ns, turn.status, turn.spans) == (NOON_NS, None, "interrupted", ())


def test_a_fragment():
    """Spans of a turn whose root is elsewhere: that the root does not end here is no news."""
    line = header_line(Turn(run_id="", trace_id=TURN.trace_id), pid=8, pid_started=5, fragment=True)
    journal = journal_of(line, end(1, 0, 5, parent=0xBB))
    assert (
        journal.fragment,
        journal.pid,
        journal.pid_started,
        journal.root_ended,
        journal.issues,
    ) == (True, 8, 5, False, ())
    assert (journal.turn.spans[0].parent_id, journal.turn.span_id) == ("00000000000000bb", None)


def test_a_later_header_replaces_what_it_names():
    """What becomes known later is told by another header; what it does not name stays."""
    later = b'{"type":"trace","agent":"demo","turn_source":"local_root"}\n'
    journal = journal_of(header(pid_started=5), later)
    turn = journal.turn
    assert (
        turn.agent,
        turn.turn_source,
        turn.run_id,
        turn.started_ns,
    ) == ("demo", "local_root", "r1", NOON_NS)
    assert (journal.pid, journal.pid_started) == (7, 5)


def test_rounds_of_an_interrupted_turn():
    """Its rounds are the highest number its own spans have; nested turns count for themselves."""
    lines = [
        end(1, 0, 9, round_number=2),
        end(2, 0, 9, phase=None, agent="sub", run_id="r2"),
        end(3, 0, 9, parent=2, phase=None),
        end(4, 0, 9, parent=3, round_number=7),
    ]
    assert journal_of(header(), *lines).turn.rounds == 2
    assert journal_of(header_line(replace(TURN, rounds=5), pid=7), *lines).turn.rounds == 5
    assert journal_of(header(), *lines[1:]).turn.rounds is None


def test_damage_in_the_middle():
    """Garbage and NUL runs are reported with their place; every good line is read."""
    data = [
        header(),
        b"garbage\n",
        b"\0" * 40 + end(1, 0, 5),
        b"\0\0\0\n",
        end(2, 0, 5),
        b'{"type":"future"}\n',
        b'{"a":5}\n',
    ]
    journal = read_journal(data)
    assert [(issue.line, issue.code) for issue in journal.issues] == [(None, "interrupted"), (2, "bad_json_line"), (3, "bad_json_line"), (4, "bad_json_line"),
            (6, "unknown_type"), (7, "unknown_type")]  # fmt: skip
    assert len(header()) == journal.issues[1].offset
    assert [span.name for span in journal.turn.spans] == ["s1", "s2"]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b'{"type":"span_start","name":"plan","start_ns":5}\n', "id_invalid"),
        (b'{"type":"span_start","name":"plan","span_id":"0000000000000001"}\n', "id_invalid"),
        (b'{"type":"span","name":"plan","span_id":"0000000000000001","start_ns":5}\n', "id_invalid"),
        (b'{"type":"span","name":"plan","start_ns":5,"end_ns":6}\n', "id_invalid"),
        (b'{"type":"counter","name":"a","value":"1"}\n', "counter_value_invalid"),
    ],
)
def test_lines_that_say_too_little(line, code):
    """A line without its id or times is reported and left out."""
    journal = read_journal([header(), line])
    assert [code] == [issue.code for issue in journal.issues if issue.line]
    assert journal.turn.spans == ()


def test_no_header():
    """Without a header nobody knows whose lines these are."""
    with pytest.raises(TraceReadError, match=r"^out\.part: the journal has no header$"):
        read_journal([end(1, 0, 5), b'{"type":"tra'], path="out.part")


def test_killed_at_every_byte():
    """Whatever was written whole is there; only the last, unterminated line may be missing."""
    lines = [
        header(),
        start(1, 0),
        counter_line("a", 1),
        end(1, 0, 5),
        start(2, 6),
        end(2, 6, 8),
        end(ROOT, 0, 9),
    ]
    data = b"".join(lines)
    for size in range(len(header()), len(data) + 1):
        journal = read_journal(data[:size].splitlines(keepends=True))
        cut = data[:size].rpartition(b"\n")[2]
        whole = data[:size].count(b"\n") + (cut != b"" and data[size : size + 1] == b"\n")
        assert sum(b'"type":"span"' in line for line in lines[:whole]) == (
            len(journal.turn.spans) - len(journal.open_span_ids) + journal.root_ended
        )
        tail_lost = bool(cut) and data[size : size + 1] != b"\n"
        assert ["truncated_tail"] * tail_lost == [i.code for i in journal.issues if i.code != "interrupted"]


@given(turns(inside=True))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_a_journal_tells_the_turn(turn: Turn):
    """A turn that was journaled line by line gives the block it would give by itself."""
    told = replace(turn, first_chunk_ns=None, first_visible_ns=None, first_useful_ns=None)
    told = replace(told, marks=(), first_token_ns=None)
    lines = [header_line(told, pid=1)]
    for span in told.spans:
        details = span_details(span)
        details["round_number"] = details.pop("round", None)
        ids = int(span.span_id, 16), span.parent_id and int(span.parent_id, 16), int(turn.span_id, 16)
        lines += (
            span_start_line(span.phase, span.name, *ids, span.start_ns),
            span_line(span.phase, span.name, *ids, span.start_ns, span.end_ns,
                      status=span.status, outcome=span.outcome, **details),
        )  # fmt: skip
    lines += map(usage_line, told.usage)
    lines += map(warning_line, told.warnings)
    lines += map(event_line, told.events)
    lines += (counter_line(name, value) for name, value in told.counters.items())
    lines.append(root_line(told))
    journal = read_journal(lines)
    assert journal.issues == ()
    assert told == journal.turn
    assert encoded(told) == encoded(journal.turn)


@given(st.lists(st.binary(max_size=40) | st.sampled_from([start(1, 0), end(1, 0, 1), header()])))
def test_noise_never_raises(noise):
    """Whatever a journal holds, it is read, or has no header."""
    try:
        journal = read_journal(b"\n".join(noise).splitlines(keepends=True))
    except TraceReadError:
        return
    encoded(journal.turn)
