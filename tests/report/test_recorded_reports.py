"""The report of every recorded trace: valid by the published schema, the same figures in every format."""

import json
from pathlib import Path

import jsonschema
import pytest

from recorded_cases import PATHS, cases_of
from turntrace.report.blocks import Table
from turntrace.report.json_report import json_report
from turntrace.report.markdown import markdown
from turntrace.report.rounding import count_text, unit_for
from turntrace.report.strings import UNKNOWN, cells, fit, plain
from turntrace.report.text import text
from turntrace.report.view import Choice, turn_view

ROOT = Path(__file__).parents[2]
VALIDATOR = jsonschema.Draft202012Validator(json.loads((ROOT / "docs" / "report.schema.json").read_text()))
EVERYTHING = Choice(everything=True)
each_case = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)


def reported(path):
    """Each turn of a file: its case and its part of the JSON report."""
    cases = cases_of(path)
    document = json.loads(b"".join(json_report(cases)))
    return document, list(zip(cases, document["turns"], strict=True))


def wall_tables(case):
    """The table of phases of a turn that has an end."""
    return [block for block in turn_view(case, EVERYTHING) if isinstance(block, Table) and block.total]


@each_case
def test_the_json_is_valid_by_its_schema(path):
    """What is published holds for whatever was read."""
    document, turns = reported(path)
    VALIDATOR.validate(document)
    for _, turn in turns:
        if turn["wall_ns"] is not None:
            shares = sum(phase["wall_share_ns"] for phase in turn["phases"])
            assert shares + turn["unattributed_ns"] == turn["wall_ns"]


@each_case
def test_text_shows_the_figures_of_the_json(path):
    """Each phase's row has the JSON's calls, and its times to the last printed digit."""
    for case, turn in reported(path)[1]:
        unit = unit_for(turn["wall_ns"])
        for table in wall_tables(case):
            rows = {plain(row.label): row for row in table.rows if row.depth == 0}
            assert set(rows) == {*(phase["phase"] for phase in turn["phases"]), "unattributed"}
            for phase in turn["phases"]:
                wall, _, calls, busy, critical = (plain(cell).strip() for cell in rows[phase["phase"]].cells)
                assert calls == count_text(phase["count"])
                for shown, exact_ns in (
                    (wall, phase["wall_share_ns"]),
                    (busy, phase["busy_ns"]),
                    (critical, phase["critical_ns"]),
                ):
                    assert abs(ticks(shown) - unit.ticks(exact_ns)) <= 1
            assert ticks(plain(rows["unattributed"].cells[0]).strip()) == pytest.approx(
                unit.ticks(turn["unattributed_ns"]), abs=1
            )


def ticks(shown):
    """A printed figure in its last digits."""
    return 0 if shown in {"0", UNKNOWN} else int(shown.replace(".", ""))


@each_case
def test_markdown_and_text_print_the_same_cells(path):
    """Each figure of each table stands in both, in the same row."""
    for case in cases_of(path):
        blocks = turn_view(case, EVERYTHING)
        as_text, as_markdown = text(blocks, width=400), markdown(blocks)
        for table in (block for block in blocks if isinstance(block, Table)):
            for row in table.rows:
                figures = [plain(cell).strip() for cell in row.cells]
                assert any(same(line.split(), figures) for line in as_text.splitlines())
                assert any(
                    same(line.replace("|", " ").replace("`", " ").split(), figures)
                    for line in as_markdown.splitlines()
                )


def same(words, figures):
    """Whether the figures stand among the words of a line, one after another."""
    wanted = [word for figure in figures for word in fit(figure, max(28, cells(figure))).split()]
    size = len(wanted)
    return any(words[at : at + size] == wanted for at in range(len(words) - size + 1))
