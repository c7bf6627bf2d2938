"""Proof of overlap: statements D1 to D8, with real threads, tasks and sockets."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turntrace.bench.probe import Barrier, ProbeServer, pass_barrier
from turntrace.core.overlap import BarrierEvent, OverlapVerdict, overlap_of

LONG_S = 30.0
SHORT_S = 0.05


def _run(barrier, handlers, *, workers):
    def handler(name):
        barrier.start(name)
        barrier.finish(name)

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(handler, handlers))
    return barrier.record()


def test_d1_a_parallel_executor_is_proven():
    """Both starts come before the first finish."""
    found = _run(Barrier(2, LONG_S), "ab", workers=2)
    assert found.verdict is OverlapVerdict.PROVEN
    assert found.all_started_before_first_completed
    assert (found.started, found.completed, found.max_concurrency, found.timed_out) == (2, 2, 2, False)


def test_d2_a_serial_executor_is_found_out_within_the_time_out():
    """The first gives up, the second is not kept: no deadlock, and both events succeeded."""
    found = _run(Barrier(2, SHORT_S), "ab", workers=1)
    assert found.verdict is OverlapVerdict.SERIAL
    assert not found.all_started_before_first_completed
    assert (found.started, found.completed, found.max_concurrency, found.timed_out) == (2, 2, 1, True)
    assert [event.kind for event in found.events] == ["start", "timeout", "finish", "start", "finish"]


def test_d3_one_handler_alone_attempts_nothing():
    """It started, it was not joined."""
    found = _run(Barrier(2, SHORT_S), "a", workers=1)
    assert (found.verdict, found.started) == (OverlapVerdict.NOT_ATTEMPTED, 1)
    assert not found.all_started_before_first_completed


def test_d4_threads_and_tasks_both_work():
    """Tasks come through threads, as they do in frameworks."""

    async def handler(barrier, name):
        await asyncio.to_thread(barrier.start, name)
        barrier.finish(name)

    async def both(barrier):
        await asyncio.gather(handler(barrier, "a"), handler(barrier, "b"))

    barrier = Barrier(2, LONG_S)
    asyncio.run(both(barrier))
    assert barrier.record().verdict is OverlapVerdict.PROVEN
    assert _run(Barrier(2, LONG_S), "ab", workers=2).verdict is OverlapVerdict.PROVEN


def test_d7_a_handler_that_raises_has_started(tmp_path):
    """Overlap can be true while the case fails for the error."""
    barrier = Barrier(2, LONG_S)

    def tool(name):
        with pass_barrier(str(tmp_path / "probe"), name):
            raise RuntimeError(name)

    with ProbeServer(tmp_path / "probe", barrier), ThreadPoolExecutor(2) as pool:
        for result in [pool.submit(tool, name) for name in "ab"]:
            with pytest.raises(RuntimeError):
                result.result()
        assert _eventually(lambda: barrier.record().completed == 2)
    assert barrier.record().verdict is OverlapVerdict.PROVEN


@pytest.mark.parametrize(("workers", "verdict"), [(2, OverlapVerdict.PROVEN), (1, OverlapVerdict.SERIAL)])
def test_d8_a_hundred_runs_say_the_same(workers, verdict):
    """Fifty milliseconds of delay at a random place change nothing but the wait."""
    delays = iter([0.05, 0.0, 0.0, 0.05] * 100)

    def handler(barrier, name):
        threading.Event().wait(next(delays) if workers == 2 else 0)
        barrier.start(name)
        barrier.finish(name)

    for _ in range(100):
        barrier = Barrier(2, LONG_S if workers == 2 else 0.002)
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(lambda name, at=barrier: handler(at, name), "ab"))
        assert barrier.record().verdict is verdict


def test_a_late_start_is_load_and_no_verdict():
    """It came after the barrier gave up and before anybody finished: neither serial nor proven."""
    kinds = [("a", "start"), ("a", "timeout"), ("b", "start"), ("a", "finish"), ("b", "finish")]
    events = [BarrierEvent(handler=handler, kind=kind) for handler, kind in kinds]
    assert overlap_of(events, expected=2).verdict is OverlapVerdict.INCONCLUSIVE


orders = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["start", "timeout", "finish"])), max_size=12
)


@given(orders, st.lists(st.integers(0, 10**12), min_size=12, max_size=12))
def test_d8_times_never_decide(order, times):
    """The same order with any times has the same verdict."""
    plain = [BarrierEvent(handler=handler, kind=kind) for handler, kind in order]
    timed = [BarrierEvent(handler=h, kind=k, t_ns=t) for (h, k), t in zip(order, times, strict=False)]
    assert overlap_of(plain, expected=2).verdict is overlap_of(timed, expected=2).verdict


def test_who_says_nothing_is_not_counted(tmp_path):
    """A connection without a name is no handler, and a hang-up is an end."""
    import socket

    barrier = Barrier(1, LONG_S)
    with ProbeServer(tmp_path / "probe", barrier):
        with socket.socket(socket.AF_UNIX) as silent:
            silent.connect(str(tmp_path / "probe"))
        with socket.socket(socket.AF_UNIX) as rude:
            rude.connect(str(tmp_path / "probe"))
            rude.sendall(b"a\n")
            rude.recv(3)
        assert _eventually(lambda: barrier.record().completed == 1)
    assert barrier.record().started == 1


def _eventually(holds):
    event = threading.Event()
    for _ in range(500):
        if holds():
            return True
        event.wait(0.01)
    return False
