"""Every helper of the SDKs that leads to an answer works as before, and makes one span."""

import gc
import json
from contextlib import suppress

import pytest
from pydantic import BaseModel

import turntrace as tt
from frameworks.steps import Step, ToolCall
from instrument.adapters.clients import APIS, SAID, client_of, done
from turntrace.instrument.adapters.leftovers import LEFTOVERS

pytestmark = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
every_api = pytest.mark.parametrize("api", APIS)

STREAMED = {"stream": True}
STREAM = {"chat": {"stream": True, "stream_options": {"include_usage": True}}}


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


def generations(recorded):
    """The spans of model calls."""
    gc.collect()
    assert LEFTOVERS.settle(5)
    assert not recorded.processor.recording.table.open_spans
    return [
        span
        for span in recorded.exporter.get_finished_spans()
        if span.attributes.get("turntrace.phase") == "generation"
    ]


def the_one(recorded, outcome="ok"):
    """The attributes of the one call."""
    (span,) = generations(recorded)
    assert span.attributes["turntrace.outcome"] == outcome
    return span.attributes


@every_api
async def test_raw_responses(recorded, ask, api):
    """Headers and the parsed answer are there; the usage is read from the body."""
    client = ask(api, Step(input_tokens=9))
    with tt.turn("a"):
        raw = await done(client.resource.with_raw_response.create(**client.arguments))
        assert raw.headers["content-type"] == "application/json"
        assert (await done(raw.parse())).id
    assert the_one(recorded)["gen_ai.usage.input_tokens"] == 9


@every_api
async def test_raw_streams(recorded, ask, api):
    """The stream that a raw response is parsed into is measured."""
    client = ask(api, Step(text="abc", chunks=3, input_tokens=9))
    options = {**client.arguments, **STREAM.get(api, {"stream": True})}
    with tt.turn("a"):
        raw = await done(client.resource.with_raw_response.create(**options))
        stream = await done(raw.parse())
        assert await done(raw.parse()) is stream
        assert [item async for item in client.items(stream)]
    attributes = the_one(recorded)
    assert attributes["gen_ai.usage.input_tokens"] == 9
    assert attributes["turntrace.stream.chunks"] >= 3
    assert attributes["turntrace.first_visible_ms"]


@every_api
@pytest.mark.parametrize("how", ["parse", "read", "iter_bytes", "iter_lines", "nothing"])
async def test_streamed_responses(recorded, ask, api, how):
    """A whole answer whose body the agent reads, or leaves."""
    client = ask(api, Step(text="abc", input_tokens=9))
    with tt.turn("a"):
        manager = client.resource.with_streaming_response.create(**client.arguments)
        if client.is_async:
            async with manager as response:
                body = await read_async(response, how)
        else:
            with manager as response:
                body = read_sync(response, how)
    attributes = the_one(recorded, "abandoned" if how == "nothing" else "ok")
    assert attributes.get("gen_ai.usage.input_tokens") == (None if how == "nothing" else 9)
    if how in {"read", "iter_bytes"}:
        assert json.loads(body)["id"]
    assert "gen_ai.request.stream" not in attributes


def read_sync(response, how):
    """Read a response."""
    if how in {"iter_bytes", "iter_lines"}:
        return (b"" if how == "iter_bytes" else "").join(getattr(response, how)())
    return None if how == "nothing" else getattr(response, how)()


async def read_async(response, how):
    """As read_sync."""
    if how in {"iter_bytes", "iter_lines"}:
        pieces = [piece async for piece in getattr(response, how)()]
        return (b"" if how == "iter_bytes" else "").join(pieces)
    return None if how == "nothing" else await getattr(response, how)()


@every_api
@pytest.mark.parametrize("how", ["iter_lines", "iter_bytes", "iter_raw"])
async def test_the_bytes_of_a_stream(recorded, ask, api, how):
    """A stream whose bytes the agent reads itself, in any pieces: measured, its usage read as it passes."""
    client = ask(api, Step(text="abc", chunks=3, gap_s=0.01, input_tokens=9, output_tokens=4))
    sizes = () if how == "iter_lines" else (7,)
    with tt.turn("a"):
        manager = client.resource.with_streaming_response.create(
            **client.arguments, **STREAM.get(api, STREAMED)
        )
        if client.is_async:
            async with manager as response:
                pieces = getattr(
                    response if how != "iter_raw" else response.http_response, "a" * (how == "iter_raw") + how
                )
                read = [piece async for piece in pieces(*sizes)]
        else:
            with manager as response:
                pieces = getattr(response if how != "iter_raw" else response.http_response, how)
                read = list(pieces(*sizes))
    body = "\n".join(read) if how == "iter_lines" else b"".join(read).decode()
    assert [line for line in body.splitlines() if line.startswith("data:")]
    attributes = the_one(recorded)
    assert attributes["turntrace.stream.chunks"] >= 3
    assert attributes["turntrace.first_token_ms"]
    assert attributes["gen_ai.usage.input_tokens"] == 9
    assert attributes["gen_ai.usage.output_tokens"] == 4
    assert attributes["gen_ai.response.finish_reasons"]


