"""Every way in which a model call can end makes one span, ended once, that says how."""

import asyncio
import gc
import logging
import time
from contextlib import suppress

import pytest

import turntrace as tt
from frameworks.steps import Step
from instrument.adapters.clients import APIS, client_of, done
from turntrace.instrument.adapters.leftovers import LEFTOVERS

pytestmark = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
every_api = pytest.mark.parametrize("api", APIS)

USAGE = {"input_tokens": 100, "output_tokens": 20, "cached_tokens": 60, "reasoning_tokens": 7}


@pytest.fixture
async def ask(server, is_async, request):
    """A client whose session is this test's, with its script."""
    made = []

    def make(api, *steps, **options):
        session = request.node.name.replace("/", "_").replace("[", "-").replace("]", "")
        server.script(steps, session)
        made.append(client_of(server, api, is_async=is_async, session=session, **options))
        return made[-1]

    yield make
    for client in made:
        await done(client.sdk.close())


def settled():
    """Let what the garbage collector found come to its end."""
    gc.collect()
    assert LEFTOVERS.settle(5)


def chats(recorded):
    """The generations' spans."""
    return [span for span in recorded.exporter.get_finished_spans() if span.name == "chat m-1"]


def only(recorded, outcome):
    """The one generation, which ended as it should and left nothing open."""
    (span,) = chats(recorded)
    assert span.attributes["turntrace.outcome"] == outcome
    assert not recorded.processor.recording.table.open_spans
    return span.attributes


def lasted(recorded, name):
    """How long the spans of a name lasted together, in ns."""
    spans = [span for span in recorded.exporter.get_finished_spans() if span.name == name]
    return sum(span.end_time - span.start_time for span in spans)


def below_turn(recorded):
    """Whether the span that was made next lies directly below the turn."""
    spans = recorded.spans()
    return spans["verification"].parent.span_id == spans["invoke_agent a"].context.span_id


@every_api
async def test_a_whole_answer(recorded, ask, api):
    """Usage is normalised, the answer named, nothing of its content on the span."""
    client = ask(api, Step(text="secret", **USAGE))
    with tt.turn("a"):
        await done(client.create())
        with tt.phase("verification"):
            pass
    attributes = only(recorded, "ok")
    assert attributes["gen_ai.usage.input_tokens"] == 100
    assert attributes["gen_ai.usage.output_tokens"] == 20
    assert attributes["gen_ai.usage.cache_read.input_tokens"] == 60
    assert attributes["gen_ai.response.model"] == "m-1"
    assert attributes["gen_ai.response.id"]
    assert attributes["server.address"] == "127.0.0.1"
    assert "gen_ai.response.time_to_first_chunk" not in attributes
    assert "secret" not in repr(dict(attributes))
    assert below_turn(recorded)


@every_api
async def test_a_stream_to_its_end(recorded, ask, api):
    """The span lasts as long as the stream; first token, usage and reasons are on it."""
    client = ask(api, Step(text="a secret text", chunks=5, ttft_s=0.05, gap_s=0.02, **USAGE))
    with tt.turn("a"):
        stream = await client.stream()
        with tt.phase("verification"):
            pass
        assert [item async for item in client.items(stream)]
    attributes = only(recorded, "ok")
    assert attributes["gen_ai.usage.input_tokens"] == 100
    assert attributes["gen_ai.usage.output_tokens"] == 20
    assert attributes["turntrace.stream.await_ms"] >= 120
    assert attributes["turntrace.first_token_ms"] >= 50
    assert attributes["gen_ai.response.finish_reasons"]
    assert attributes["gen_ai.request.stream"] is True
    assert "secret" not in repr(dict(attributes))
    assert below_turn(recorded)


@every_api
async def test_usage_that_nobody_told_stays_unknown(recorded, ask, api):
    """No number is made up; an abandoned stream has none either."""
    client = ask(api, Step(usage="absent"), Step(chunks=2, text="abc", usage="cumulative"))
    with tt.turn("a"):
        await done(client.create())
        stream = await client.stream()
        async for _ in client.items(stream):
            break
        await done(stream.close())
    for span in chats(recorded):
        assert not [name for name in span.attributes if name.startswith("gen_ai.usage")]


@every_api
async def test_a_refused_call(recorded, ask, api):
    """The SDK's error passes; its class is the span's error, its text is not."""
    client = ask(api, Step(status=400, text="secret"))
    with tt.turn("a"), pytest.raises(Exception, match="400"):
        await done(client.create())
    attributes = only(recorded, "error")
    assert attributes["error.type"].endswith("BadRequestError")
    assert "secret" not in repr(dict(attributes))


@every_api
@pytest.mark.parametrize("stream", [False, True])
async def test_attempts_and_waits_have_spans(recorded, ask, api, stream):
    """500, 429, 200: one call, its refused attempts, two waits outside the model's time."""
    refusals = (Step(status=500, retry_after_s=0.05), Step(status=429, retry_after_s=0.05))
    client = ask(api, *refusals, Step(), max_retries=2)
    with tt.turn("a") as turn:
        if stream:
            opened = await client.stream()
            assert [item async for item in client.items(opened)]
        else:
            await done(client.create())
        report = turn.report()
    spans = recorded.exporter.get_finished_spans()
    attempts = [span.attributes for span in spans if span.name == "provider_connect"]
    waits = [span.attributes["turntrace.reason"] for span in spans if span.name == "retry_wait"]
    assert [one.get("http.response.status_code") for one in attempts] == [500, 429, 200][: 2 + stream]
    assert [one["turntrace.attempt"] for one in attempts] == [1, 2, 3][: 2 + stream]
    assert [one["turntrace.outcome"] for one in attempts] == ["error", "error", "ok"][: 2 + stream]
    assert waits == ["500", "429"]
    assert only(recorded, "ok")["http.request.resend_count"] == 2
    assert report.turn.counters["retry_count"] == 2
    assert lasted(recorded, "retry_wait") >= 90_000_000


