"""A command's private receiver: what it is told, what is kept, and how long one waits for it."""

import signal
import threading
import time
from types import SimpleNamespace

import httpx
import pytest
import requests  # noqa: F401 - here, where its warning of a missing module is no error

from otlp_receiver import HttpReceiver
from otlp_requests import PROTOBUF, traces
from turntrace.collect import reception as reception_module
from turntrace.collect.presets import PRESETS
from turntrace.collect.reception import Reception
from turntrace.collect.sink import RequestFiles
from turntrace.files.read import read_paths


def send(reception, body=None):
    """What an exporter does with the variables of ``reception``."""
    endpoint = reception.prepared.environment["OTEL_EXPORTER_OTLP_ENDPOINT"]
    sent = traces(1) if body is None else body
    return httpx.post(f"{endpoint}/v1/traces", content=sent, headers={"content-type": PROTOBUF}).status_code


def listening(tmp_path, preset="otel", env=(), argv=("agent",)):
    """A reception of a command."""
    return Reception(PRESETS[preset], argv, dict(env), tmp_path / "requests")


def test_what_the_command_sends_is_kept(tmp_path):
    """An acknowledged request is on disk, where a report can read it."""
    with listening(tmp_path) as reception:
        assert send(reception) == 200
        assert (reception.requests, reception.remarks) == (1, ())
        assert read_paths([str(tmp_path / "requests" / "traces.pb")]).turns
        reception.settle(1)
        with pytest.raises(httpx.TransportError):
            send(reception)


def test_what_went_to_a_backend_still_does(tmp_path):
    """The command's own endpoint gets the bytes, before anybody has read them."""
    with HttpReceiver() as backend:
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": backend.endpoint}
        with listening(tmp_path, env=env) as reception:
            send(reception)
            reception.settle(5)
            assert reception.remarks == ()
    assert backend.bodies == [traces(1)]


def test_a_backend_that_is_gone_is_told_of(tmp_path):
    """So that nobody looks for the trace there."""
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}
    with listening(tmp_path, env=env) as reception:
        send(reception)
        reception.settle(0.1)
        assert reception.remarks == ("1 requests could not be passed on to 127.0.0.1",)


def test_a_ctrl_c_ends_the_waiting_only(tmp_path):
    """What had come is there to be written; nothing more is taken."""
    with listening(tmp_path, "codex", argv=("codex",)) as reception:
        threading.Timer(0.2, signal.raise_signal, (signal.SIGINT,)).start()
        started_s = time.monotonic()
        reception.settle(60)
        assert time.monotonic() - started_s < 10
        assert reception.remarks == (f"codex sent no telemetry: {PRESETS['codex'].hint}",)


def test_late_telemetry_is_waited_for(tmp_path, monkeypatch):
    """Until a pause: what comes in time is kept."""
    monkeypatch.setattr(reception_module, "_QUIET_S", 1.5)
    with listening(tmp_path) as reception:
        send(reception)
        late = [threading.Timer(delay_s, send, (reception,)) for delay_s in (0.1, 0.25)]
        for timer in late:
            timer.start()
        reception.settle(5)
        assert reception.requests == 3


@pytest.mark.parametrize(("preset", "least_s", "most_s"), [("otel", 0, 0.4), ("codex", 0.5, 0.9)])
def test_a_silent_command(tmp_path, preset, least_s, most_s):
    """One that need not send anything costs little; of an agent that should the person hears why not."""
    with listening(tmp_path, preset) as reception:
        started_s = time.monotonic()
        reception.settle(0.5)
        assert least_s <= time.monotonic() - started_s <= most_s
        assert bool(reception.remarks) is (preset == "codex")
        assert all(PRESETS["codex"].hint in remark for remark in reception.remarks)


def test_a_stream_of_telemetry_that_never_ends_is_left(tmp_path):
    """A process that lives on must not keep the run."""
    over = threading.Event()

    def chatter(reception):
        while not over.wait(0.05):
            try:
                send(reception)
            except httpx.TransportError:
                return

    with listening(tmp_path) as reception:
        send(reception)
        thread = threading.Thread(target=chatter, args=(reception,))
        thread.start()
        started_s = time.monotonic()
        reception.settle(0.6)
        assert 0.55 <= time.monotonic() - started_s < 2.5
        over.set()
        thread.join()


def test_refused_requests_are_told(tmp_path):
    """What could not be read is counted by its reason."""
    with listening(tmp_path) as reception:
        assert send(reception, b"nonsense") == 400
        assert reception.remarks == ("requests refused: 1 malformed",)


def test_a_folder_that_cannot_be_made_leaves_nothing_running(tmp_path):
    """The command can still be started as it was."""
    (tmp_path / "requests").write_text("")
    before = threading.active_count()
    reception = listening(tmp_path)
    with pytest.raises(OSError), reception:
        pass
    assert threading.active_count() == before
    assert reception.prepared.argv == ("agent",)
    assert (reception.requests, reception.remarks) == (0, ())
    reception.settle(0)
    reception._pass_on(SimpleNamespace())


def test_a_full_disk_is_not_the_commands_matter(tmp_path, monkeypatch):
    """It is answered as ever, so that it neither retries nor logs nor waits; what was lost is told."""

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RequestFiles, "take", full)
    with listening(tmp_path) as reception:
        assert send(reception) == 200
        assert reception.remarks == ("1 requests could not be kept: No space left on device",)
