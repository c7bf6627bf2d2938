"""A clock that stands still, for the recording and for the SDK alike."""

import pytest

from otel.fakes import FakeClock


@pytest.fixture
def clock(monkeypatch):
    """Stamps spans of every instrumentation; give it to ``Recorded`` too."""
    fake = FakeClock()
    monkeypatch.setattr("opentelemetry.sdk.trace.time_ns", fake.wall_ns)
    return fake
