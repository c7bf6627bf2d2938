"""What is printed adds up to what is printed, for every table and any turn."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from report.random_turns import turns
from turntrace.report.blocks import Table
from turntrace.report.case import examine
from turntrace.report.critical import critical_table
from turntrace.report.many import many_view
from turntrace.report.rounding import unit_for
from turntrace.report.session import session_view
from turntrace.report.strings import UNKNOWN, plain
from turntrace.report.tree import tree_table
from turntrace.report.view import Choice, turn_view

choices = st.builds(
    Choice,
    by=st.sampled_from(["phase", "round", "tool", "model", "span"]),
    everything=st.booleans(),
    top=st.integers(1, 4),
)
quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def digits(row, at):
    """A printed figure as an integer count of its last digit; nothing is zero."""
    text = plain(row.cells[at]).strip() if at < len(row.cells) else ""
    return 0 if text in {"", "0", UNKNOWN} else int(text.replace(".", "").replace(",", ""))


def tables(blocks):
    """The tables among the blocks."""
    return [block for block in blocks if isinstance(block, Table)]


def assert_adds_up(table, titles):
    """Rows add up to the sum line, children to the row above them, in each named column."""
    columns = [column.title.split()[0] for column in table.columns]
    for title in titles:
        at = columns.index(title)
        assert sum(digits(row, at) for row in table.rows if row.depth == 0) == digits(table.total, at)
        parent, parts = None, 0
        for row in (*table.rows, table.total):
            if row.depth:
                parts += digits(row, at)
                continue
            assert not parts or parts == digits(parent, at)
            parent, parts = row, 0


@quick
@given(turns(), choices)
def test_the_columns_of_one_turn_add_up(turn, choice):
    """Wall, percent and critical of every grouping add up as printed."""
    [table] = tables(turn_view(examine(turn), choice))
    assert_adds_up(table, ["wall", "%"] if choice.by == "round" else ["wall", "%", "critical"])
    if choice.by != "round":
        assert digits(table.total, 0) == digits(table.total, 4)  # the critical path is as long as the wall


@quick
@given(turns())
def test_the_critical_path_adds_up(turn):
    """Its sections add up to the wall and to 100 percent."""
    case = examine(turn)
    table = critical_table(case, unit_for(case.attribution.wall_ns))
    assert_adds_up(table, ["for", "%"])
    assert digits(table.total, 1) == unit_for(case.attribution.wall_ns).ticks(case.attribution.wall_ns)


@quick
@given(turns())
def test_the_critical_column_of_the_tree_adds_up(turn):
    """The root and all spans together are the wall."""
    case = examine(turn)
    unit = unit_for(case.attribution.wall_ns)
    table = tree_table(case, unit, everything=True)
    assert len(table.rows) == len(case.attribution.spans) + 1
    assert sum(digits(row, 3) for row in table.rows) == unit.ticks(case.attribution.wall_ns)


@quick
@given(st.lists(turns(), min_size=2, max_size=4), st.sampled_from(["phase", "tool", "model"]), st.booleans())
def test_the_shares_of_many_turns_add_up(found, by, everything):
    """Over many turns the percent column adds up, whatever the rows are."""
    cases = [examine(turn) for turn in found]
    blocks = many_view(cases, ["open"] * len(cases), Choice(by=by, everything=everything))
    assert_adds_up(tables(blocks)[0], ["%"])


@quick
@given(st.lists(turns(), min_size=2, max_size=4))
def test_the_sum_of_a_session_adds_up(found):
    """The summed table of a session adds up like that of one turn."""
    assert_adds_up(tables(session_view([examine(turn) for turn in found]))[-1], ["wall", "%", "critical"])
