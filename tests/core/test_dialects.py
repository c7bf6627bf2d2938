"""Dialects: what each instrumentation's spans are, name and consumed."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.raws import chat
from turntrace.core import dialects
from turntrace.core.contract import PHASES
from turntrace.core.dialect_facts import FACTS
from turntrace.core.dialect_table import ROWS
from turntrace.core.dialects import Role, classify, describe, reports_usage, request_of, usage_of

GENAI = "opentelemetry.instrumentation.genai.openai"


def verdict(attributes, *, scope="s", name="n", kind="internal"):
    return classify(scope, name, kind, attributes)


def meaning(attributes, **fields):
    found = verdict(attributes, **fields)
    return found.phase or found.role


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("chat", "generation"),
        ("generate_content", "generation"),
        ("text_completion", "generation"),
        ("embeddings", "embedding"),
        ("retrieval", "retrieval"),
        ("execute_tool", "tool_execution"),
        ("invoke_agent", Role.AGENT),
        ("create_agent", Role.STRUCTURE),
        ("invoke_workflow", Role.STRUCTURE),
        ("plan", "plan"),
        ("search_memory", "memory"),
        ("delete_memory_store", "memory"),
        ("fetch_response", Role.LEAF),
        ("never_heard_of", Role.LEAF),
    ],
)
def test_genai_operations(operation, expected):
    """The operation of OTel GenAI says what a span is; an unknown one says nothing."""
    assert expected == meaning({"gen_ai.operation.name": operation}, scope=GENAI)


@pytest.mark.parametrize("phase", PHASES)
def test_own_spans_say_their_phase(phase):
    """A span of ours is the phase it names; `other` is a leaf until it has children."""
    expected = Role.LEAF if phase == "other" else phase
    assert expected == meaning({"turntrace.phase": phase}, scope="turntrace")


def test_own_turn_and_unknown_phase():
    """A turn of ours is a turn, also on a span of another scope; an unknown phase is a leaf."""
    assert meaning({"turntrace.phase": "turn"}, scope="turntrace") == Role.TURN
    assert meaning({"turntrace.phase": "turn", "openinference.span.kind": "CHAIN"}) == Role.TURN
    assert meaning({"turntrace.phase": "of_the_future"}, scope="turntrace") == Role.LEAF


def test_foreign_dialect_comes_before_our_mark():
    """A span that we only marked is read by its own dialect, which knows its tokens; others by the mark."""
    marked = verdict({"turntrace.phase": "generation", "openinference.span.kind": "LLM"})
    assert (marked.phase, marked.dialect) == ("generation", "openinference")
    assert meaning({"turntrace.phase": "verification"}) == "verification"


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("LLM", "generation"),
        ("EMBEDDING", "embedding"),
        ("RETRIEVER", "retrieval"),
        ("RERANKER", "retrieval"),
        ("TOOL", "tool_execution"),
        ("AGENT", Role.AGENT),
        ("CHAIN", Role.STRUCTURE),
        ("GUARDRAIL", "guardrail"),
        ("EVALUATOR", "verification"),
        ("PROMPT", "prompt_build"),
        ("DECISION", Role.LEAF),
    ],
)
def test_openinference_kinds(kind, expected):
    """OpenInference names the kind of each span; a kind that is no phase is a leaf."""
    assert expected == meaning({"openinference.span.kind": kind})


def test_openinference_handoff_is_no_tool():
    """OpenInference writes a handoff as a tool; its name tells them apart."""
    assert meaning({"openinference.span.kind": "TOOL"}, name="handoff to writer") == "handoff"
    assert meaning({"openinference.span.kind": "TOOL"}, name="handoff") == "tool_execution"


@pytest.mark.parametrize(
    ("attributes", "fields", "expected"),
    [
        ({"traceloop.span.kind": "workflow"}, {}, Role.TURN),
        ({"traceloop.span.kind": "task"}, {}, Role.STRUCTURE),
        ({"traceloop.span.kind": "handoff", "gen_ai.operation.name": "handoff"}, {}, "handoff"),
        ({"traceloop.span.kind": "unknown", "gen_ai.operation.name": "chat"}, {}, "generation"),
        ({"llm.request.type": "completion"}, {}, "generation"),
        ({"langsmith.span.kind": "retriever", "gen_ai.operation.name": "embeddings"}, {}, "retrieval"),
        ({"langsmith.span.kind": "prompt", "gen_ai.operation.name": "chat"}, {}, Role.STRUCTURE),
        ({"langsmith.span.kind": "new"}, {}, Role.LEAF),
        ({"langfuse.observation.type": "agent"}, {}, Role.AGENT),
        ({"langfuse.observation.type": "span"}, {}, Role.LEAF),
        ({}, {"scope": "pydantic-ai", "name": "running tool"}, "tool_execution"),
        ({}, {"scope": "pydantic-ai", "name": "running tools"}, Role.STRUCTURE),
        ({"gen_ai.operation.name": "chat"}, {"scope": "com.anthropic.sdk.python"}, "generation"),
        ({}, {"scope": "com.anthropic.sdk.python", "name": "anthropic.messages.count_tokens"}, Role.LEAF),
        (
            {"gen_ai.operation.name": "invoke_workflow"},
            {"scope": "opentelemetry.instrumentation.genai.openai_agents"},
            Role.TURN,
        ),
        ({"mcp.method.name": "tools/call"}, {"kind": "client"}, "tool_execution"),
        ({"mcp.method.name": "tools/list"}, {"kind": "client"}, Role.STRUCTURE),
        ({"asgi.event.type": "http.response.body"}, {}, Role.STRUCTURE),
        ({"logfire.span_type": "pending_span", "gen_ai.operation.name": "chat"}, {}, Role.DROP),
        ({"logfire.span_type": "span", "gen_ai.operation.name": "chat"}, {}, "generation"),
        ({}, {"kind": "server"}, Role.STRUCTURE),
        ({}, {"kind": "consumer"}, Role.STRUCTURE),
        ({"gen_ai.operation.name": "execute_tool"}, {"kind": "server"}, "tool_execution"),
        ({}, {"name": "tool search"}, "tool_execution"),
        ({}, {"name": "execute_tool bash"}, "tool_execution"),
        ({}, {"name": "tool choice by the user"}, Role.LEAF),
        ({}, {"name": "tool "}, Role.LEAF),
        ({}, {}, Role.LEAF),
    ],
)
def test_other_dialects(attributes, fields, expected):
    """Each dialect by what betrays it, the first row that knows a span deciding."""
    assert expected == meaning(attributes, **fields)


@pytest.mark.parametrize("method", ["http.request.method", "http.method"])
def test_http_attempt(method):
    """An HTTP client span is a leaf that may be an attempt to reach the model; a server span is not."""
    client = verdict({method: "POST"}, kind="client")
    assert (client.role, client.http_attempt) == (Role.LEAF, True)
    assert not verdict({method: "POST"}, kind="server").http_attempt
    assert not verdict({}, kind="client").http_attempt


def test_verdicts_are_interned():
    """One answer is one object, whatever the scope and however often it is asked."""
    one = verdict({"gen_ai.operation.name": "chat"}, scope="a")
    assert one is verdict({"gen_ai.operation.name": "chat"}, scope="b")
    assert verdict({}) is verdict({})


def test_every_verdict_has_facts_and_a_phase_of_the_vocabulary():
    """The table is whole: each row's dialect has facts, each phase is in the vocabulary."""
    verdicts = [one for row in ROWS for one in [*row.verdicts.values(), *(x for _, _, x in row.named)]]
    verdicts += [row.otherwise for row in ROWS if row.otherwise is not None]
    assert {one.dialect for one in verdicts} <= set(FACTS)
    assert {one.phase for one in verdicts if one.phase} <= set(PHASES)
    assert all((one.phase is not None) == (one.role is Role.PHASE) for one in verdicts)


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "turntrace.phase",
                "openinference.span.kind",
                "gen_ai.operation.name",
                "gen_ai.usage.input_tokens",
                "gen_ai.request.model",
                "gen_ai.response.time_to_first_chunk",
                "langfuse.observation.type",
                "langfuse.observation.usage_details",
                "mcp.method.name",
            ]
        ),
        st.one_of(
            st.none(),
            st.booleans(),
            st.integers(),
            st.floats(),
            st.text(),
            st.lists(st.text()),
            st.just("{}"),
        ),
    ),
    st.text(),
    st.booleans(),
)
def test_odd_values_never_raise(attributes, name, failed):
    """Whatever an attribute holds, reading a span gives an answer."""
    found = verdict(attributes, name=name, kind=name)
    describe(found, name, attributes)
    reports_usage(found, attributes)
    request_of(found, attributes)
    usage_of(replace(found, phase="generation"), "01", attributes, failed=failed)


