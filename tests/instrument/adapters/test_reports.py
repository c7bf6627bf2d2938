"""Streams that other tools read wrong, through the `openai` client, by the number of their report."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import openai
import pytest

import turntrace as tt


def chunk(delta=None, *, usage=..., finish=None):
    """A chunk of a chat; without a delta its list of choices is empty."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    body = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "m-1", "choices": choices}
    return body if usage is ... else {**body, "usage": usage}


def used(tokens_in, tokens_out):
    """Usage of a chat."""
    return {"prompt_tokens": tokens_in, "completion_tokens": tokens_out}


def words(*texts):
    """Chunks of text, the last one with the reason of the end."""
    return [chunk({"role": "assistant", "content": ""}), *(chunk({"content": text}) for text in texts)]


END = chunk({}, finish="stop")


@pytest.fixture
def served():
    """A server that answers every request with the events that a test gives, and keeps what was asked."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            self.server.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            lines = [f"data: {json.dumps(event)}\n\n" for event in self.server.events]
            body = "".join([*lines, "data: [DONE]\n\n"] if self.server.is_whole else lines).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Content-Length", str(len(body) if self.server.is_whole else len(body) + 100))
            self.end_headers()
            self.wfile.write(body)
            self.close_connection = True

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked, server.is_whole = [], True
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def client(server):
    return openai.OpenAI(api_key="k", base_url=f"http://127.0.0.1:{server.server_port}/v1", max_retries=0)


def read_chat(server, recorded, *events, **options):
    """What the agent's loop got, and what the one span of its call says."""
    server.events = events
    with tt.turn(agent="a"), client(server) as sdk:
        asked = {"model": "m-1", "messages": [{"role": "user", "content": "?"}]}
        got = list(sdk.chat.completions.create(**asked, stream=True, **options))
    return got, of_call(recorded)


def of_call(recorded):
    (span,) = [span for span in recorded.exporter.get_finished_spans() if span.name == "chat m-1"]
    return span.attributes


def tokens(attributes):
    """Tokens in and out, None for what the span does not say."""
    return tuple(attributes.get(f"gen_ai.usage.{side}_tokens") for side in ("input", "output"))


def test_r19_usage_in_a_last_chunk_without_choices(served, recorded):
    """The counts come after the end of the text, in a chunk that holds nothing else."""
    events = [*words("a", "b", "c"), END, chunk(usage={**used(40, 10), "total_tokens": 50})]
    got, said = read_chat(served, recorded, *events, stream_options={"include_usage": True})
    assert tokens(said) == (40, 10)
    assert [one.choices[0].delta.content for one in got if one.choices and one.choices[0].delta.content] == [
        "a", "b", "c",
    ]  # fmt: skip


@pytest.mark.parametrize("is_whole", [True, False], ids=["whole", "cut"])
def test_r22_usage_in_the_event_that_completes_a_response(served, recorded, is_whole):
    """The counts of the responses API are in its last event; a stream that is cut before it tells none."""
    response = {"id": "r-1", "object": "response", "model": "m-1", "output": [], "status": "in_progress"}
    usage = {"input_tokens": 40, "output_tokens": 9, "total_tokens": 49}
    usage["output_tokens_details"] = {"reasoning_tokens": 4}
    delta = {"type": "response.output_text.delta", "item_id": "i", "output_index": 0, "content_index": 0}
    events = [
        {"type": "response.created", "response": response},
        *({**delta, "delta": text} for text in "abc"),
        {"type": "response.completed", "response": {**response, "status": "completed", "usage": usage}},
    ]
    served.events = events if is_whole else events[:-1]
    served.is_whole = is_whole
    with tt.turn(agent="a"), client(served) as sdk:
        stream = sdk.responses.create(model="m-1", input="?", stream=True)
        if is_whole:
            assert len(list(stream)) == 5
        else:
            with pytest.raises(openai.APIConnectionError):
                list(stream)
    said = of_call(recorded)
    assert tokens(said) == ((40, 9) if is_whole else (None, None))
    assert said.get("gen_ai.usage.reasoning.output_tokens") == (4 if is_whole else None)
    assert said["turntrace.outcome"] == ("ok" if is_whole else "error")


def test_r23_the_request_is_left_as_it_is(served, recorded):
    """Nobody asks for the usage in the agent's place: its loop may look into the choices of every chunk."""
    got, said = read_chat(served, recorded, *words("a"), END)
    assert [one.choices[0].finish_reason for one in got] == [None, None, "stop"]
    assert "stream_options" not in served.asked[0]
    assert tokens(said) == (None, None)


def test_r24_tool_calls_in_pieces(served, recorded):
    """Two calls whose arguments come in turns reach the agent whole; the first piece is the first token."""
    pieces = ['{"ci', 'ty": ', '"Os', 'lo"}']
    first = [
        chunk(
            {"tool_calls": [{"index": n, "id": f"t-{n}", "function": {"name": f"tool{n}", "arguments": ""}}]}
        )
        for n in range(2)
    ]
    later = [
        chunk({"tool_calls": [{"index": n, "function": {"arguments": piece}}]})
        for piece in pieces
        for n in range(2)
    ]
    events = [chunk({"role": "assistant", "content": None}), *first, *later, chunk({}, finish="tool_calls")]
    got, said = read_chat(served, recorded, *events)
    arguments = {0: "", 1: ""}
    for one in got:
        for call in one.choices[0].delta.tool_calls or ():
            arguments[call.index] += call.function.arguments
    assert [json.loads(text) for text in arguments.values()] == [{"city": "Oslo"}] * 2
    assert said["turntrace.first_token_ms"] > said["gen_ai.response.time_to_first_chunk"] * 1000
    assert "turntrace.first_visible_ms" not in said


def test_r32_a_stream_that_nobody_asked_counts_of(served, recorded):
    """What was never sent is unknown, in the span as in every total, and the call says that it streamed."""
    read_chat(served, recorded, *words("a", "b"), END)
    said = of_call(recorded)
    assert said["gen_ai.request.stream"] is True
    assert not [name for name in said if name.startswith("gen_ai.usage.")]


def test_r33_running_totals_are_not_added(served, recorded):
    """Every chunk tells what was counted so far: the last one counts."""
    events = [chunk({"content": "a"}, usage=used(10, count)) for count in (2, 4, 6, 8)]
    _, said = read_chat(served, recorded, *events, END)
    assert tokens(said) == (10, 8)


@pytest.mark.parametrize(
    ("usages", "expected"),
    [
        ([used(10, None), used(None, 7)], (10, 7)),
        ([used(None, None)], (None, None)),
        ([None, used(10, 7), None], (10, 7)),
    ],
    ids=["in halves", "nothing", "null around"],
)
def test_r72_counts_that_are_partly_null(served, recorded, usages, expected):
    """Null is no count: each side is the last one that was told, and nothing is raised."""
    got, said = read_chat(served, recorded, *(chunk({"content": "a"}, usage=one) for one in usages), END)
    assert (len(got), tokens(said)) == (len(usages) + 1, expected)
