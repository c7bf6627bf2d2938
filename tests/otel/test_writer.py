"""The writer's thread: jobs in order, errors kept, nothing blocks."""

import threading
import time

import pytest

from otlp_receiver import wait_for
from turntrace.otel import writer as module
from turntrace.otel.guard import Guard
from turntrace.otel.writer import Writer


class Gathering:
    """Keeps what was given until it is flushed."""

    def __init__(self, writer):
        self.writer = writer
        self.kept, self.flushed = [], []

    def take(self, item):
        """Gather an item."""
        self.kept.append(item)
        self.writer.gathered.add(self)

    def flush(self):
        """Write all at once."""
        self.flushed.append(self.kept)
        self.kept = []


@pytest.fixture
def guard():
    """Where errors are counted."""
    return Guard()


@pytest.fixture
def made(guard):
    """Make writers; all are stopped in the end."""
    writers = []

    def make(tick=lambda: False, after=lambda: None):
        writers.append(Writer(guard, tick, after))
        return writers[-1]

    yield make
    for writer in writers:
        assert writer.stop(5)


def test_the_thread_starts_with_the_first_job(made):
    """A writer that has nothing to do has no thread, so that a fork before is clean."""
    writer = made()
    assert writer._thread is None
    ran, done = [], threading.Event()
    writer.submit(lambda: (ran.append(threading.current_thread()), done.set()))
    assert done.wait(5)
    assert (ran[0].name, ran[0].daemon) == ("turntrace-writer", True)


def test_jobs_run_in_order_and_later_ones_last(made):
    """What was submitted first runs first; closing a turn gives way to every line that waits."""
    writer, ran = made(), []
    with writer.paused():
        writer.submit_later(ran.append, "late")
        for number in range(3):
            writer.submit(ran.append, number)
        writer.drain()
    assert ran == [0, 1, 2, "late"]


def test_what_jobs_gathered_is_written_at_once(made):
    """Lines of many jobs make one write, and what follows a slice of jobs is called after it."""
    afters = []
    writer = made(after=lambda: afters.append(len(gathering.flushed)))
    gathering = Gathering(writer)
    with writer.paused():
        for number in range(3):
            writer.submit(gathering.take, number)
        writer.drain()
    assert gathering.flushed == [[0, 1, 2]]
    assert afters[-1] == 1


def test_a_long_queue_delays_no_line_by_its_length(made, monkeypatch):
    """Jobs run for a slice of time; then what they gathered is written before more run."""
    monkeypatch.setattr(module, "_SLICE_NS", 1_000_000)
    writer = made()
    gathering = Gathering(writer)
    with writer.paused():
        for number in range(3):
            writer.submit(gathering.take, number)
            writer.submit(time.sleep, 0.002)
        writer.drain()
    assert len(gathering.flushed) > 1
    assert [item for items in gathering.flushed for item in items] == [0, 1, 2]


def test_a_turn_is_closed_after_the_lines_that_came_before_it(made, monkeypatch):
    """A later job waits for what was submitted before it, even when that takes many slices."""
    monkeypatch.setattr(module, "_SLICE_NS", 1_000_000)
    writer, ran = made(), []
    with writer.paused():
        for number in range(3):
            writer.submit(time.sleep, 0.002)
            writer.submit(ran.append, number)
        writer.submit_later(ran.append, "close")
        writer.drain()
    assert ran == [0, 1, 2, "close"]


def test_when_time_is_up_only_lines_are_written(made):
    """From the given moment on a drain leaves the later jobs, which lose nothing, and runs the others."""
    writer, ran = made(), []
    with writer.paused():
        writer.submit(ran.append, "line")
        writer.submit_later(ran.append, "close")
        writer.drain(time.monotonic() - 1)
        assert "line" in ran


def test_too_many_turns_that_wait_are_behind(made, monkeypatch):
    """Beyond the limit the writer says so, and what is over stays in its journal."""
    monkeypatch.setattr(module, "LATER_LIMIT", 2)
    writer = made()
    with writer.paused():
        writer.submit_later(int)
        assert not writer.is_behind
        writer.submit_later(int)
        assert writer.is_behind
        writer.drain()
        assert not writer.is_behind


