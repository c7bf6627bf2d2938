"""One set of hostile strings through every renderer."""

import json
import re
from html.parser import HTMLParser

import pytest

from report.turns import hostile
from turntrace.report.case import examine
from turntrace.report.critical import critical_table
from turntrace.report.json_report import json_report
from turntrace.report.many import many_view
from turntrace.report.markdown import markdown
from turntrace.report.rounding import SECONDS
from turntrace.report.session import nested_table, session_view
from turntrace.report.text import text
from turntrace.report.tree import tree_table
from turntrace.report.tsv import tsv
from turntrace.report.turn_report import TurnReport
from turntrace.report.view import Choice, turn_view

CASE = examine(hostile())
DOCUMENTS = {
    **{
        by: turn_view(CASE, Choice(by=by, everything=True))
        for by in ("phase", "round", "tool", "model", "span")
    },
    "tree": (tree_table(CASE, SECONDS),),
    "critical": (critical_table(CASE, SECONDS),),
    "many": many_view([CASE, CASE], ["open one", "open two"]),
    "many-tools": many_view([CASE, CASE], ["open one", "open two"], Choice(by="tool")),
    "session": session_view([CASE, CASE]),
    "nested": (nested_table([CASE]),),
}
documents = pytest.mark.parametrize("blocks", DOCUMENTS.values(), ids=DOCUMENTS.keys())


@documents
def test_text_holds_no_character_that_acts(blocks):
    """No control, no reversed text, no line end of the data's own; every line keeps to its width."""
    for line in text(blocks, bars=True).split("\n"):
        assert line.isprintable()
        assert len(line) <= 120


@documents
def test_markdown_data_stands_in_code_spans(blocks):
    """Outside code spans there is no HTML, no mention and no cell separator of the data's."""
    for line in markdown(blocks).split("\n"):
        assert line.isprintable()
        outside = re.sub(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)", "", line)
        for part in ("<", "@team", "[bold", "\\x7c"):
            assert part not in outside
    rows = [line for line in markdown(blocks).split("\n") if line.startswith("|")]
    widths = {row.count("|") for row in rows}
    assert len(widths) <= 3  # each table has one width


def test_tsv_keeps_its_columns_and_runs_no_formula():
    """Each line has the same number of cells; none starts a formula."""
    rows = [line.split("\t") for line in "".join(tsv([CASE])).splitlines()]
    assert {len(row) for row in rows} == {10}
    for row in rows:
        assert all(cell.isprintable() and not cell.startswith(("=", "+", "-", "@")) for cell in row)


def test_json_holds_the_strings_as_they_are():
    """JSON escapes by itself; only a lone surrogate, which no JSON reader takes, is replaced."""
    [turn] = json.loads(b"".join(json_report([CASE])))["turns"]
    assert turn["agent"].startswith("[bold red]x[/]\x1b[31m\u202e|`</pre><script>")
    assert turn["agent"].endswith("?")
    assert "=[bold" in {span["tool"][:6] for span in turn["spans"] if span["tool"]}


class Tags(HTMLParser):
    """The tags and the text of a document."""

    def __init__(self):
        super().__init__()
        self.tags = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        """Note a tag."""
        self.tags.append(tag)

    def handle_data(self, data):
        """Note a text."""
        self.text += data


def test_html_has_no_tag_of_the_datas():
    """A notebook gets a table with escaped text."""
    parser = Tags()
    parser.feed(TurnReport.of(hostile())._repr_html_())
    ours = ["div", "p", "b", "br", "table", "caption", "thead", "tr", "th", "tbody", "td", "ol", "li"]
    assert set(parser.tags) == set(ours)
    assert parser.tags.count("b") == 1 + 1 + parser.tags.count("li")
    assert "`</pre><script>alert(1)</script>" in parser.text
    assert parser.text.replace("\u2003", " ").isprintable()  # what indents a tool


def test_the_printed_report_and_its_repr_are_harmless():
    """print(r) and r alone in a console show nothing that acts."""
    report = TurnReport.of(hostile())
    assert repr(report).isprintable()
    assert all(line.isprintable() for line in str(report).split("\n"))