@every_api
async def test_an_error_in_the_stream(recorded, ask, api):
    """Raised by the SDK or told as an event: the call failed."""
    client = ask(api, Step(text="abcd", chunks=4, error_after=2))
    with tt.turn("a"):
        stream = await client.stream()
        with suppress(Exception):
            async for _ in client.items(stream):
                pass
    assert only(recorded, "error")["error.type"]


@every_api
async def test_a_connection_that_breaks(recorded, ask, api):
    """The SDK's error, or the HTTP client's, ends the span."""
    client = ask(api, Step(text="abcd", chunks=4, drop_after=2))
    with tt.turn("a"):
        stream = await client.stream()
        with pytest.raises(Exception, match=r".+"):
            async for _ in client.items(stream):
                pass
    assert "Error" in only(recorded, "error")["error.type"]


@every_api
@pytest.mark.parametrize("how", ["close", "with", "dropped"])
async def test_a_stream_that_is_left(recorded, ask, api, how, caplog):
    """By a break and a close, a block that ends, or nothing but the garbage collector."""
    client = ask(api, Step(text="abcd" * 8, chunks=8, gap_s=0.01))
    with caplog.at_level(logging.WARNING), tt.turn("a"):
        stream = await client.stream()
        if how == "with" and client.is_async:
            async with stream:
                async for _ in client.items(stream):
                    break
        elif how == "with":
            with stream:
                next(iter(stream))
        else:
            async for _ in client.items(stream):
                break
            if how == "close":
                await done(stream.close())
            else:
                del stream
                await asyncio.sleep(0.01)
                settled()
                await asyncio.sleep(0.01)
        with tt.phase("verification"):
            pass
    only(recorded, "abandoned")
    assert below_turn(recorded)
    assert not caplog.records


@every_api
async def test_a_stream_that_is_not_read(recorded, ask, api, caplog):
    """Nobody pulled: it is abandoned when it is gone."""
    client = ask(api, Step())
    with caplog.at_level(logging.WARNING), tt.turn("a"):
        await client.stream()
        settled()
    only(recorded, "abandoned")
    assert not caplog.records


@every_api
async def test_a_slow_consumer(recorded, ask, api):
    """Its pauses are not the model's time."""
    client = ask(api, Step(), Step(text="abc", chunks=3))
    await read(client)  # what an SDK prepares for its first stream can take longer than all pauses
    recorded.exporter.clear()
    with tt.turn("a"):
        stream = await client.stream()
        count = 0
        async for _ in client.items(stream):
            count += 1
            time.sleep(0.03)
    attributes = only(recorded, "ok")
    assert attributes["turntrace.stream.consume_ms"] >= 30 * count
    assert attributes["turntrace.stream.await_ms"] < attributes["turntrace.stream.consume_ms"]
    assert lasted(recorded, "stream_consume") >= 30_000_000 * (count - 1)


@every_api
async def test_an_interrupt(recorded, ask, api):
    """In a block around the stream it is a cancellation."""
    client = ask(api, Step(text="abc", chunks=3))
    with tt.turn("a"):
        stream = await client.stream()
        try:
            if client.is_async:
                async with stream:
                    raise KeyboardInterrupt
            else:
                with stream:
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            pass
    only(recorded, "cancelled")


@every_api
async def test_a_cancelled_call(recorded, ask, api, is_async):
    """Before the headers and in the middle of the stream."""
    if not is_async:
        pytest.skip("threads are not cancelled")
    client = ask(api, Step(latency_s=5), Step(text="abc", chunks=3, gap_s=5))
    with tt.turn("a"):
        for coroutine in (client.create(), read(client)):
            task = asyncio.ensure_future(coroutine)
            await asyncio.sleep(0.15)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
    assert [span.attributes["turntrace.outcome"] for span in chats(recorded)] == ["cancelled"] * 2
    assert not recorded.processor.recording.table.open_spans


async def read(client):
    """Open a stream and read it."""
    async for _ in client.items(await client.stream()):
        pass


@every_api
async def test_a_close_from_another_task(recorded, ask, api, is_async):
    """While a pull waits: the stream is abandoned, whatever the pull makes of it."""
    if not is_async:
        pytest.skip("of another thread in test_stream_truth.py")
    client = ask(api, Step(text="abc", chunks=3, gap_s=0.4))
    with tt.turn("a"):
        stream = await client.stream()

        async def pull():
            async for _ in client.items(stream):
                pass

        task = asyncio.ensure_future(pull())
        await asyncio.sleep(0.1)
        await stream.close()
        await asyncio.wait([task])
        task.exception()
    only(recorded, "abandoned")


async def test_ten_calls_at_once_do_not_mix(recorded, ask, is_async):
    """Each has its own span below the turn."""
    if not is_async:
        pytest.skip("one event loop")
    client = ask("chat", *[Step(text="ab", chunks=2, gap_s=0.02)] * 10)
    with tt.turn("a"):
        await asyncio.gather(*(read(client) for _ in range(10)))
    root = recorded.spans()["invoke_agent a"].context.span_id
    assert [span.parent.span_id for span in chats(recorded)] == [root] * 10
