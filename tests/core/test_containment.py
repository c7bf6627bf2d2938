"""Parents by containment."""

from hypothesis import given
from hypothesis import strategies as st

from core.forests import forests, make
from turntrace.core.containment import contain, containers


@given(st.data())
def test_the_tightest_container_wins(data):
    """Each row gets the shortest containing interval; ranks settle equal lengths and identical twins."""
    size = data.draw(st.integers(0, 8))
    starts = [data.draw(st.integers(0, 6)) for _ in range(size)]
    ends = [start + data.draw(st.integers(0, 6)) for start in starts]
    ranks = data.draw(st.permutations(range(size)))
    expected = []
    for row in range(size):
        candidates = [
            (ends[other] - starts[other], ranks[other], other)
            for other in range(size)
            if starts[other] <= starts[row]
            and ends[row] <= ends[other]
            and other != row
            and ((starts[other], ends[other]) != (starts[row], ends[row]) or ranks[other] < ranks[row])
        ]
        expected.append(min(candidates)[2] if candidates else -1)
    assert containers(starts, ends, ranks) == expected


@given(forests())
def test_results_do_not_depend_on_the_order(spans):
    """A span has the same parent wherever it stands in the file, and spans stay in their order."""
    parents = {span.span_id: span.parent_id for span in contain(spans)}
    assert {span.span_id: span.parent_id for span in contain(spans[::-1])} == parents
    assert list(parents) == [span.span_id for span in spans]


def test_bounds_are_included_and_the_source_is_told():
    """A span that shares a bound is contained; every span says that its parent was guessed."""
    spans = contain([make("b", 0, 5, parent="x"), make("a", 0, 10), make("c", 5, 10), make("d", 11, 12)])
    assert [span.parent_id for span in spans] == ["a", None, "a", None]
    assert {span.parent_source for span in spans} == {"containment"}


def test_of_identical_spans_the_smaller_id_is_the_outer_one():
    """Twins nest in order of their ids, so there is no cycle."""
    spans = contain([make("b", 0, 5), make("c", 0, 5), make("a", 0, 5)])
    assert [span.parent_id for span in spans] == ["a", "a", None]


def test_of_equally_long_containers_the_earlier_started_wins():
    """Two containers of one length: the one that started first is the parent."""
    spans = contain([make("a", 2, 12), make("b", 0, 10), make("c", 4, 6)])
    assert [span.parent_id for span in spans] == [None, None, "b"]


def test_a_span_that_ends_before_it_starts_is_a_point():
    """Only its start has to be contained."""
    spans = contain([make("a", 0, 10), make("b", 9, 2)])
    assert [span.parent_id for span in spans] == [None, "a"]
