"""Totals of tokens: unknown stays unknown, partial sums say so, contradictions are told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turntrace.core.model import Usage
from turntrace.core.usage import TOKEN_FIELDS, contradiction, inclusive_input, richer, total

counts = st.one_of(st.none(), st.integers(0, 10**6))
reports = st.builds(
    Usage,
    span_id=st.just("01"),
    provenance=st.sampled_from(["reported", "missing", "estimated"]),
    input_tokens=counts,
    cached_input_tokens=counts,
    cache_write_tokens=counts,
    output_tokens=counts,
    reasoning_tokens=counts,
)


def usage(tokens_in=None, tokens_out=None, **fields):
    return Usage(span_id="01", input_tokens=tokens_in, output_tokens=tokens_out, **fields)


MISSING = usage(provenance="missing")


def test_all_reported():
    """Where every call reported, the totals are the sums and the turn is complete."""
    found = total([usage(10, 2, cached_input_tokens=4), usage(20, 3, cached_input_tokens=0)], 2)
    assert (
        found.input_tokens,
        found.output_tokens,
        found.total_tokens,
        found.cached_input_tokens,
    ) == (30, 5, 35, 4)
    assert (found.complete, found.reports, found.missing) == (True, 2, 0)
    assert found.reasoning_tokens is None


def test_a_missing_report_makes_totals_unknown():
    """A call without usage makes every total null; what is known is an explicit partial sum."""
    found = total([usage(10, 2), MISSING], 2)
    assert (found.input_tokens, found.output_tokens, found.total_tokens) == (None, None, None)
    assert (found.complete, found.reports, found.missing) == (False, 1, 1)
    assert tuple(found.known[name] for name in ("input_tokens", "output_tokens", "total_tokens")) == (
        10,
        2,
        12,
    )


def test_a_call_without_any_record_makes_totals_unknown():
    """A refused call has no record; it counts as a model request that did not report."""
    found = total([usage(10, 2)], 2)
    assert (found.input_tokens, found.complete, found.reports, found.missing) == (None, False, 1, 0)


def test_one_unknown_field():
    """A field that one call does not state is unknown in total, the others are not."""
    found = total([usage(10, 2), usage(5, 1, cached_input_tokens=3)], 2)
    assert (
        found.input_tokens,
        found.cached_input_tokens,
        found.known["cached_input_tokens"],
    ) == (15, None, 3)
    assert found.complete


def test_half_a_report_is_not_complete():
    """Input alone does not make a turn complete."""
    found = total([usage(10, None)], 1)
    assert (
        found.input_tokens,
        found.output_tokens,
        found.total_tokens,
        found.complete,
    ) == (10, None, None, False)


def test_zero_is_zero():
    """A reported 0 is 0."""
    found = total([usage(0, 0)], 1)
    assert (found.input_tokens, found.output_tokens, found.total_tokens, found.complete) == (0, 0, 0, True)


@pytest.mark.parametrize("requests", [None, 0, 3])
def test_nothing_known(requests):
    """Without a record of any call nothing is known, not even that something is missing."""
    found = total([], requests)
    assert (found.input_tokens, found.complete, found.reports, found.missing) == (None, None, 0, 0)
    assert set(found.known.values()) == {None}


def test_estimates_are_no_reports():
    """An estimate is neither added nor called a report."""
    found = total([usage(10, 2, provenance="estimated")], 1)
    assert (found.input_tokens, found.complete, found.reports, found.missing) == (None, False, 0, 0)
    assert found.known["input_tokens"] is None


@given(st.lists(reports), st.integers(0, 5))
def test_total_is_known_or_null(usages, more):
    """A total is either null or exactly the known sum, and the latter only when every call reported it."""
    found = total(usages, len(usages) + more)
    for name in TOKEN_FIELDS:
        values = [getattr(one, name) for one in usages if one.provenance == "reported"]
        is_whole = bool(values) and None not in values and len(values) == len(usages) + more
        assert getattr(found, name) == (sum(values) if is_whole else None)
        assert found.known[name] == (
            sum(value or 0 for value in values) if any(v is not None for v in values) else None
        )


def test_inclusive_input():
    """Input without the cache plus the cache; unknown input stays unknown."""
    assert inclusive_input(7, 100, 10) == 117
    assert inclusive_input(7, None, None) == 7
    assert inclusive_input(None, 1, 1) is None


def test_richer():
    """The report that says most wins, a report before none, of equals the first."""
    more, less = usage(1, 2, cached_input_tokens=0), usage(9, 9)
    assert richer([less, more]) is more
    assert richer([MISSING, less]) is less
    assert richer([less, usage(8, 8)]) is less
    assert richer([]) is None


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (usage(10, 2), None),
        (usage(10, 2, raw={"gen_ai.usage.total_tokens": 12}), None),
        (
            usage(361, 414, raw={"gen_ai.usage.total_tokens": 414}),
            "input and output do not add up to the stated total",
        ),
        (usage(10, 2, cached_input_tokens=6, cache_write_tokens=5), "more cached tokens than input tokens"),
        (usage(10, 2, reasoning_tokens=3), "more reasoning tokens than output tokens"),
        (usage(None, 2, cached_input_tokens=6, raw={"total": 1}), None),
        (usage(2, None, reasoning_tokens=6), None),
    ],
)
def test_contradictions(one, reason):
    """Counts of one call that cannot all be true are told; unknown ones contradict nothing."""
    assert reason == contradiction(one)
