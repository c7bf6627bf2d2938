"""A web service that streams: a turn held across the response, and clients that go away in the middle."""

import asyncio
import gc
import logging
import threading
import time

import httpx
import pytest
import uvicorn
from fastapi import FastAPI
from fastapi.responses import StreamingResponse

import turntrace as tt
from otlp_receiver import wait_for
from recordings import Recorded, blocks_of

CHUNKS = 40


async def held_around():
    """The turn lives in the generator, across its yields."""
    async with tt.turn("web"):
        async for chunk in chunks():
            yield chunk


async def chunks():
    """Chunks of text, each with a tool; model spans are held across the yields."""
    async with tt.generation(model="m") as g:
        for number in range(CHUNKS):
            with tt.tool(f"t{number}"):
                await asyncio.sleep(0.01)
            yield f"{number}\n"
        g.usage(input_tokens=1, output_tokens=CHUNKS)


@tt.turn.wrap("web")
def in_threads():
    """Without asyncio: the server runs each pull in a thread, in a context that it throws away."""
    yield from pulled_chunks()


@tt.generation.wrap(model="m")
def pulled_chunks():
    """Decorated, so that its tools find it from every thread."""
    for number in range(CHUNKS):
        with tt.tool(f"t{number}"):
            time.sleep(0.01)
        yield f"{number}\n"


def bare_in_threads():
    """A bare block around the yields: what it made current is gone with the first pull's context."""
    with tt.turn("web"):
        for number in range(CHUNKS):
            with tt.tool(f"t{number}"):
                time.sleep(0.01)
            yield f"{number}\n"


@tt.turn.wrap("web")
async def decorated():
    """The turn is current inside each pull only."""
    async for chunk in chunks():
        yield chunk


async def begun_before():
    """The turn was opened by the endpoint and is left by the body, in whatever task that runs."""
    turn = tt.turn("web")
    turn.__enter__()

    async def body():
        try:
            async for chunk in chunks():
                yield chunk
        finally:
            turn.__exit__(None, None, None)

    return body()


app = FastAPI()


@app.get("/around")
async def around():
    return StreamingResponse(held_around())


@app.get("/threads")
def threads():
    return StreamingResponse(in_threads())


@app.get("/bare_threads")
def bare_threads():
    return StreamingResponse(bare_in_threads())


@app.get("/decorated")
async def decorated_response():
    return StreamingResponse(decorated())


@app.get("/before")
async def before():
    return StreamingResponse(await begun_before())


