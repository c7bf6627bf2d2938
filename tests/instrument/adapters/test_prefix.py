"""Prefix hashes: which part of the prompt changed from request to request, and no word of it."""

import hashlib
import json
import re

import anthropic
import httpx2
import openai
import pytest

import turntrace as tt
from instrument.adapters.test_model_call import WHOLE, client_with
from turntrace.core.prefixes import invalidation_reason
from turntrace.instrument.adapters.prefix import prefix_hashes
from turntrace.instrument.stamps import call_stamp, stamp

TOOLS = [{"type": "function", "function": {"name": "secret_tool", "parameters": {}}}]
SYSTEM = {"role": "system", "content": "secret prompt"}
USER = {"role": "user", "content": "secret question"}


def events(recorded):
    """The prefix hashes that stand in the file."""
    recorded.processor.flush()
    [block] = recorded.blocks()
    assert {event.type for event in block.turn.events} <= {"prefix_hash"}
    return [event.fields for event in block.turn.events]


def chat(client, *messages, **options):
    """A chat completion with these messages."""
    return client.chat.completions.create(model="m", messages=list(messages), **options)


def test_each_request_says_what_changed(recorded):
    """System prompt, tools and schema, each by its hash; questions and answers are no part of the prefix."""
    schema = {"response_format": {"type": "json_object"}}
    with client_with(*(httpx2.Response(200, json=WHOLE) for _ in range(6))) as client, tt.turn("a"):
        chat(client, SYSTEM, USER)
        chat(client, SYSTEM, USER, {"role": "assistant", "content": "x"}, USER)
        chat(client, SYSTEM, USER, tools=TOOLS)
        chat(client, {**SYSTEM, "content": "another"}, USER, tools=TOOLS, **schema)
        chat(client, SYSTEM, USER, tools=TOOLS)
        chat(client, SYSTEM, USER, SYSTEM, tools=TOOLS)
    found = events(recorded)
    assert [one["invalidation_reason"] for one in found] == [
        "initial",
        "unchanged",
        "tools",
        "system_prompt,schema",
        "system_prompt,schema",
        "unchanged",
    ]
    assert found[2]["complete_prefix"] == found[4]["complete_prefix"] != found[3]["complete_prefix"]


def test_nothing_of_the_prompt_is_in_the_file_or_can_be_tried(recorded):
    """Lower-case hex of SHA-256 with a salt of the process: the text's own hash is another one."""
    with client_with(httpx2.Response(200, json=WHOLE)) as client, tt.turn("a"):
        chat(client, SYSTEM, USER, tools=TOOLS)
    recorded.processor.flush()
    text = recorded.out.read_text()
    assert "secret" not in text
    [found] = events(recorded)
    for name in ("system_prompt", "tools", "schema", "complete_prefix"):
        assert re.fullmatch("[0-9a-f]{64}", found[name])
    assert hashlib.sha256(json.dumps(TOOLS, separators=(",", ":")).encode()).hexdigest() not in text


def test_each_turn_begins_anew(recorded):
    """The first request of a turn is the initial one, whatever the turn before asked."""
    with client_with(*(httpx2.Response(200, json=WHOLE) for _ in range(2))) as client:
        for _ in range(2):
            with tt.turn("a"):
                chat(client, SYSTEM, USER)
    recorded.processor.flush()
    reasons = [
        event.fields["invalidation_reason"] for block in recorded.blocks() for event in block.turn.events
    ]
    assert reasons == ["initial", "initial"]


def test_anthropic_and_responses_have_their_own_fields(recorded):
    """``system`` beside the messages, ``instructions`` and ``input``."""
    answer = {"id": "i", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": {}}
    http = httpx2.Client(transport=httpx2.MockTransport(lambda _: httpx2.Response(200, json=answer)))
    with anthropic.Anthropic(api_key="k", http_client=http) as client, tt.turn("a"):
        for system in ("one", "one", "two"):
            client.messages.create(
                model="m", max_tokens=5, system=system, messages=[{"role": "user", "content": "q"}]
            )
    assert [one["invalidation_reason"] for one in events(recorded)] == [
        "initial",
        "unchanged",
        "system_prompt",
    ]
    one = prefix_hashes({"instructions": "a", "input": [{"role": "developer", "content": "b"}]})
    assert one["system_prompt"] != prefix_hashes({"instructions": "a", "input": "text"})["system_prompt"]
    assert one["tools"] == prefix_hashes({})["tools"]
    with pytest.raises(TypeError):
        prefix_hashes({"tools": object()})
    assert prefix_hashes({"messages": ["no message"]}) == prefix_hashes({})


def test_a_request_that_is_no_json_has_no_hash(recorded, monkeypatch):
    """The call is recorded all the same."""
    monkeypatch.setattr("turntrace.instrument.adapters.client_calls.prefix_hashes", _refuse)
    with client_with(httpx2.Response(200, json=WHOLE)) as client, tt.turn("a"):
        chat(client, USER)
    recorded.processor.flush()
    [block] = recorded.blocks()
    assert block.turn.events == ()
    assert block.turn.counters["model_requests"] == 1


def _refuse(_):
    raise TypeError


def test_without_a_file_the_report_has_them():
    """Turns that are kept in memory know them too."""
    from recordings import Recorded

    with (
        Recorded() as recorded,
        client_with(httpx2.Response(200, json=WHOLE)) as client,
        tt.turn("a") as turn,
    ):
        chat(client, USER)
        report = turn.report()
        assert [event.type for event in report.turn.events] == ["prefix_hash"]
        with tt.turn("inner"):
            assert recorded is not None
    assert openai


@pytest.mark.parametrize(
    ("before", "now", "reason"),
    [
        (None, {}, "initial"),
        ({"tools": "a"}, {"tools": "a"}, "unchanged"),
        ({"tools": "a", "schema": "x"}, {"tools": "b", "schema": "y"}, "tools,schema"),
    ],
)
def test_reasons_are_in_the_order_of_a_prompt(before, now, reason):
    """As the format's first writer words them."""
    assert invalidation_reason(before, now) == reason


def test_stamps_of_calls():
    """The same name and values have one stamp, in any order of names; what is no value has none."""
    assert call_stamp("t", (1,), {"a": 2, "b": 3}) == call_stamp("t", (1,), {"b": 3, "a": 2})
    assert call_stamp("t", (1,), {}) != call_stamp("u", (1,), {})
    assert call_stamp("t", (1,), {}) != call_stamp("t", (2,), {})
    assert call_stamp("t", (object(),), {}) is None
    assert call_stamp("t", ("x" * 70_000,), {}) is None
    assert stamp(b"x") != hashlib.sha256(b"x").hexdigest()
