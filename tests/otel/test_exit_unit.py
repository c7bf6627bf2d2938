"""The end of a process, part by part: the file first, exporters for a bounded time, no handler unasked."""

import atexit
import multiprocessing
import multiprocessing.util
import os
import signal
import threading
import time

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel.fakes import AGENT, CHAT
from otlp_receiver import wait_for
from recordings import Recorded, blocks_of
from turntrace.otel import exit as module
from turntrace.otel.batch import LazyBatchProcessor
from turntrace.otel.exit import at_exit, end, flush_on_sigterm
from turntrace.otel.handle import Handle


def test_the_file_is_whole_though_exporters_hang(tmp_path, clock):
    """Exporters are given their time beside the writing of the file, and no more."""
    hold = threading.Event()
    with Recorded(tmp_path / "t.ndjson", clock=clock, journal="thread") as recorded:
        recorded.tracer().start_span("invoke_agent coder", attributes=AGENT)
        recorded.processor.recording.writer.wake()
        start_s = time.monotonic()
        end(recorded.processor, lambda: hold.wait(30), 0.3)
        assert 0.25 < time.monotonic() - start_s < 5
        assert [block.turn.status for block in recorded.blocks()] == ["interrupted"]
        hold.set()


def test_exporters_that_are_quick_are_not_waited_for(tmp_path, clock):
    """The end takes as long as it needs, failed exporters included."""
    ran = []

    def fail():
        ran.append(threading.current_thread().name)
        raise RuntimeError

    with Recorded(tmp_path / "t.ndjson", clock=clock, journal="thread") as recorded:
        recorded.tracer().start_span("chat m-1", attributes=CHAT).end()
        recorded.processor.recording.writer.wake()
        start_s = time.monotonic()
        end(recorded.processor, fail, 30)
        assert time.monotonic() - start_s < 10
    assert ran == ["turntrace-writer"]
    assert len(blocks_of(tmp_path / "t.ndjson")) == 1


def test_without_a_thread_exporters_end_on_the_callers():
    """Where nothing was recorded there is nothing to wait for."""
    ran = []
    with Recorded() as recorded:
        end(recorded.processor, lambda: ran.append(threading.current_thread()), 30)
    assert ran == [threading.current_thread()]


class Lists:
    """The lists of callbacks that a process ends with."""

    def __init__(self, monkeypatch):
        self.atexit, self.forked, self.worker, self.after_fork = [], [], [], []
        self.is_worker = False
        util = multiprocessing.util
        monkeypatch.setattr(atexit, "register", self.atexit.append)
        monkeypatch.setattr(atexit, "unregister", self._unregister)
        monkeypatch.setattr(os, "register_at_fork", self._forked_by)
        monkeypatch.setattr(util, "Finalize", lambda _, call, exitpriority: self.worker.append(call))
        monkeypatch.setattr(
            util, "register_after_fork", lambda who, call: self.after_fork.append((who, call))
        )
        monkeypatch.setattr(multiprocessing, "parent_process", lambda: self if self.is_worker else None)

    def _forked_by(self, *, after_in_child):
        self.forked.append(after_in_child)

    def _unregister(self, call):
        self.atexit[:] = [known for known in self.atexit if known != call]


@pytest.fixture
def lists(monkeypatch):
    """Lists of a process of its own."""
    return Lists(monkeypatch)


def test_a_callback_runs_at_the_end_of_the_process_until_it_is_undone(lists):
    """After undo() it is on no list, and what was on one does nothing."""
    ran = []
    undo = at_exit(lambda: ran.append(1))
    (once,) = lists.atexit
    once()
    assert ran == [1]
    assert lists.worker == []
    undo()
    assert lists.atexit == []
    once()
    assert ran == [1]


def test_a_worker_of_multiprocessing_has_a_list_of_its_own(lists):
    """Workers end without atexit: they are asked to run the callback by multiprocessing itself."""
    ran = []
    lists.is_worker = True
    at_exit(lambda: ran.append(1))
    (finalize,) = lists.worker
    finalize()
    assert ran == [1]


def test_a_forked_worker_puts_itself_on_its_list(lists):
    """The child asks multiprocessing to be asked again, unless the callback was undone before the fork."""
    undo = at_exit(lambda: None)
    (in_child,) = lists.forked
    in_child()
    ((who, call),) = lists.after_fork
    lists.is_worker = True
    call(who)
    assert len(lists.worker) == 1
    undo()
    in_child()
    assert len(lists.after_fork) == 1


def test_without_multiprocessing_there_is_no_list_to_be_on(lists, monkeypatch):
    """A program that never imported it does not import it because of us."""
    monkeypatch.delitem(module.sys.modules, "multiprocessing.util")
    at_exit(lambda: None)
    lists.forked[0]()
    assert (lists.worker, lists.after_fork) == ([], [])


def test_where_processes_cannot_fork_there_is_nothing_to_ask(lists, monkeypatch):
    """The callback is on the list of this process all the same, and a processor can be made."""
    from turntrace.otel.options import RecordingOptions
    from turntrace.otel.processor import TurnSpanProcessor

    monkeypatch.delattr(os, "register_at_fork")
    at_exit(lambda: None)
    TurnSpanProcessor(RecordingOptions())
    assert (len(lists.atexit), lists.forked) == (1, [])


@pytest.fixture
def sigterm():
    """The default action for SIGTERM; afterwards what it was."""
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)


def test_a_flush_on_sigterm_ends_in_the_signal_itself(sigterm, monkeypatch):
    """The handler gives way at once, flushes on a daemon thread, then sends the signal again, come what may."""
    sent, ran = [], []

    def flush():
        ran.append((threading.current_thread().name, threading.current_thread().daemon))
        ran.append(signal.getsignal(signal.SIGTERM))
        raise RuntimeError

    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))
    assert flush_on_sigterm(flush)
    signal.raise_signal(signal.SIGTERM)
    assert wait_for(lambda: sent) == [(os.getpid(), signal.SIGTERM)]
    assert ran == [("turntrace-sigterm", True), signal.SIG_DFL]


def test_somebody_elses_handler_stays(sigterm):
    """An application that handles SIGTERM itself is left alone."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    assert not flush_on_sigterm(lambda: None)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN


def test_off_the_main_thread_no_handler_can_be_set(sigterm):
    """Then there is none, and no error."""
    answers = []
    thread = threading.Thread(target=lambda: answers.append(flush_on_sigterm(lambda: None)))
    thread.start()
    thread.join()
    assert answers == [False]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_what_no_exporter_took_in_time_is_counted(tmp_path, clock):
    """Spans whose export hangs when time is up: told in dropped, and in the file."""
    hold = threading.Event()

    class Hanging(InMemorySpanExporter):
        def export(self, spans):
            hold.wait(30)
            return super().export(spans)

    with Recorded(tmp_path / "t.ndjson", clock=clock, journal="thread") as recorded:
        batch = LazyBatchProcessor(Hanging, recorded.guard, 100, lambda: None)
        recorded.processor.follow_with([batch])
        recorded.tracer().start_span("chat m-1", attributes=CHAT).end()
        recorded.processor.recording.writer.wake()
        handle = Handle(recorded.processor, on_shutdown=lambda: end(recorded.processor, batch.shutdown, 0.3))
        assert handle.dropped == {}
        handle.shutdown()
        assert handle.dropped == {"export_unfinished": 1}
        assert len(recorded.blocks()) == 1
        hold.set()
        assert wait_for(lambda: recorded.processor.unsettled == 0)
    assert Handle(None).dropped == {}