@pytest.fixture(scope="module")
def address():
    """The base URL of the service, on a thread of its own."""
    config = uvicorn.Config(app, port=0, log_config=None, ws="none", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    assert wait_for(lambda: server.started)
    (socket,) = server.servers[0].sockets
    yield f"http://127.0.0.1:{socket.getsockname()[1]}"
    server.should_exit = True
    thread.join(10)
    assert not thread.is_alive()


WAYS = pytest.mark.parametrize("way", ["around", "threads", "decorated", "before"])


def said(caplog):
    """What was logged at WARNING or above, by anyone."""
    return [
        (record.name, record.getMessage()) for record in caplog.records if record.levelno >= logging.WARNING
    ]


def closed_blocks(recorded, count=1):
    """The blocks of the file once ``count`` turns are closed; a dropped generator is collected."""

    def written():
        gc.collect()
        return recorded.out.exists() and recorded.out.read_bytes().count(b'"type":"trace"') >= count

    assert wait_for(written)
    return blocks_of(recorded.out)


def check(block, exported, *, is_whole):
    """The tools hang below the generation, which hangs below the turn; each ended once."""
    turn = block.turn
    (generation,) = [span for span in turn.spans if span.phase == "generation"]
    tools = [span for span in turn.spans if span.tool]
    assert generation.parent_id == turn.span_id
    assert {span.parent_id for span in tools} == {generation.span_id}
    assert {span.parent_source for span in turn.spans} == {"otel"}
    assert [span.tool for span in sorted(tools, key=lambda s: s.start_ns)] == [
        f"t{number}" for number in range(len(tools))
    ]
    assert len(tools) == CHUNKS if is_whole else 0 < len(tools) < CHUNKS
    ids = [span.context.span_id for span in exported]
    assert len(ids) == len(set(ids)) == len(turn.spans) + 1
    assert all(span.outcome != "incomplete" for span in turn.spans)


@WAYS
def test_a_turn_held_across_a_streaming_response_is_one_turn(tmp_path, address, caplog, way):
    """A client that reads to the end: one turn, all its children, nothing said."""
    with Recorded(tmp_path / "t.ndjson", journal="thread") as recorded:
        assert len(httpx.get(f"{address}/{way}", timeout=30).text.splitlines()) == CHUNKS
        (block,) = closed_blocks(recorded)
    check(block, recorded.exporter.get_finished_spans(), is_whole=True)
    assert block.turn.status == "ok"
    assert said(caplog) == []


@WAYS
def test_a_client_that_disconnects_ends_the_turn_once(tmp_path, address, caplog, way):
    """The generator is cancelled, closed or dropped by the server: one turn, ended once, nothing said."""
    with Recorded(tmp_path / "t.ndjson", journal="thread") as recorded:
        with httpx.stream("GET", f"{address}/{way}", timeout=30) as response:
            for _ in response.iter_lines():
                break
        (block,) = closed_blocks(recorded)
    check(block, recorded.exporter.get_finished_spans(), is_whole=False)
    (generation,) = [span for span in block.turn.spans if span.phase == "generation"]
    assert generation.outcome in {"cancelled", "abandoned"}
    assert said(caplog) == []


@pytest.mark.parametrize("leaves_early", [False, True])
def test_a_bare_block_in_a_pool_of_threads_ends_once(tmp_path, address, caplog, leaves_early):
    """Its tools are the only turn's, by inference where their pull's context does not know it."""
    with Recorded(tmp_path / "t.ndjson", journal="thread") as recorded:
        with httpx.stream("GET", f"{address}/bare_threads", timeout=30) as response:
            for _ in response.iter_lines():
                if leaves_early:
                    break
        (block,) = closed_blocks(recorded)
    tools = [span for span in block.turn.spans if span.tool]
    assert len(tools) == len(block.turn.spans)
    assert {(span.parent_id, span.parent_source) for span in tools} <= {
        (block.turn.span_id, "otel"),
        (None, "inferred"),
    }
    assert 0 < len(tools) < CHUNKS if leaves_early else len(tools) == CHUNKS
    assert block.turn.status == ("cancelled" if leaves_early else "ok")
    ids = [span.context.span_id for span in recorded.exporter.get_finished_spans()]
    assert len(ids) == len(set(ids)) == len(tools) + 1
    assert said(caplog) == []


@WAYS
def test_responses_that_stream_at_once_never_mix(tmp_path, address, caplog, way):
    """Twenty clients, every other one leaves early: twenty turns, each with its own children only."""

    async def client(http, number):
        async with http.stream("GET", f"{address}/{way}") as response:
            async for _ in response.aiter_lines():
                if number % 2:
                    break

    async def clients():
        async with httpx.AsyncClient(timeout=60) as http:
            await asyncio.gather(*(client(http, number) for number in range(20)))

    with Recorded(tmp_path / "t.ndjson", journal="thread") as recorded:
        asyncio.run(clients())
        blocks = closed_blocks(recorded, 20)
    spans = recorded.exporter.get_finished_spans()
    assert len(blocks) == 20
    whole = 0
    for block in blocks:
        own = [span for span in spans if f"{span.context.trace_id:032x}" == block.turn.trace_id]
        is_whole = sum(bool(span.tool) for span in block.turn.spans) == CHUNKS
        check(block, own, is_whole=is_whole)
        whole += is_whole
    assert whole == 10
    assert said(caplog) == []
