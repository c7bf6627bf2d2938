"""A load in which everything happens that a metric counts; a program: OUT, whether it sends metrics, turns."""

import contextlib
import sys
import time

import turntrace as tt


def one(number):
    """One turn: calls with retries and without tokens, tools that fail, a person, an end that varies."""
    with tt.turn("cook" if number % 3 else "clerk"):
        time.sleep(0.01)
        with tt.phase("prompt_build", attributes={"my.secret": "not for export"}):
            time.sleep(0.005)
        call("m-large" if number % 2 else "m-small", number)
        for tool in ("search", "fetch")[: 1 + number % 2]:
            use(tool, fails=number % 4 == 1)
        if number % 5 == 0:
            with tt.tool("deploy"), tt.phase("permission_wait"):
                time.sleep(0.06)
        happen(number)
        if number % 7 == 3:
            raise RuntimeError
        if number % 11 == 5:
            raise KeyboardInterrupt


def call(model, number):
    """A model call."""
    with tt.generation(model=model, provider="p") as generation:
        if number % 4 == 2:
            tt.count("retry_count")
            with tt.phase("retry_wait", attributes={"turntrace.reason": ("429", "503")[number % 8 == 2]}):
                time.sleep(0.02)
        time.sleep(0.03)
        generation.set("turntrace.first_token_ms", 12.5)
        if number % 6:
            generation.usage(
                input_tokens=100 + number, output_tokens=20, cached_input_tokens=40, reasoning_tokens=5
            )


def use(tool, *, fails):
    """A tool call."""
    with contextlib.suppress(LookupError), tt.tool(tool):
        with tt.phase("tool_queue"):
            time.sleep(0.005)
        time.sleep(0.015 if tool == "search" else 0.04)
        if fails:
            raise LookupError


def happen(number):
    """What a turn counts by name."""
    names = (
        "compaction_count", "compaction_attempts", "reconnect_count", "completion_nudges",
        "acceptance_checks", "model_switches",
    )  # fmt: skip
    for place, name in enumerate(names):
        if number % (place + 2) == 0:
            tt.count(name, 1 + number % 2)


def main():
    """Turns one after another; the first ones slowly, so that a scrape sees the series begin."""
    out, sends, turns = sys.argv[1], sys.argv[2] == "service", int(sys.argv[3])
    handle = tt.configure(trace=out, metrics=sends)
    for number in range(turns):
        with contextlib.suppress(RuntimeError, KeyboardInterrupt):
            one(number)
        if sends and number < 3:
            time.sleep(1.5)
    handle.shutdown()


if __name__ == "__main__":
    main()
