"""Which calls owe a count of tokens: statements C1 to C6."""

from hypothesis import given
from hypothesis import strategies as st

from turntrace.core.owed_usage import USAGE_INCOMPLETE, UsageCall, owed_usage


def _call(name="1", status=200, tokens=(3, 1), cached=None):
    return UsageCall(
        name=name, status=status, input_tokens=tokens[0], output_tokens=tokens[1], cached_input_tokens=cached
    )


NONE = (None, None)


def test_c1_one_silent_call_makes_totals_unknown():
    """Not the partial sum and not 0."""
    found = owed_usage([_call(), _call("2", tokens=NONE)])
    assert (found.input_tokens, found.output_tokens, found.total_tokens) == (None, None, None)
    assert (found.reported, found.owed, found.missing) == (1, 2, ("2",))
    assert found.failures == (USAGE_INCOMPLETE,)


def test_c2_a_reported_zero_stays_zero():
    """Zero is a count."""
    found = owed_usage([_call(tokens=(0, 0))])
    assert (found.input_tokens, found.total_tokens, found.failures) == (0, 0, ())


def test_c3_what_was_refused_owes_nothing_and_what_was_answered_does():
    """A primary call that was answered and broke off owes; one that was refused does not."""
    refused = owed_usage([_call("1", status=503, tokens=NONE), _call("2")])
    assert (refused.input_tokens, refused.attempts, refused.attempts_refused) == (3, 2, 1)
    unreached = owed_usage([_call("1", status=0, tokens=NONE), _call("2")])
    assert (unreached.total_tokens, unreached.failures) == (4, ())
    begun = owed_usage([_call("1", status=200, tokens=NONE), _call("2")])
    assert (begun.input_tokens, begun.missing) == (None, ("1",))


def test_c3_what_is_unknown_owes():
    """Nobody says that it was refused."""
    assert owed_usage([_call("1", status=None, tokens=NONE)]).failures == (USAGE_INCOMPLETE,)


def test_c6_no_call_is_a_known_zero():
    """Nothing was asked, nothing is missing."""
    found = owed_usage([])
    assert (found.input_tokens, found.total_tokens, found.owed, found.failures) == (0, 0, 0, ())
    assert found.cached_share_first is None


def test_the_cached_share_is_of_the_first_answered_call():
    """Later calls reuse what the first one wrote."""
    calls = [_call("0", status=429, tokens=NONE), _call(tokens=(10, 1), cached=5), _call(cached=3)]
    assert owed_usage(calls).cached_share_first == 0.5
    assert owed_usage([_call()]).cached_share_first is None


tokens = st.one_of(st.none(), st.integers(0, 9))
calls = st.lists(
    st.builds(
        UsageCall,
        name=st.just("x"),
        status=st.sampled_from([None, 0, 200, 299, 300, 429]),
        input_tokens=tokens,
        output_tokens=tokens,
    )
)


@given(calls)
def test_a_total_exists_exactly_if_every_owed_call_reported(found):
    """For any mix of calls."""
    made = owed_usage(found)
    owing = [call for call in found if call.status is None or 200 <= call.status < 300]
    whole = all(call.input_tokens is not None and call.output_tokens is not None for call in owing)
    assert (made.total_tokens is not None) == whole == (not made.failures)
    if whole:
        assert made.total_tokens == sum(call.input_tokens + call.output_tokens for call in owing)
    assert made.owed + made.attempts_refused == made.attempts