def test_run_jobs_runs_what_came_before_and_leaves_the_later_ones(made):
    """A turn that is being closed first takes the lines that came while it waited."""
    writer, ran = made(), []
    with writer.paused():
        writer.submit_later(ran.append, "late")
        writer.submit(ran.append, "line")
        writer.run_jobs()
        assert ran == ["line"]


def test_a_full_queue_drops_and_counts(made, guard, monkeypatch):
    """On a disk that takes nothing the queue has a bound; the caller never waits."""
    monkeypatch.setattr(module, "QUEUE_LIMIT", 2)
    writer, ran = made(), []
    with writer.paused():
        for number in range(5):
            writer.submit(ran.append, number)
        writer.drain()
    assert ran == [0, 1]
    assert guard.dropped == {"journal_queue": 3}


def test_a_job_that_fails_stops_no_other(made, guard):
    """An error of a job is counted; the next one runs."""
    writer, ran = made(), []
    with writer.paused():
        writer.submit(int, "x")
        writer.submit(ran.append, 1)
        writer.drain()
    assert ran == [1]
    assert guard.dropped == {"error": 1}


def test_the_tick_comes_while_something_waits_for_time(made):
    """While the tick says that something waits, it is called again; then the thread sleeps."""
    ticks = []

    def tick():
        ticks.append(time.monotonic())
        return len(ticks) < 3

    made(tick).wake()
    assert wait_for(lambda: len(ticks) >= 3)
    calm = len(ticks)
    time.sleep(0.25)
    assert len(ticks) <= calm + 1


def test_a_sleeping_writer_is_woken_by_a_job(made):
    """After a rest a new job is run at once."""
    writer = made()
    for submit in (writer.submit, writer.submit_later):
        wait_for(lambda: writer._asleep)
        done = threading.Event()
        submit(done.set)
        assert done.wait(5)


def test_aside_means_beside_the_thread_that_drains(made, guard):
    """Exporters shut down on the writer's thread while the caller writes the file."""
    writer, ran = made(), []
    writer.wake()
    done = threading.Event()
    assert writer.run_aside(lambda: (ran.append(threading.current_thread().name), done.set()))
    assert done.wait(5)
    assert ran == ["turntrace-writer"]
    failed = threading.Event()

    def fail():
        failed.set()
        raise RuntimeError

    writer.run_aside(fail)
    assert failed.wait(5)
    assert wait_for(lambda: guard.dropped == {"error": 1})


def test_aside_without_a_thread_runs_here(made):
    """Without a thread nothing was recorded, and at interpreter exit none can be started."""
    ran = []
    assert not made().run_aside(lambda: ran.append(threading.current_thread()))
    assert ran == [threading.current_thread()]


def test_stop_runs_what_waits_and_says_whether_it_could(made):
    """The thread ends with its jobs done; a job that hangs is reported, not waited for."""
    writer, ran, hold = made(), [], threading.Event()
    writer.submit(hold.wait)
    writer.submit(ran.append, 1)
    assert wait_for(lambda: writer._thread is not None)
    assert not writer.stop(0.05)
    hold.set()
    assert writer.stop(5)
    assert ran == [1]
    writer.wake()
    assert writer.stop(5)


def test_stop_without_a_thread_runs_the_jobs_here(made):
    """A stopped writer starts no thread, and what is left is run by who stops it."""
    writer, ran = made(), []
    writer._stop = True
    writer.submit(ran.append, 1)
    assert writer._thread is None
    assert writer.stop(0)
    assert ran == [1]


def test_two_threads_that_wake_at_once_start_one(made, monkeypatch):
    """Who comes second to the start finds the thread there."""
    writer, started = made(), []

    class Counted(threading.Thread):
        def start(self):
            started.append(self)
            super().start()

    monkeypatch.setattr(module.threading, "Thread", Counted)
    with writer._start:
        others = [Counted(target=writer.wake) for _ in range(3)]
        for other in others:
            other.start()
        time.sleep(0.05)
    for other in others:
        other.join()
    assert [thread.name for thread in started if thread not in others] == ["turntrace-writer"]
