"""What may leave the process: names on the list, scalars, cut strings."""

from hypothesis import given
from hypothesis import strategies as st

from turntrace.core import attributes as names
from turntrace.core.attributes import ALLOWED, MAX_STRING_CHARACTERS, content_free
from turntrace.core.contract import ISSUE_SEVERITY, OPTIONAL_EVENT_KEYS, PHASES
from turntrace.core.model import Issue
from turntrace.core.results import Attribution


def test_names_off_the_list_stay():
    """Prompts, outputs and anything unknown are left out; our prefixes and ``keep`` pass."""
    assert content_free(
        {
            "gen_ai.input.messages": "secret",
            "exception.message": "secret",
            "turntrace.label.prompt": "v7",
            "turntrace.secret": "secret",
            "app.kept": 1,
            "gen_ai.usage.input_tokens": 3,
        },
        frozenset({"app.kept"}),
    ) == {"turntrace.label.prompt": "v7", "app.kept": 1, "gen_ai.usage.input_tokens": 3}


def test_values_are_scalars():
    """Strings are cut, sequences of strings joined, everything else that is no scalar left out."""
    long = "x" * 1000
    assert content_free(
        {
            names.REQUEST_MODEL: long,
            names.FINISH_REASONS: ("stop", "length"),
            names.TOOL_NAME: ["a", 1],
            names.PROVIDER: {"a": 1},
            names.SYSTEM: None,
            names.REQUEST_STREAM: True,
            names.EXCLUSIVE_MS: 0.5,
        }
    ) == {
        names.REQUEST_MODEL: long[:256],
        names.FINISH_REASONS: "stop,length",
        names.REQUEST_STREAM: True,
        names.EXCLUSIVE_MS: 0.5,
    }


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text(), inner),
)


@given(st.dictionaries(st.sampled_from(sorted(ALLOWED)) | st.text(), _VALUES))
def test_whatever_goes_in_only_allowed_scalars_come_out(attributes):
    """No name off the list, no value but a bool, a number or a short string."""
    for name, value in content_free(attributes).items():
        assert name in ALLOWED or name.startswith("turntrace.")
        assert isinstance(value, bool | int | float | str)
        assert not isinstance(value, str) or len(value) <= MAX_STRING_CHARACTERS


def test_an_issue_of_unknown_code_is_an_error():
    """Severity comes from the contract; what it does not know is the worst."""
    assert Issue(code="bom", message="").severity == "info"
    assert Issue(code="from the future", message="").severity == "error"
    assert set(ISSUE_SEVERITY.values()) == {"error", "warning", "info"}


def test_the_vocabulary_is_keyed_by_its_own_names():
    """Each phase is found by its name, and the corrected list holds no key that a writer never emits."""
    assert all(name == phase.name for name, phase in PHASES.items())
    assert "event:prefix_hash" not in OPTIONAL_EVENT_KEYS
    assert "prefix_hash" in OPTIONAL_EVENT_KEYS


def test_shares_are_unknown_without_their_parts():
    """Coverage needs a window and parallelism something attributed; an empty window is covered by nothing."""
    assert (Attribution().coverage, Attribution().parallelism) == (None, None)
    assert Attribution(wall_ns=10).coverage is None
    assert Attribution(wall_ns=0, attributed_ns=0).coverage == 0.0
    some = Attribution(wall_ns=10, attributed_ns=5, busy_ns=10)
    assert (some.coverage, some.parallelism) == (0.5, 2.0)
