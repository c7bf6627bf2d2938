"""At most one line a minute from exporters that cannot reach their endpoint."""

import logging

import pytest

from turntrace.otel import quiet
from turntrace.otel.quiet import OncePerMinute, quieten

LOGGERS = ("opentelemetry.exporter.otlp.proto.http.trace_exporter", "opentelemetry.sdk._shared_internal")


@pytest.fixture
def loggers():
    """The exporters' loggers without a filter of ours, put back afterwards."""
    found = [logging.getLogger(name) for name in quiet._LOGGERS]
    before = [list(logger.filters) for logger in found]
    for logger in found:
        logger.filters = [known for known in logger.filters if not isinstance(known, OncePerMinute)]
    yield found
    for logger, filters in zip(found, before, strict=True):
        logger.filters = filters


def test_all_exporters_share_one_line_a_minute(loggers, monkeypatch, caplog):
    """The first of a minute is let through, over all loggers; the next minute has its own."""
    now_s = [1000.0]
    monkeypatch.setattr(quiet.time, "monotonic", lambda: now_s[0])
    quieten()
    for passed_s in (0, 30, 59.9, 60, 61):
        now_s[0] = 1000.0 + passed_s
        for name in LOGGERS:
            logging.getLogger(name).warning("down at %s", passed_s)
    assert [record.getMessage() for record in caplog.records] == ["down at 0", "down at 60"]


def test_to_quieten_twice_adds_one_filter(loggers):
    """Every set-up of exporters asks; the loggers keep the filter they have."""
    quieten()
    quieten()
    assert [sum(isinstance(f, OncePerMinute) for f in logger.filters) for logger in loggers] == [1] * len(
        loggers
    )
    assert len({id(f) for logger in loggers for f in logger.filters if isinstance(f, OncePerMinute)}) == 1


def test_the_names_are_those_the_official_exporters_log_under():
    """A logger that was renamed would speak again: each name exists in the installed packages."""
    import importlib.util

    found = [importlib.util.find_spec(name) is not None for name in LOGGERS]
    assert found == [True, True]
