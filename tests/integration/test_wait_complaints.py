"""Complaints about waits and payloads in other tools: retries side by side, a kill in a back-off, size."""

import asyncio
import gc
import signal
import time
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

import turntrace as tt
from integration.programs import run_code
from otel.fakes import MS
from recordings import Recorded
from turntrace.files.read import read_paths


@given(st.lists(st.lists(st.integers(1, 400), min_size=2, max_size=7), min_size=1, max_size=5))
def test_complaint_03_waits_in_parallel_never_add_up_to_more_than_the_wall(tmp_path_factory, calls):
    """Retrying calls side by side: the rows sum to the turn, and none is below zero."""
    out = tmp_path_factory.mktemp("waits") / "t.ndjson"

    async def call(sleeps):
        with tt.generation(model="m"):
            for number, sleep_us in enumerate(sleeps):
                with tt.phase("retry_wait" if number % 2 else "provider_connect"):
                    await asyncio.sleep(sleep_us / 1e6)

    async def agent():
        async with tt.turn("a"):
            await asyncio.gather(*(call(sleeps) for sleeps in calls))

    with Recorded(out) as recorded:
        asyncio.run(agent())
    (block,) = recorded.blocks()
    found = block.attribution
    assert sum(times.wall_share_ns for times in found.spans) + found.unattributed_ns == found.wall_ns
    assert min(times.wall_share_ns for times in found.spans) >= 0
    assert min(times.exclusive_ns for times in found.spans) >= 0


def test_complaint_04_a_kill_inside_a_back_off_leaves_attempt_and_wait(tmp_path):
    """The refused attempt had ended, the wait was running: both are in the report of the dead process."""
    out = tmp_path / "t.ndjson"
    ended = run_code(
        f"""
import os, signal, time
import turntrace as tt
tt.configure(trace={str(out)!r}, journal="sync")
with tt.turn("a"), tt.generation(model="m"):
    with tt.phase("provider_connect"):
        pass
    tt.count("retry_count")
    with tt.phase("retry_wait"):
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
"""
    )
    assert ended.status == -signal.SIGKILL
    (turn,) = read_paths([str(out)]).turns
    assert turn.status == "interrupted"
    assert {span.phase: span.outcome for span in turn.spans} == {
        "generation": "incomplete",
        "provider_connect": "ok",
        "retry_wait": "incomplete",
    }
    assert turn.counters["retry_count"] == 1


@pytest.mark.parametrize("journal", ["sync", "thread"])
def test_complaint_32_a_huge_payload_costs_the_loop_nothing_that_grows_with_it(tmp_path, journal):
    """Ten megabytes in an attribute that is not wanted: less than a millisecond more than ten bytes."""

    def ms_of(payload):
        start_ns = time.thread_time_ns()
        with tt.tool("bash", attributes={"app.output": payload}):
            pass
        return (time.thread_time_ns() - start_ns) / MS

    small, large = "x" * 10, "x" * 10_000_000
    with Recorded(tmp_path / "t.ndjson", journal=journal) as recorded, tt.turn("a"):
        spent = {size: [] for size in (small, large)}
        for _ in range(21):
            for payload, found in spent.items():
                found.append(ms_of(payload))
                recorded.exporter.clear()
        gc.collect()
    assert median(spent[large]) - median(spent[small]) < 1
    assert (tmp_path / "t.ndjson").stat().st_size < 100_000
