"""Fixtures shared by all tests: one recording at a time, nothing left behind."""

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "ci",
    derandomize=True,
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],  # under coverage, beside others
)
settings.register_profile("dev", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

# A shell starts a job in the background with these ignored, and every child would inherit it.
for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch):
    """No variable of the caller's environment decides a test, and no recording outlives one."""
    for name in list(os.environ):
        if name.startswith(("OTEL_", "TURNTRACE_")) or name in {"TRACEPARENT", "TRACESTATE"}:
            monkeypatch.delenv(name)
    yield
    from turntrace.otel import slot

    recorder, slot.recorder = slot.recorder, None
    assert recorder is None, "a test left its recording switched on"
