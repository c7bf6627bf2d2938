"""The demo as a whole: the agent with its model server, for one turn or as a service of many."""

import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count

from turntrace.demo.agent import run_agent
from turntrace.demo.model_server import ModelServer
from turntrace.demo.scenario import DEMO_SCRIPT

__all__ = ["run_demo", "run_demo_service", "run_service"]


def run_demo(*, speed: float = 1.0) -> str:
    """Return the agent's answer after one turn against a model server of its own; speed 1 takes 3 seconds."""
    with ModelServer(DEMO_SCRIPT, speed=speed) as server:
        return run_agent(server.base_url, speed=speed)


def run_demo_service(seconds: float, *, concurrency: int = 1, speed: float = 1.0) -> int:
    """Run turn after turn for so many seconds, each to its end; return how many turns that made."""
    with ModelServer(DEMO_SCRIPT, speed=speed) as server:
        return run_service(server.base_url, seconds=seconds, concurrency=concurrency, speed=speed)


def run_service(
    base_url: str,
    *,
    turns: int | None = None,
    seconds: float | None = None,
    concurrency: int = 1,
    speed: float = 1.0,
) -> int:
    """Run turns one after another in ``concurrency`` threads; return how many were finished.

    It ends after ``turns`` turns, or with the turns that are running after ``seconds`` seconds, whichever comes
    first. Turn ``n`` has the session id ``service-n``.

    Raises:
        ValueError: Neither end is given.
    """
    if turns is None and seconds is None:
        message = "a service needs an end: turns or seconds"
        raise ValueError(message)
    ends_at = float("inf") if seconds is None else time.monotonic() + seconds
    work = partial(_run_turns, base_url, ends_at, speed)
    shares: list[Iterable[int]] = [
        count(worker, concurrency) if turns is None else range(worker, turns, concurrency)
        for worker in range(concurrency)
    ]
    with ThreadPoolExecutor(concurrency) as pool:
        return sum(pool.map(work, shares))


def _run_turns(base_url: str, ends_at: float, speed: float, numbers: Iterable[int]) -> int:
    finished = 0
    for number in numbers:
        if time.monotonic() >= ends_at:
            break
        run_agent(base_url, speed=speed, session_id=f"service-{number}")
        finished += 1
    return finished
