"""A model server, a recording and the adapters, switched on for one test and off after it."""

import gc

import pytest

pytest.importorskip("openai")

from frameworks.model_server import ModelServer
from recordings import Recorded
from turntrace.instrument.adapters.instrumentors import AnthropicAdapter, OpenAIAdapter
from turntrace.instrument.adapters.leftovers import LEFTOVERS


@pytest.fixture(scope="session")
def server():
    """A model server for all tests; each scripts what it asks for."""
    with ModelServer() as running:
        yield running


@pytest.fixture(autouse=True)
def _adapters(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_OPEN_TELEMETRY", "false")
    adapters = [OpenAIAdapter(), AnthropicAdapter()]
    for adapter in adapters:
        adapter.instrument(skip_dep_check=True)
    yield
    for adapter in adapters:
        adapter.uninstrument()


@pytest.fixture
def recorded(tmp_path):
    """A recording into a file."""
    with Recorded(tmp_path / "t.ndjson") as recording:
        yield recording
        gc.collect()
        LEFTOVERS.settle(5)
