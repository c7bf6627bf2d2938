"""The demo as a whole: one turn, many turns one after another, many at once in one event loop."""

import json
import time

import pytest

from turntrace.demo.chat_client import ModelUnavailableError, StreamBrokenError
from turntrace.demo.crowd import run_many
from turntrace.demo.model_server import ModelServer
from turntrace.demo.scenario import ANSWER, DEMO_SCRIPT
from turntrace.demo.script import InOrder, Reply
from turntrace.demo.service import run_demo, run_demo_service, run_service

SPEED = 50.0


def test_the_demo_needs_nothing_but_itself():
    """One call starts the server, runs a turn and returns the answer."""
    assert run_demo(speed=SPEED) == ANSWER


def test_at_speed_one_the_demo_takes_about_three_seconds():
    """The turn is long enough to look at and short enough to wait for."""
    started = time.monotonic()
    run_demo()
    assert 2.5 < time.monotonic() - started < 6


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_service_runs_as_many_turns_as_it_is_told(concurrency):
    """The number of turns is exact, whatever the number of threads."""
    with ModelServer(DEMO_SCRIPT, speed=SPEED) as server:
        assert run_service(server.base_url, turns=5, concurrency=concurrency, speed=SPEED) == 5
        assert len(server.log.wait(25)) == 25


def test_a_service_stops_after_its_time_with_whole_turns():
    """When its time is up no turn is started, and none is cut off."""
    with ModelServer(DEMO_SCRIPT, speed=SPEED) as server:
        finished = run_service(server.base_url, seconds=0.3, concurrency=2, speed=SPEED)
        assert finished >= 2
        assert len(server.log.wait(5 * finished)) == 5 * finished
    assert run_demo_service(0.0) == 0


def test_a_service_without_an_end_is_refused():
    """Either turns or seconds must be given."""
    with pytest.raises(ValueError, match="turns or seconds"):
        run_service("http://127.0.0.1:1")


def test_a_turn_that_fails_ends_the_service():
    """A service hides no failure."""
    with ModelServer(InOrder((Reply(status=400),))) as server, pytest.raises(ModelUnavailableError):
        run_service(server.base_url, turns=2, concurrency=2)


async def test_a_crowd_gets_one_answer_a_turn():
    """Every turn of a crowd sends its own requests, in its own conversation."""
    with ModelServer(DEMO_SCRIPT, speed=200, keep_requests=True) as server:
        assert await run_many(server.base_url, 40) == [ANSWER] * 40
        records = server.log.wait(200)
    asked = [
        json.loads(record.request.partition(b"\r\n\r\n")[2])["messages"][0]["content"] for record in records
    ]
    assert {name: asked.count(name) for name in asked} == {f"crowd-{number}": 5 for number in range(40)}


async def test_a_crowd_hides_no_failure():
    """Refusals beyond the last retry and broken streams end the crowd."""
    with ModelServer(InOrder((Reply(status=503),))) as server, pytest.raises(ExceptionGroup) as failed:
        await run_many(server.base_url, 1)
    assert len(server.log.wait(4)) == 4
    assert failed.group_contains(ModelUnavailableError)
    with ModelServer(InOrder((Reply(status=400),))) as server, pytest.raises(ExceptionGroup):
        await run_many(server.base_url, 1)
    assert len(server.log.records()) == 1
    broken = InOrder((Reply(content=("a",), drop_after_chunks=1),))
    with ModelServer(broken) as server, pytest.raises(ExceptionGroup) as failed:
        await run_many(server.base_url, 1)
    assert failed.group_contains(StreamBrokenError)


async def test_a_crowd_whose_server_leaves_before_an_answer_closes_its_connections():
    """A connection that ends before the headers is an error, not a leak."""

    def script(request):
        raise ConnectionResetError

    with ModelServer(script) as server, pytest.raises(ExceptionGroup) as failed:
        await run_many(server.base_url, 2)
    assert failed.group_contains(EOFError)
