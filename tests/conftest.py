"""Fixtures shared by all tests: one recording at a time, nothing left behind."""

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("ci", derandomize=True, max_examples=200, deadline=None)
settings.register_profile("dev", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


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