def test_description_of_a_generation():
    """Model, provider, ids, round and offsets come from the attributes; the request's model wins."""
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        "gen_ai.response.model": "m-2026",
        "gen_ai.provider.name": "openai",
        "gen_ai.response.id": "r1",
        "gen_ai.conversation.id": "s1",
        "gen_ai.response.time_to_first_chunk": 0.25,
        "http.request.resend_count": 1,
        "turntrace.round": 3,
        "turntrace.run_id": "run_1",
    }
    found = describe(verdict(attributes), "chat m", attributes)
    assert (found.model, found.provider, found.response_id, found.session_id) == ("m", "openai", "r1", "s1")
    assert (found.round, found.resends, found.run_id, found.first_chunk_ns) == (3, 1, "run_1", 250_000_000)
    assert (found.tool, found.agent, found.first_token_ns) == (None, None, None)


def test_description_of_own_moments():
    """Our own spans say in milliseconds when the first token and the first visible text came."""
    attributes = {
        "turntrace.phase": "generation",
        "turntrace.first_token_ms": 1.5,
        "turntrace.first_visible_ms": 2,
    }
    found = describe(verdict(attributes, scope="turntrace"), "chat m", attributes)
    assert (found.first_token_ns, found.first_visible_ns) == (1_500_000, 2_000_000)


