"""How many series there can be at most: the table's arithmetic, and a process that tries to make more."""

from boards.documents import series_rows, with_table
from otel.test_metrics import CALL, Measured
from turntrace.core.metric_table import METRICS


def most(name):
    """The most series that the document promises of a metric."""
    [row] = [row for row in series_rows() if f"| `{name}` |" in row]
    return int(row.split("|")[4].replace(",", ""))


def test_the_arithmetic_of_the_worst_case():
    """A hundred names, _other and unknown, times the other labels, times the series of a histogram."""
    assert most("turntrace.turns") == 102 * 4
    assert most("turntrace.turn.duration") == 102 * 4 * (16 + 3)
    assert most("turntrace.model_requests") == 2000 + 5
    assert most("turntrace.receiver.spans") == 1


def test_a_process_that_tries_makes_no_more():
    """Three labels of two hundred names each, all together: the limit holds, and the loss is counted."""
    from dataclasses import replace

    measured = Measured()
    for number in range(6_000):
        call = replace(CALL, agent=f"a{number % 200}", model=f"m{number % 199}", provider=f"p{number % 197}")
        measured.metrics.model_called(call)
    for name in ("turntrace.model_requests", "turntrace.generation.first_token", "turntrace.tokens"):
        each = len(METRICS[name].bounds) + 3 if METRICS[name].kind == "histogram" else 1
        assert 1_900 * each < len(measured.points(name)) * each <= most(name)
    assert measured.guard.dropped["cardinality"] > 1_000
    measured.provider.shutdown()


def test_a_table_goes_between_its_marks():
    """What stood there is replaced, what stands around stays."""
    text = "a\n<!-- X -->\nold\n<!-- end of X -->\nb\n"
    assert with_table(text, "X", iter(["| new |"])) == "a\n<!-- X -->\n| new |\n<!-- end of X -->\nb\n"