@every_api
async def test_the_bytes_of_a_stream_that_breaks_off(recorded, ask, api):
    """What was not told before the agent left stays unknown; an error that the answer tells of is one."""
    client = ask(api, Step(text="abcdef", chunks=3, gap_s=0.05), Step(text="abcd", chunks=4, error_after=2))
    with tt.turn("a"):
        for _ in range(2):
            manager = client.resource.with_streaming_response.create(
                **client.arguments, **STREAM.get(api, STREAMED)
            )
            await read_some(client, manager)
    left, broken = generations(recorded)
    assert not [
        name for span in (left, broken) for name in span.attributes if name.startswith("gen_ai.usage")
    ]
    assert left.attributes["turntrace.outcome"] == "abandoned"
    assert broken.attributes["turntrace.outcome"] == "error"


async def read_some(client, manager):
    """Read the first few lines, or until the connection breaks."""
    with suppress(Exception):
        if client.is_async:
            async with manager as response:
                async for line in response.iter_lines():
                    if "delta" in line and "cd" in line:
                        break
        else:
            with manager as response:
                for line in response.iter_lines():
                    if "delta" in line and "cd" in line:
                        break


@every_api
async def test_stream_managers(recorded, ask, api):
    """``.stream()`` with its events and its final answer."""
    client = ask(api, Step(text="abc", chunks=3, input_tokens=9, tools=(ToolCall("t"),)))
    options = STREAM["chat"] if api == "chat" else {}
    arguments = {**client.arguments, **{name: options[name] for name in options if name != "stream"}}
    final = {
        "chat": "get_final_completion",
        "responses": "get_final_response",
        "messages": "get_final_message",
    }
    with tt.turn("a"):
        manager = client.resource.stream(**arguments)
        if client.is_async:
            async with manager as stream:
                assert [event async for event in stream]
                answer = await getattr(stream, final[api])()
        else:
            with manager as stream:
                assert list(stream)
                answer = getattr(stream, final[api])()
    assert answer.id
    assert the_one(recorded)["gen_ai.usage.input_tokens"] == 9


@every_api
async def test_stream_managers_that_are_left(recorded, ask, api):
    """After the first event."""
    client = ask(api, Step(text="abc", chunks=3, gap_s=0.02))
    with tt.turn("a"):
        manager = client.resource.stream(**client.arguments)
        if client.is_async:
            async with manager as stream:
                async for _ in stream:
                    break
        else:
            with manager as stream:
                next(iter(stream))
    assert the_one(recorded, "abandoned")


class Colour(BaseModel):
    """What an answer is parsed into."""

    name: str


async def test_parsed_answers(recorded, ask):
    """``.parse`` of chat completions; an answer that cannot be parsed is the SDK's error."""
    client = ask("chat", Step(text='{"name": "red"}'), Step(text="secret"))
    with tt.turn("a"):
        parsed = await done(client.resource.parse(**SAID, response_format=Colour))
        assert parsed.choices[0].message.parsed.name == "red"
        with pytest.raises(ValueError, match="Invalid JSON"):
            await done(client.resource.parse(**SAID, response_format=Colour))
    good, bad = generations(recorded)
    assert (good.attributes["turntrace.outcome"], bad.attributes["turntrace.outcome"]) == ("ok", "error")
    assert "secret" not in repr(dict(bad.attributes))


async def test_a_request_of_its_own(recorded, ask):
    """``client.post`` to a known path is a call; other paths are none."""
    client = ask("chat", Step())
    with tt.turn("a"):
        answer = await done(client.sdk.post("/chat/completions", cast_to=dict[str, object], body=dict(SAID)))
        assert answer["id"]
        with pytest.raises(Exception, match="404"):
            await done(client.sdk.post("/moderations", cast_to=object, body={}))
    assert the_one(recorded)["gen_ai.usage.input_tokens"] == 10


@every_api
async def test_streams_stay_what_they_are(recorded, ask, api):
    """The same class with the same attributes, whose iterator looks like the SDK's."""
    client = ask(api, Step())
    with tt.turn("a"):
        stream = await client.stream()
        module = __import__(type(client.sdk).__module__.partition(".")[0])
        kind = module.AsyncStream if client.is_async else module.Stream
        assert type(stream) is kind or kind in type(stream).__mro__
        assert type(stream._iterator).__name__ != "generator"
        assert "generator" in stream._iterator.__class__.__name__
        assert stream.response.status_code == 200
        assert [item async for item in client.items(stream)]
    assert the_one(recorded)


async def test_a_call_that_somebody_else_counts(recorded, ask):
    """Below a model call's span, of ours or of another library, and where instrumentation is suppressed."""
    from opentelemetry.instrumentation.utils import suppress_instrumentation

    client = ask("chat", Step(), Step(), Step())
    other = {"gen_ai.operation.name": "chat"}
    with tt.turn("a"):
        with tt.generation(model="own"):
            await done(client.create())
        with recorded.tracer().start_as_current_span("chat other", attributes=other):
            await done(client.create())
        with suppress_instrumentation():
            await done(client.create())
    assert "chat m-1" not in recorded.spans()


async def test_a_call_outside_of_any_turn(recorded, ask):
    """It opens one, as spans of other libraries do."""
    client = ask("chat", Step())
    await done(client.create())
    recorded.processor.force_flush()
    assert the_one(recorded)["gen_ai.usage.input_tokens"] == 10


async def test_without_a_recording_nothing_happens(ask):
    """The adapter is on, the recording is not."""
    client = ask("chat", Step())
    assert (await done(client.create())).id
