"""The page of a view: what is embedded is the report, nothing breaks out, nothing is asked of a network."""

import base64
import gzip
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from report.random_turns import turns
from report.turns import HOSTILE, MS, example, hostile, span, turn
from turntrace.core.model import Issue, Warn
from turntrace.core.phase_colors import PHASE_COLORS
from turntrace.report.case import examine
from turntrace.report.json_report import json_report
from turntrace.report.many import many_view
from turntrace.report.page.document import page
from turntrace.report.page.flame import DEEPEST, flame
from turntrace.report.page.static_table import static_html
from turntrace.report.page.words import overview_words, turn_words
from turntrace.report.strings import UNKNOWN
from turntrace.report.text import text
from turntrace.report.turn_report import TurnReport
from turntrace.report.view import turn_view

WEB = Path(__file__).parents[2] / "web"
BUILT = resources.files("turntrace.report.page").joinpath("page.html").read_text()
quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


class Elements(HTMLParser):
    """The scripts and styles of a document, their attributes and text, and every attribute that fetches."""

    def __init__(self, document):
        super().__init__()
        self.found, self.links, self.metas, self._open = [], [], {}, None
        self.feed(document)

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        self.links += [named[name] for name in ("src", "href", "action", "data", "srcset") if name in named]
        if tag == "meta":
            self.metas[named.get("http-equiv") or named.get("name")] = named.get("content")
        if tag in {"script", "style"}:
            self._open = (tag, named, [])
            self.found.append(self._open)

    def handle_endtag(self, tag):
        if self._open and tag == self._open[0]:
            self._open = None

    def handle_data(self, data):
        if self._open:
            self._open[2].append(data)

    def text(self, tag, **attributes):
        """The text of the one element of this kind."""
        [found] = [
            "".join(pieces)
            for name, named, pieces in self.found
            if name == tag and all(named.get(key) == value for key, value in attributes.items())
        ]
        return found


def document(*turns_shown, names=("run.ndjson",)):
    """The page of some turns as text."""
    return b"".join(page([examine(one) for one in turns_shown], names)).decode()


def words_of(shown):
    """What the page prints, as the page reads it."""
    return json.loads(Elements(shown).text("script", id="words"))


def test_the_report_is_embedded_as_it_is():
    """The page's only source of numbers is what `report --json` prints."""
    shown = Elements(document(example()))
    assert json.loads(shown.text("script", id="report")) == json.loads(
        b"".join(json_report([examine(example())]))
    )


def test_a_large_report_is_compressed():
    """Beyond a megabyte it is gzip in base64, and still the same report."""
    spans = [span(f"s{number}", "generation", number, number + 1) for number in range(4_000)]
    long = turn(spans, 4_000)
    shown = document(long)
    packed = Elements(shown).text("script", id="report")
    assert gzip.decompress(base64.b64decode(packed)) == b"".join(json_report([examine(long)]))
    assert len(shown) < 400_000


def test_no_name_breaks_out():
    """Scripts in names, files and labels stay text: three scripts, one of them ours, as in any page."""
    plain = Elements(document(example()))
    shown = document(hostile(), replace(hostile(), run_id="two"), names=(HOSTILE,))
    found = Elements(shown)
    assert [(tag, named.get("id")) for tag, named, _ in found.found] == [
        (tag, named.get("id")) for tag, named, _ in plain.found
    ]
    assert "alert(1)" not in found.text("style") + found.text("script", id=None)
    assert "<script>alert" not in shown
    assert "<!--turntrace:" not in shown
    spans = json.loads(found.text("script", id="report"))["turns"][0]["spans"]
    assert any("<script>alert(1)</script>" in one["name"] for one in spans)


