"""What our adapter adds to each chunk of an OpenAI stream, beside other instrumentations, in one run.

Workload: a chat stream of many chunks from a transport in memory, read to its end inside a recorded
turn, sync. Each wrapper runs alone, all of them in turn, round after round; the least of the rounds
counts, in CPU time of the thread. Instrumentations that are not installed are left out:

    pip install openinference-instrumentation-openai opentelemetry-instrumentation-genai-openai
    python tests/benchmarks/bench_adapters.py [CHUNKS] [ROUNDS]
"""

import json
import sys
import time
from importlib import import_module
from pathlib import Path

import httpx2
import openai

sys.path.insert(0, str(Path(__file__).parents[1]))

import turntrace as tt
from recordings import Recorded

CHUNKS, ROUNDS = 100_000, 3
EVENT = {
    "id": "c",
    "model": "m",
    "object": "chat.completion.chunk",
    "created": 1,
    "choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": None}],
    "usage": None,
}
LAST = {
    **EVENT,
    "choices": [],
    "usage": {"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30},
}
WRAPPERS = {
    "turntrace": ("turntrace.instrument.adapters.instrumentors", "OpenAIAdapter"),
    "openinference": ("openinference.instrumentation.openai", "OpenAIInstrumentor"),
    "official": ("opentelemetry.instrumentation.genai.openai", "OpenAIInstrumentor"),
}


def body(chunks):
    """The stream as it goes over the wire, 100 events a piece."""
    event = f"data: {json.dumps(EVENT)}\n\n".encode()
    pieces, rest = divmod(chunks, 100)
    yield from (event * 100 for _ in range(pieces))
    yield event * rest + f"data: {json.dumps(LAST)}\n\ndata: [DONE]\n\n".encode()


def answer(chunks):
    """A transport that streams so many chunks."""
    headers = {"content-type": "text/event-stream"}
    return httpx2.MockTransport(lambda _: httpx2.Response(200, headers=headers, content=body(chunks)))


def once(chunks):
    """Read one stream; nanoseconds for each chunk."""
    with openai.OpenAI(api_key="k", http_client=httpx2.Client(transport=answer(chunks))) as client:
        options = {"include_usage": True}
        stream = client.chat.completions.create(model="m", messages=[], stream=True, stream_options=options)
        start_ns = time.thread_time_ns()
        count = sum(1 for _ in stream)
        return (time.thread_time_ns() - start_ns) / count


def wrapped(name, chunks, provider):
    """One stream under a wrapper; None when that is not installed."""
    if name == "bare":
        return once(chunks)
    module, kind = WRAPPERS[name]
    try:
        instrumentor = getattr(import_module(module), kind)()
    except ImportError:
        return None
    instrumentor.instrument(tracer_provider=provider)
    try:
        return once(chunks)
    finally:
        instrumentor.uninstrument()


def run(chunks=CHUNKS, rounds=ROUNDS):
    """The least time of a chunk under each wrapper, and what it adds to the bare one, in nanoseconds."""
    found = {}
    with Recorded() as recorded:
        for _ in range(rounds):
            for name in ("bare", *WRAPPERS):
                with tt.turn("bench"):
                    each_ns = wrapped(name, chunks, recorded.provider)
                recorded.exporter.clear()
                if each_ns is not None:
                    found[name] = min(each_ns, found.get(name, each_ns))
    bare_ns = found["bare"]
    return {name: {"chunk_ns": round(ns), "added_ns": round(ns - bare_ns)} for name, ns in found.items()}


if __name__ == "__main__":
    print(json.dumps(run(*map(int, sys.argv[1:])), indent=1))
