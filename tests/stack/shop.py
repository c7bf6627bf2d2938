"""An agent whose turns differ in what searches look for; run as a program, it records to its first argument."""

import contextlib
import sys
import time

import turntrace as tt

tt.configure(trace=sys.argv[1])


def models():
    """Mostly the model."""
    with tt.turn("agent", session_id="s-1"), tt.generation(model="m-large", provider="p") as call:
        time.sleep(0.05)
        call.usage(input_tokens=10, output_tokens=5)


def fails():
    """A tool that fails, and the turn with it."""
    with contextlib.suppress(RuntimeError), tt.turn("agent", session_id="s-2"), tt.tool("fetch"):
        time.sleep(0.03)
        raise RuntimeError


def retries():
    """A refused request."""
    with tt.turn("agent", session_id="s-1"):
        with tt.phase("retry_wait", {"turntrace.reason": "429"}):
            tt.count("retry_count")
            time.sleep(0.03)
        with tt.generation(model="m-large", provider="p"):
            time.sleep(0.01)


def approvals():
    """A person who thinks, once long and once shortly."""
    for wait_s in (0.25, 0.05):
        with tt.turn("agent", session_id="s-3"), tt.phase("permission_wait"):
            time.sleep(wait_s)


def gaps():
    """Time that nothing accounts for."""
    with tt.turn("agent"):
        time.sleep(0.03)
        with tt.tool("fetch"):
            time.sleep(0.01)


def serial():
    """Two tools, one after the other."""
    with tt.turn("agent"):
        for name in ("fetch", "search"):
            with tt.tool(name):
                time.sleep(0.02)


for scene in (models, fails, retries, approvals, gaps, serial):
    scene()
