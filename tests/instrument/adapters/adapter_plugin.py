"""A pytest plugin for the SDKs' own test-suites: every test runs in a turn, with our adapters on.

    pytest -p instrument.adapters.adapter_plugin tests/test_streaming.py

TURNTRACE_ADAPTERS=0 leaves everything off, for comparison. At the end it says what was recorded, and writes
how each test ended to the file that TURNTRACE_OUTCOMES names.
"""

import gc
import json
import os
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from recordings import Recorded
from turntrace.instrument.adapters.instrumentors import AnthropicAdapter, OpenAIAdapter
from turntrace.instrument.adapters.leftovers import LEFTOVERS

IS_ON = os.environ.get("TURNTRACE_ADAPTERS") != "0"
SEEN: Counter[str] = Counter()
OUTCOMES: dict[str, str] = {}


def pytest_configure():
    """Start the adapters."""
    if IS_ON:
        for adapter in (OpenAIAdapter(), AnthropicAdapter()):
            adapter.instrument(skip_dep_check=True)


@pytest.fixture(autouse=True)
def _recorded():
    if not IS_ON:
        yield
        return
    import turntrace as tt

    with tempfile.TemporaryDirectory() as folder, Recorded(Path(folder, "t.ndjson")) as recording:
        with tt.turn("suite"):
            yield
        if recording.processor.recording.table.open_spans:
            gc.collect()
            LEFTOVERS.settle(5)
        for span in recording.exporter.get_finished_spans():
            SEEN[f"{span.name.partition(' ')[0]} {span.attributes.get('turntrace.outcome')}"] += 1
        SEEN["left open"] += len(recording.processor.recording.table.open_spans)
        SEEN["own errors"] += recording.guard.dropped["error"]


def pytest_runtest_logreport(report):
    """Note how a test ended: its body, unless something before or after it failed."""
    if report.when == "call" or report.outcome != "passed":
        OUTCOMES[report.nodeid] = "failed" if report.failed else OUTCOMES.get(report.nodeid, report.outcome)


def pytest_terminal_summary(terminalreporter):
    """Say what was recorded."""
    terminalreporter.write_line(f"turntrace: {dict(sorted(SEEN.items()))}")
    if told := os.environ.get("TURNTRACE_OUTCOMES"):
        Path(told).write_text(json.dumps(OUTCOMES))