@pytest.mark.parametrize(
    ("attributes", "name", "tool"),
    [
        ({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "bash"}, "x", "bash"),
        ({"gen_ai.operation.name": "execute_tool"}, "execute_tool bash", "bash"),
        ({"gen_ai.operation.name": "execute_tool"}, "bash", None),
        ({"traceloop.span.kind": "tool"}, "bash.tool", "bash"),
        ({"mcp.method.name": "tools/call"}, "MCP send tools/call bash", "bash"),
        ({"openinference.span.kind": "TOOL"}, "bash", "bash"),
        ({}, "tool bash", "bash"),
        ({"gen_ai.operation.name": "chat"}, "execute_tool bash", None),
    ],
)
def test_tool_names(attributes, name, tool):
    """A tool's name comes from its attribute, else from the span's name where the dialect puts it there."""
    assert tool == describe(verdict(attributes, name=name), name, attributes).tool


def test_agent_names():
    """An agent's name comes from its attribute, else from the span's name; other spans name none."""
    agent = {"gen_ai.operation.name": "invoke_agent"}
    assert describe(verdict(agent), "invoke_agent main", agent).agent == "main"
    assert describe(verdict(agent), "x", {**agent, "gen_ai.agent.name": "given"}).agent == "given"
    assert describe(verdict({}), "invoke_agent main", {}).agent is None


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, True, "0.5", 1e40])
def test_offsets_that_are_none(value):
    """A first chunk that is no finite, positive number is unknown."""
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.response.time_to_first_chunk": value}
    assert describe(verdict(attributes), "c", attributes).first_chunk_ns is None


def test_long_names_are_cut():
    """Names are data from outside: they are cut."""
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m" * 1000}
    assert len(describe(verdict(attributes), "c", attributes).model) == 256
    assert describe(verdict({"gen_ai.request.model": ""}), "c", {"gen_ai.request.model": ""}).model is None


def usage(attributes, *, failed=False, **fields):
    return usage_of(verdict(attributes, **fields), "01", attributes, failed=failed)


def test_usage_of_genai():
    """Tokens come from the conventions' names, old and new, and every raw number is kept."""
    found = usage(
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.usage.input_tokens": 100,
            "gen_ai.usage.prompt_tokens": 100,
            "gen_ai.usage.output_tokens": 20,
            "gen_ai.usage.cache_read.input_tokens": 60,
            "gen_ai.usage.cache_creation.input_tokens": 30,
            "gen_ai.usage.reasoning.output_tokens": 5,
            "gen_ai.usage.total_tokens": 120,
        }
    )
    assert found.provenance == "reported"
    assert (found.input_tokens, found.cached_input_tokens, found.cache_write_tokens) == (100, 60, 30)
    assert (found.output_tokens, found.reasoning_tokens) == (20, 5)
    assert {100, 60, 30, 20, 5, 120} == set(found.raw.values())
    assert found.raw["gen_ai.usage.prompt_tokens"] == 100


def test_usage_of_openinference():
    """OpenInference has its own names for the same counts."""
    found = usage(
        {
            "openinference.span.kind": "LLM",
            "llm.model_name": "m",
            "llm.system": "openai",
            "llm.token_count.prompt": 100,
            "llm.token_count.completion": 20,
            "llm.token_count.prompt_details.cache_read": 60,
            "llm.token_count.completion_details.reasoning": 0,
        }
    )
    assert (
        found.input_tokens,
        found.output_tokens,
        found.cached_input_tokens,
        found.reasoning_tokens,
    ) == (100, 20, 60, 0)
    assert (found.model, found.provider, found.cache_write_tokens) == ("m", "openai", None)


