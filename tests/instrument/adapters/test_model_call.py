"""The call's span in corners that a server on loopback does not reach, from transports in memory."""

import gzip
import json
import threading
from contextlib import suppress

import httpx2
import openai
import pytest
from opentelemetry import trace

import turntrace as tt
from turntrace.instrument.adapters import parts
from turntrace.instrument.adapters.answers import ChatAnswer, MessageAnswer, ResponseAnswer
from turntrace.instrument.adapters.instrumentors import OpenAIAdapter
from turntrace.instrument.adapters.model_call import ModelCall
from turntrace.otel.delegate import DelegatingProvider
from turntrace.otel.remote import context_from

WHOLE = {
    "id": "c",
    "model": "m",
    "object": "chat.completion",
    "choices": [],
    "usage": {"prompt_tokens": 5, "completion_tokens": 2},
}


def client_with(*answers, **options):
    """A client that gets these responses, or raises these errors, one after the other."""
    left = list(answers)

    def answer(request):
        found = left.pop(0)
        if isinstance(found, type):
            raise found("secret", request=request)
        return found

    transport = httpx2.MockTransport(answer)
    options = {"max_retries": 0, **options}
    return openai.OpenAI(api_key="k", http_client=httpx2.Client(transport=transport), **options)


def ask(client, **options):
    """A chat completion."""
    return client.chat.completions.create(model="m", messages=[], **options)


def streamed(client):
    """A chat completion whose body is still to be read."""
    return client.chat.completions.with_streaming_response.create(model="m", messages=[])


def spans_of(recorded, name):
    """The attributes of the spans of a name."""
    return [dict(span.attributes) for span in recorded.exporter.get_finished_spans() if span.name == name]


@pytest.fixture(autouse=True)
def _no_sleep(monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)


def test_attempts_that_brought_no_answer(recorded):
    """A timeout, then a connection that failed: each has its reason and its error's class."""
    ok = httpx2.Response(200, json=WHOLE)
    with client_with(httpx2.ReadTimeout, httpx2.ConnectError, ok, max_retries=2) as client, tt.turn("a"):
        ask(client)
    attempts = spans_of(recorded, "provider_connect")
    assert [one["turntrace.reason"] for one in spans_of(recorded, "retry_wait")] == ["timeout", "connect"]
    assert "Timeout" in attempts[0]["error.type"]
    assert "ConnectError" in attempts[1]["error.type"]


def test_without_attempts_there_are_only_waits(recorded):
    """Where the HTTP client's instrumentation makes spans of the requests."""
    adapter = OpenAIAdapter()
    adapter.uninstrument()
    adapter.instrument(attempts=False)
    ok = httpx2.Response(200, json=WHOLE)
    with client_with(httpx2.Response(500), ok, max_retries=1) as client, tt.turn("a"):
        ask(client)
    assert spans_of(recorded, "provider_connect") == []
    assert len(spans_of(recorded, "retry_wait")) == 1


def test_waits_outside_of_a_call_are_the_sdks_own(recorded):
    """A request that is no model call, tried again."""
    ok = httpx2.Response(200, json={"data": [], "object": "list"})
    with client_with(httpx2.Response(500), ok, max_retries=1) as client, tt.turn("a"):
        client.models.list()
    assert spans_of(recorded, "retry_wait") == []


async def test_async_waits_outside_of_a_call(recorded):
    """As above."""
    answers = [httpx2.Response(500), httpx2.Response(200, json={"data": [], "object": "list"})]
    http = httpx2.AsyncClient(transport=httpx2.MockTransport(lambda _: answers.pop(0)))
    async with openai.AsyncOpenAI(api_key="k", http_client=http, max_retries=1) as client:
        with tt.turn("a"):
            await client.models.list()
    assert spans_of(recorded, "retry_wait") == []


def test_a_cancelled_attempt(recorded):
    """Ctrl-C while the request is under way."""

    def interrupted(_):
        raise KeyboardInterrupt

    http = httpx2.Client(transport=httpx2.MockTransport(interrupted))
    with openai.OpenAI(api_key="k", http_client=http) as client, tt.turn("a"), suppress(KeyboardInterrupt):
        ask(client)
    (call,), (attempt,) = spans_of(recorded, "chat m"), spans_of(recorded, "provider_connect")
    assert call["turntrace.outcome"] == attempt["turntrace.outcome"] == "cancelled"


