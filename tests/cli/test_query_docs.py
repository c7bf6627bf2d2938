"""The examples in docs/query.md, run as they stand."""

import re
import shlex
from pathlib import Path

import pytest

from cli.test_docs import as_pattern
from report.turns import example, span, turn
from turntrace.query.database import TurnDatabase
from turntrace.query.named import NAMED
from turntrace.query.schema import LINES

TEXT = (Path(__file__).parents[2] / "docs" / "query.md").read_text()
EXAMPLES = [
    part.partition("\n")[::2]
    for block in re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL)
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
]


@pytest.fixture
def traces(write_trace):
    """The files that the examples read."""
    many = [
        turn([span("g", "generation", 0, 50)], wall, run_id=f"run-{wall}", trace_id=f"{wall:032x}")
        for wall in (100, 300, 200)
    ]
    return [write_trace("run.ndjson", example()), write_trace("many.ndjson", *many)]


@pytest.mark.parametrize(("command", "shown"), EXAMPLES, ids=[command for command, _ in EXAMPLES])
@pytest.mark.usefixtures("traces")
def test_an_example_shows_what_the_command_prints(run, command, shown):
    """Each example gives exactly what the page shows."""
    result = run(*shlex.split(command)[1:])
    assert result.exit_code == 0, result.stderr
    assert re.fullmatch(as_pattern(shown), result.stdout), result.stdout


def test_the_page_names_every_view_column_and_query(traces):
    """The table of views is what DuckDB says of them; each named query has its row."""
    with TurnDatabase(traces, LINES) as database:
        for view, columns in re.findall(r"^\| `(\w+)` \| [^|]* \| (.*) \|$", TEXT, re.MULTILINE):
            found = database.ask(f"FROM {view}").columns
            assert sorted(re.findall(r"`(\w+)`", columns)) == sorted(found), view
    assert re.findall(r"^\| `([a-z]+-[a-z-]+)` \|", TEXT, re.MULTILINE) == list(NAMED)