def test_usage_inside_json_text():
    """Some dialects write the counts as JSON text; a text that is none says nothing."""
    details = '{"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}'
    attributes = {"langfuse.observation.type": "generation", "langfuse.observation.usage_details": details}
    found = usage(attributes)
    assert (found.input_tokens, found.output_tokens, found.cached_input_tokens) == (9, 2, 4)
    for odd in ("{", "[1]", 7, '{"prompt_tokens_details": 3}'):
        assert usage({**attributes, "langfuse.observation.usage_details": odd}).provenance == "missing"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("361", 361),
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", None),
        (12.0, 12),
        (0, 0),
        (1.5, None),
        (-1, None),
        (True, None),
        ("", None),
        ("-3", None),
        ("1" * 40, None),
    ],
)
def test_counts(value, expected):
    """A count is a whole number from 0 on, or its digits; anything else is unknown, never 0."""
    found = usage({"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": value})
    assert expected == found.input_tokens
    assert ("missing" if expected is None else "reported") == found.provenance


def test_no_model_call_has_no_usage():
    """Only generations have usage: neither tools nor embeddings nor agents that repeat sums."""
    for operation in ("execute_tool", "embeddings", "invoke_agent"):
        assert usage({"gen_ai.operation.name": operation, "gen_ai.usage.input_tokens": 5}) is None
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.usage.input_tokens": 5}
    assert reports_usage(verdict(attributes), attributes)
    aggregated = {"gen_ai.operation.name": "invoke_agent", "gen_ai.aggregated_usage.input_tokens": 5}
    assert not reports_usage(verdict(aggregated), aggregated)


def test_a_cut_stream_has_no_usage():
    """What a failed call counted before its finish is kept raw and is no usage; a finished one counts."""
    attributes = dict(chat("01", 0, 1, tokens=(78, 1)).attributes)
    cut = usage(attributes, failed=True)
    assert (cut.provenance, cut.input_tokens, cut.output_tokens) == ("missing", None, None)
    assert cut.raw["gen_ai.usage.input_tokens"] == 78
    finished = usage({**attributes, "gen_ai.response.finish_reasons": ("length",)}, failed=True)
    assert (finished.provenance, finished.input_tokens) == ("reported", 78)


def test_own_usage_counts_whatever_the_outcome():
    """What the application told us it used is used, also by a call that failed."""
    attributes = {"turntrace.phase": "generation", "gen_ai.usage.input_tokens": 7}
    assert usage(attributes, failed=True, scope="turntrace").input_tokens == 7


def test_a_refused_call_has_nothing_to_report():
    """A call that failed before any answer is no missing report; one that was answered is."""
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    assert usage(attributes, failed=True) is None
    assert usage(attributes).provenance == "missing"
    assert usage({**attributes, "gen_ai.response.id": "r"}, failed=True).provenance == "missing"


def test_zeros_of_a_dialect_that_fills_them_in():
    """Strands writes 0 for counts it never got: unknown. Elsewhere a reported 0 is 0."""
    zeros = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 0, "gen_ai.usage.output_tokens": 0}
    assert usage(zeros, scope="strands.telemetry.tracer").provenance == "missing"
    assert (usage(zeros).input_tokens, usage(zeros).output_tokens) == (0, 0)
    some = {**zeros, "gen_ai.usage.input_tokens": 3}
    assert (
        usage(some, scope="strands.x").input_tokens,
        usage(some, scope="strands.x").output_tokens,
    ) == (3, 0)


def test_input_that_excludes_the_cache(monkeypatch):
    """A dialect whose input leaves the cache out is made inclusive."""
    facts = replace(
        FACTS["otel_genai"], tokens=replace(FACTS["otel_genai"].tokens, input_excludes_cache=True)
    )
    monkeypatch.setattr(dialects, "FACTS", {**FACTS, "otel_genai": facts})
    found = usage(
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.usage.input_tokens": 7,
            "gen_ai.usage.cache_read.input_tokens": 100,
            "gen_ai.usage.cache_write.input_tokens": 10,
        }
    )
    assert found.input_tokens == 117


def test_same_request():
    """Two spans that hold the same request agree on its number; without content there is none."""
    one = {"openinference.span.kind": "LLM", "input.value": "hello"}
    assert request_of(verdict(one), one) == request_of(verdict(one), dict(one))
    assert request_of(verdict(one), one) != request_of(verdict(one), {**one, "input.value": "bye"})
    assert request_of(verdict(one), {}) is None
    assert request_of(verdict(one), {"input.value": ""}) is None
