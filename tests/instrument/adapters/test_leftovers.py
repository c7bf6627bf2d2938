"""What thousands of dropped streams leave behind; and that patches, forks and errors of ours harm nobody."""

import asyncio
import gc
import resource
from collections import Counter
from functools import partial

import httpx2
import openai
import pytest

import turntrace as tt
from instrument.adapters.clients import client_of, done
from recordings import Recorded
from turntrace.instrument.adapters.instrumentors import OpenAIAdapter
from turntrace.instrument.adapters.leftovers import LEFTOVERS, Leftovers

EVENT = b'data: {"id":"c","model":"m","object":"chat.completion.chunk","created":1,"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'


MESSAGE_EVENT = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}\n\n'


class Body(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """Three events that need no server."""

    def __init__(self, event):
        self._event = event

    def __iter__(self):
        yield from [self._event] * 3

    async def __aiter__(self):
        for _ in range(3):
            yield self._event


def answer(request):
    """A stream of the API that was asked."""
    event = MESSAGE_EVENT if request.url.path.endswith("messages") else EVENT
    return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=Body(event))


def resident_kib():
    """The most memory that the process had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


async def open_one(client, way):
    """Open a stream and take one item of it; whoever calls forgets it."""
    if way != "wrapper":
        stream = await client.stream()
        await (anext(stream) if client.is_async else done(next(stream)))
        return
    with tt.generation(model="m-1") as generation:
        stream = generation.stream(iter(Body(EVENT)) if not client.is_async else aiter(Body(EVENT)))
        await (anext(stream) if client.is_async else done(next(stream)))
        del stream
        gc.collect(0)


async def drop(client, way, recorded, count):
    """Open ``count`` streams, take one item of each and forget them; how the calls ended."""
    outcomes = Counter()
    for _ in range(count // 500):
        with tt.turn("a"):
            for _ in range(500):
                await open_one(client, way)
            gc.collect()
            await asyncio.sleep(0)
            assert LEFTOVERS.settle(30)
        spans = [span for span in recorded.exporter.get_finished_spans() if span.name == "chat m-1"]
        outcomes.update(span.attributes["turntrace.outcome"] for span in spans)
        recorded.exporter.clear()
    return outcomes


@pytest.mark.slow
@pytest.mark.parametrize("way", ["chat", "messages", "wrapper"])
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
async def test_ten_thousand_dropped_streams_leave_nothing(way, is_async):
    """No open span and no growth; every span ended, as abandoned."""
    kind = httpx2.AsyncClient if is_async else httpx2.Client
    server = type("Server", (), {"url": "http://127.0.0.1:9"})
    api = "chat" if way == "wrapper" else way
    with Recorded() as recorded:
        http = kind(transport=httpx2.MockTransport(answer))
        client = client_of(server, api, is_async=is_async, http_client=http)
        ended = await drop(client, way, recorded, 2000)
        before = resident_kib()
        ended += await drop(client, way, recorded, 10_000)
        assert resident_kib() - before < 5_000
        assert not recorded.processor.recording.table.open_spans
        assert ended == {"abandoned": 12_000}
        await done(client.sdk.close())


def test_what_is_left_over_runs_even_after_a_fork():
    """Renewed in a child: no thread, nothing that waits; an idle one has nothing to settle."""
    leftovers, ran = Leftovers(), []
    assert leftovers.settle(0)
    leftovers.add(lambda: ran.append("parent"))
    leftovers.renew()
    leftovers.watch()
    leftovers.add(lambda: ran.append("child"))
    assert leftovers.settle(5)
    assert ran == ["child"]


def test_the_patches_can_be_undone_and_made_again():
    """The methods are the SDK's own again, unless somebody wrapped them since."""
    adapter = OpenAIAdapter()
    ours = openai._base_client.SyncAPIClient.request
    assert ours.__wrapped__.__qualname__ == "SyncAPIClient.request"
    adapter.patches.apply(openai._base_client)
    assert openai._base_client.SyncAPIClient.request is ours
    adapter.uninstrument()
    assert openai._base_client.SyncAPIClient.request is ours.__wrapped__
    adapter._imported(openai._base_client)
    assert openai._base_client.SyncAPIClient.request is ours.__wrapped__
    adapter.instrument()
    theirs = partial(ours)
    now = openai._base_client.SyncAPIClient.request
    openai._base_client.SyncAPIClient.request = theirs
    adapter.uninstrument()
    assert openai._base_client.SyncAPIClient.request is theirs
    openai._base_client.SyncAPIClient.request = now.__wrapped__
    adapter.instrument()


def test_errors_of_ours_stay_ours(recorded, monkeypatch, caplog):
    """A client that is built otherwise, an answer of another shape, a span that cannot be made."""
    calls = OpenAIAdapter().calls
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, json={"id": 5, "choices": 7}))
    with openai.OpenAI(api_key="k", http_client=httpx2.Client(transport=transport)) as client, tt.turn("a"):
        assert client.chat.completions.create(model="m", messages=[]).id == 5
        assert calls.begin(client, (), {}) is None
        monkeypatch.setattr(recorded.processor, "tracer", None)
        assert client.chat.completions.create(model="m", messages=[]).id == 5
    assert recorded.guard.dropped["error"] == 3