def test_nothing_is_asked_of_a_network():
    """No element fetches, and the policy allows no connection, no foreign script and no foreign style."""
    shown = Elements(document(example()))
    assert set(shown.links) == {"data:,"}
    policy = shown.metas["Content-Security-Policy"].split("; ")
    hashes = {
        kind: base64.b64encode(hashlib.sha256(shown.text(tag, **named).encode()).digest()).decode()
        for kind, tag, named in (("script", "script", {"id": None}), ("style", "style", {}))
    }
    assert policy == [
        "default-src 'none'",
        f"script-src 'sha256-{hashes['script']}'",
        f"style-src 'sha256-{hashes['style']}'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]


def test_source_and_built_page_agree():
    """`make web` was run after the last change of web/."""
    paths = [path for path in (WEB / "src").rglob("*") if path.is_file()]
    paths += [WEB / name for name in ("build.mjs", "package-lock.json", "package.json", "tsconfig.json")]
    hashed = hashlib.sha256()
    for name, path in sorted((path.relative_to(WEB).as_posix(), path) for path in paths):
        content = path.read_bytes()
        hashed.update(f"{name}\0{len(content)}\0".encode() + content)
    assert Elements(BUILT).metas["turntrace-page"] == hashed.hexdigest(), "run make web"


def test_the_lock_file_names_no_registry():
    """Versions and hashes of the page's parts are fixed, wherever they are fetched from."""
    lock = json.loads((WEB / "package-lock.json").read_text())
    packages = {name: one for name, one in lock["packages"].items() if name}
    assert packages
    assert not [name for name, one in packages.items() if "resolved" in one or "integrity" not in one]


def test_licences_of_what_is_inlined_stand_in_the_page():
    """Every library of the script has its licence there."""
    for name in ("d3-zoom", "d3-scale", "d3-hierarchy", "d3-selection", "@tanstack/virtual-core"):
        assert re.search(rf"^{name} \d+\.\d+\.\d+$", BUILT, re.MULTILINE), name


def test_what_the_page_prints_is_what_the_report_prints():
    """The figures of the first screen are those of the text report, to the last digit."""
    words = words_of(document(example()))["turns"][0]
    printed = text(turn_view(examine(example())))
    lines = [re.sub(r"\s+", " ", line).strip() for line in printed.splitlines()]
    for row in words["table"]["rows"]:
        cells = " ".join([row["label"], *(cell for cell in row["cells"] if cell)])
        assert any(line.startswith(cells) for line in lines), cells
    assert " ".join(words["table"]["total"]["cells"]).split() == ["8.420", "100.0", "8.420"]
    assert words["heading"]["title"] in printed
    assert [finding["saves"] for finding in words["findings"]] == re.findall(r"(\S+ s)$", printed, re.M)[-3:]
    assert words["findings"][0]["phase"] == "retry_wait"
    assert words["missing"] == [{"text": "accounted for 99.3 %", "warn": False}]


def test_the_colours_are_those_of_everything_else():
    """One colour a phase, wherever it is drawn."""
    assert words_of(document(example()))["colors"] == dict(PHASE_COLORS)


def test_what_is_missing_is_said():
    """Poor coverage, unknown tokens and warnings are each named, and marked as worth a warning."""
    spans = [span("g1", "generation", 0, 100), span("g2", "generation", 200, 300)]
    bare = turn(
        spans, 1_000, counters={"model_requests": 2}, warnings=(Warn(code="folded", message="two of one"),)
    )
    issue = Issue(code="json", line=3, offset=1, message="no JSON")
    missing = turn_words(examine(bare, issues=[issue]))["missing"]
    assert [one["text"] for one in missing] == [
        "accounted for 20.0 %",
        "tokens of 2 of 2 model calls unknown",
        "2 warnings: 1 x folded, 1 x json",
    ]
    assert all(one["warn"] for one in missing)


def test_a_turn_without_an_end_promises_nothing():
    """No wall, no shares, no sum: the table tells what ran, the flame is empty."""
    stopped = examine(replace(example(), completed_ns=None, status="interrupted"))
    words = turn_words(stopped)
    assert words["wall"] == UNKNOWN
    assert words["table"]["total"] is None
    assert words["missing"][0]["text"].startswith("the turn has no end")
    assert [frame["own_ns"] for frame in flame([stopped])] == [0]
    assert "What ran before it stopped" in document(replace(example(), completed_ns=None))


@quick
@given(turns())
def test_the_flame_adds_up_to_the_wall(one):
    """Every nanosecond of the wall is in one frame, that without a phase in its own."""
    case = examine(one)
    frames = flame([case])
    assert sum(frame["own_ns"] for frame in frames) == case.attribution.wall_ns
    assert all(frame["parent"] < at for at, frame in enumerate(frames) if at)
    unattributed = sum(frame["own_ns"] for frame in frames if frame["phase"] == "unattributed")
    assert unattributed == case.attribution.unattributed_ns


@quick
@given(st.lists(turns(), min_size=2, max_size=3))
def test_the_flame_of_many_turns_adds_up(several):
    """The flame and the bar of many turns hold the sum of their walls."""
    cases = [examine(one) for one in several]
    walls = sum(case.attribution.wall_ns or 0 for case in cases)
    frames = flame(cases)
    assert sum(frame["own_ns"] for frame in frames) == walls
    assert frames[0]["count"] == len(cases)
    assert sum(overview_words(cases)["sums"].values()) == walls
    assert [sum(turn_words(case)["sums"].values()) for case in cases] == [
        case.attribution.wall_ns for case in cases
    ]


def test_the_flame_of_a_deep_chain_is_bounded():
    """What lies deeper than can be drawn counts for the frame above it."""
    chain = [span(f"s{at}", "plan", at, 2_000 - at, "root" if at == 0 else f"s{at - 1}") for at in range(900)]
    frames = flame([examine(turn(chain, 2_000))])
    assert len(frames) == DEEPEST + 1
    assert sum(frame["own_ns"] for frame in frames) == 2_000 * MS
    assert sum(frame["count"] for frame in frames[1:]) == 900


def test_many_turns_are_shown_together_and_nested_ones_only_once():
    """The overview is of the outermost turns; a turn inside another has a page of its own and no share."""
    inner = replace(example(), run_id="inner", parent_run_id="run-1")
    words = words_of(document(example(), replace(example(), run_id="run-2", session_id="other"), inner))
    assert len(words["turns"]) == 3
    assert sum(words["all"]["sums"].values()) == 2 * 8_420 * MS
    assert words["flame"][0]["count"] == 2
    assert words["all"]["blocks"][0]["title"].endswith("2 turns")
    assert words_of(document(example(), inner))["all"] is None


def test_a_session_is_shown_turn_by_turn():
    """Turns of one session that follow each other get the table of the session."""
    late = replace(
        example(),
        run_id="run-2",
        spans=tuple(
            replace(one, start_ns=one.start_ns + 9_000 * MS, end_ns=one.end_ns + 9_000 * MS)
            for one in example().spans
        ),
        started_ns=example().started_ns + 9_000 * MS,
        completed_ns=example().completed_ns + 9_000 * MS,
    )
    blocks = words_of(document(example(), late))["all"]["blocks"]
    assert [block.get("heading") for block in blocks][-1] == "Where the session went"


@pytest.mark.parametrize("bars", [True, False])
def test_the_static_table_runs_nothing(bars):
    """Without scripts and without anything that data could start."""
    shown = static_html(turn_view(examine(hostile())), bars=bars)
    found = Elements(shown)
    assert found.found == []
    assert found.links == []
    assert ("style=" in shown) is bars
    assert "<b>Fix first</b>" in shown


def test_commands_to_type_are_no_part_of_a_static_table():
    """Of many turns it shows the table; what opens each of them is for a terminal."""
    blocks = many_view([examine(example()), examine(example())], ["open one", "open two"])
    shown = static_html(blocks)
    assert "2 turns" in shown
    assert "open one" not in shown


def test_a_notebook_shows_the_table():
    """A turn alone in a cell is a small table with the figures of the report."""
    shown = TurnReport.of(example())._repr_html_()
    assert shown.startswith("<div>")
    assert "<td>3.480</td>" in shown
    assert PHASE_COLORS["generation"] in shown
    assert "<script" not in shown
