"""Labels of bounded cardinality."""

from turntrace.core.metric_table import MAX_LABEL_SETS, MAX_NAMES
from turntrace.otel.guard import Guard
from turntrace.otel.metric_labels import BoundedLabels, BoundedNames


def test_beyond_a_hundred_names_the_rest_are_other():
    """A label has at most 100 values and _other, however many the application invents; that is counted."""
    guard = Guard()
    names = BoundedNames(guard)
    told = [names(f"tool {number}") for number in range(MAX_NAMES + 2)]
    assert told[:MAX_NAMES] == [f"tool {number}" for number in range(MAX_NAMES)]
    assert told[MAX_NAMES:] == ["_other"] * 2
    assert names("tool 5") == "tool 5"
    assert names(None) == "unknown"
    assert guard.dropped == {"cardinality": 2}


def test_a_declared_name_is_never_other():
    """What the application named itself passes a full label, and takes no place in it."""
    guard = Guard()
    names = BoundedNames(guard, frozenset({"mine"}))
    assert names("mine") == "mine"
    told = [names(f"agent {number}") for number in range(MAX_NAMES)]
    assert "_other" not in told
    assert (names("mine"), names("late")) == ("mine", "_other")


def test_a_metric_has_at_most_two_thousand_label_sets():
    """Beyond that every name in a new set becomes _other; the sets that are known go on."""
    guard = Guard()
    names = {"tool": BoundedNames(guard), "model": BoundedNames(guard)}
    labels = BoundedLabels(guard, names)
    told = [
        tuple(labels(tool=f"t{number // 100}", model=f"m{number % 100}", outcome="ok").values())
        for number in range(MAX_LABEL_SETS + 10)
    ]
    assert len(set(told)) == MAX_LABEL_SETS + 1
    assert set(told[MAX_LABEL_SETS:]) == {("_other", "_other", "ok")}
    assert labels(tool="t3", model="m7", outcome="ok") == {"tool": "t3", "model": "m7", "outcome": "ok"}
    assert guard.dropped == {"cardinality": 10}


def test_sets_with_and_without_a_label_are_different():
    """A label that a point does not have is no empty one."""
    labels = BoundedLabels(Guard(), {"tool": BoundedNames(Guard())})
    assert labels(phase="a") == {"phase": "a"}
    assert labels(phase="a", tool=None) == {"phase": "a", "tool": "unknown"}