@pytest.mark.parametrize("encoding", ["gzip", "identity", "rot13"])
def test_a_compressed_body_that_is_read_in_pieces(recorded, encoding):
    """Usage is found in what the agent reads, compressed or not; in another encoding it is not."""
    data = json.dumps(WHOLE).encode()
    data = gzip.compress(data) if encoding == "gzip" else data[::-1] if encoding == "rot13" else data
    headers = {"content-encoding": encoding, "content-type": "application/json"}
    response = httpx2.Response(200, headers=headers, content=iter([data[:9], data[9:]]))
    with client_with(response) as client, tt.turn("a"), streamed(client) as answer:
        assert b"".join(answer.iter_bytes())
    (call,) = spans_of(recorded, "chat m")
    assert call.get("gen_ai.usage.input_tokens") == (None if encoding == "rot13" else 5)


def test_a_body_beyond_all_bounds_is_not_kept(recorded, monkeypatch):
    """Its usage stays unknown."""
    monkeypatch.setattr(parts, "_MAX_BYTES", 10)
    data = json.dumps(WHOLE).encode()
    response = httpx2.Response(200, content=iter([data[:9], data[9:]]))
    with client_with(response) as client, tt.turn("a"), streamed(client) as answer:
        assert answer.read()
    (call,) = spans_of(recorded, "chat m")
    assert "gen_ai.usage.input_tokens" not in call


def test_a_failure_told_inside_an_answer(recorded):
    """A response whose status is failed: the call failed, by the code of its error."""
    body = {"id": "r", "model": "m", "status": "failed", "error": {"code": "server_error"}, "output": []}
    with client_with(httpx2.Response(200, json=body)) as client, tt.turn("a"):
        client.responses.create(model="m", input="x")
    (call,) = spans_of(recorded, "chat m")
    assert (call["turntrace.outcome"], call["error.type"]) == ("error", "server_error")


def test_raw_text_says_nothing(recorded):
    """A body that is no JSON; a request without a model; the HTTP response itself as the result."""
    answers = [httpx2.Response(200, text="<html>"), httpx2.Response(200, json=WHOLE)]
    with client_with(*answers) as client, tt.turn("a"):
        assert client.chat.completions.with_raw_response.create(model="m", messages=[]).status_code == 200
        assert client.post("/chat/completions", cast_to=httpx2.Response, body={}).status_code == 200
    assert "gen_ai.response.id" not in spans_of(recorded, "chat m")[0]
    assert spans_of(recorded, "chat unknown")[0]["gen_ai.usage.input_tokens"] == 5


def test_a_call_in_a_thread_of_its_own_is_below_the_process(recorded, monkeypatch):
    """TRACEPARENT is its parent, as it is that of any other library's span."""
    remote = context_from(f"00-{'a' * 32}-{'b' * 16}-01", None)
    provider = DelegatingProvider(recorded.provider, remote)
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    with client_with(httpx2.Response(200, json=WHOLE)) as client:
        thread = threading.Thread(target=ask, args=(client,))
        thread.start()
        thread.join()
    (span,) = [one for one in recorded.exporter.get_finished_spans() if one.name == "chat m"]
    assert f"{span.context.trace_id:x}" == "a" * 32
    assert f"{span.parent.span_id:x}" == "b" * 16


@pytest.mark.parametrize("method", ["_tried", "_close", "_step_out"])
def test_errors_of_the_call_stay_inside(recorded, monkeypatch, method):
    """Whatever of it breaks, the agent gets its answer or the SDK's error."""

    def broken(*arguments):
        raise RuntimeError("secret")

    monkeypatch.setattr(ModelCall, method, broken)
    answers = [httpx2.Response(500), httpx2.Response(200, json=WHOLE), httpx2.Response(400)]
    with client_with(*answers, max_retries=1) as client, tt.turn("a"):
        assert ask(client).id == "c"
        with pytest.raises(openai.BadRequestError):
            ask(client)
    assert recorded.guard.dropped["error"]


def test_a_call_is_ended_once(recorded):
    """Two threads that end it at once make one end."""
    call = ModelCall(
        recorded.processor, ChatAnswer(), "m", {"provider": "p", "operation": "chat", "attributes": {}}
    )
    with tt.turn("a"):
        with call:
            pass
        call.end()
        call.end(ValueError)
    (only,) = spans_of(recorded, "chat m")
    assert only["turntrace.outcome"] == "ok"


def test_events_of_unknown_kinds_say_nothing():
    """They are not looked into."""

    class Event:
        type = "ping"

    for answer in (MessageAnswer(), ResponseAnswer()):
        answer.see(Event())
        assert not answer.is_final
        assert not [count for count in answer.tokens().values() if count is not None]


def test_an_error_event_without_a_usable_code_is_an_error():
    """Codes that could be anything are not passed on."""
    answer = ResponseAnswer()
    answer.see(type("Event", (), {"type": "error", "code": "a secret text"})())
    assert answer.failure == "error"


def test_a_running_response_has_not_stopped():
    """One in the background says later what it cost."""
    answer = ResponseAnswer()
    answer.whole({"id": "r", "status": "queued"})
    assert not answer.is_final
