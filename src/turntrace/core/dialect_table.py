"""The table of dialects: how the instrumentations in the wild say what a span is.

The first row that knows a span decides, so the order is part of the table. Another dialect is another
row and, if its attributes have names of their own, another set of facts.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Final

from turntrace.core import attributes as names
from turntrace.core.contract import PHASES
from turntrace.core.dialect_model import Facts, Role, Row, Tokens, Verdict

__all__ = [
    "FACTS",
    "HTTP_ATTEMPT",
    "LEAF",
    "NAMED_TOOL",
    "OWN",
    "PLUMBING",
    "ROWS",
    "TOOL_NAME_PREFIXES",
]

OWN: Final = "turntrace"
"""The scope of the spans that turntrace itself makes, and the name of their dialect."""


@cache
def _verdict(dialect: str, meaning: str) -> Verdict:
    """The one verdict of ``meaning``: a role or the name of a phase."""
    if isinstance(meaning, Role):
        return Verdict(meaning, None, dialect)
    return Verdict(Role.PHASE, meaning, dialect)


_NS_PER_S: Final = 1_000_000_000
_NS_PER_MS: Final = 1_000_000

_GENAI_TOKENS: Final = Tokens(
    input=(names.INPUT_TOKENS, "gen_ai.usage.prompt_tokens"),
    output=(names.OUTPUT_TOKENS, "gen_ai.usage.completion_tokens"),
    cached=(names.CACHE_READ_TOKENS, "gen_ai.usage.cache_read_input_tokens"),
    cache_write=(
        names.CACHE_WRITE_TOKENS,
        names.CACHE_CREATION_TOKENS,
        "gen_ai.usage.cache_write_input_tokens",
        "gen_ai.usage.cache_creation_input_tokens",
    ),
    reasoning=(names.REASONING_TOKENS, "gen_ai.usage.reasoning_tokens"),
    total=("gen_ai.usage.total_tokens", "llm.usage.total_tokens"),
)

_GENAI: Final = Facts(
    tokens=_GENAI_TOKENS,
    answered=(
        names.RESPONSE_ID,
        names.RESPONSE_MODEL,
        names.FINISH_REASONS,
        names.TIME_TO_FIRST_CHUNK,
        "gen_ai.output.messages",
    ),
    first_chunk=(
        (names.TIME_TO_FIRST_CHUNK, _NS_PER_S),
        ("gen_ai.client.operation.time_to_first_chunk", _NS_PER_S),
    ),
    affixes=(("execute_tool ", ""), ("invoke_agent ", "")),
    request=("gen_ai.input.messages",),
)

_OPENINFERENCE: Final = Facts(
    tokens=Tokens(
        input=("llm.token_count.prompt",),
        output=("llm.token_count.completion",),
        cached=("llm.token_count.prompt_details.cache_read",),
        cache_write=("llm.token_count.prompt_details.cache_write",),
        reasoning=("llm.token_count.completion_details.reasoning",),
        total=("llm.token_count.total",),
    ),
    agent=("agent.name",),
    session=("session.id",),
    tool=("tool.name",),
    model=("llm.model_name", "llm.request.model_name", "llm.response.model_name"),
    provider=("llm.provider", "llm.system"),
    finished=("llm.finish_reason",),
    answered=(
        "llm.finish_reason",
        "llm.token_count.total",
        "output.value",
        "llm.output_messages.0.message.role",
    ),
    affixes=(("", ""),),
    request=("input.value",),
)

_LANGSMITH_USAGE: Final = "langsmith.metadata.usage_metadata#"
_LANGFUSE_USAGE: Final = "langfuse.observation.usage_details#"

FACTS: Final[Mapping[str, Facts]] = {
    "otel": _GENAI,
    "otel_genai": _GENAI,
    OWN: replace(
        _GENAI,
        answered=(*_GENAI.answered, names.FIRST_TOKEN_MS),
        first_token=((names.FIRST_TOKEN_MS, _NS_PER_MS),),
        cut_by_error=False,
    ),
    "openinference": _OPENINFERENCE,
    "openllmetry": replace(
        _GENAI,
        agent=(names.AGENT_NAME, "traceloop.entity.name", "traceloop.workflow.name"),
        tool=(names.TOOL_NAME, "traceloop.entity.name"),
        affixes=(("", ".tool"), ("", ".agent"), ("", ".workflow"), *_GENAI.affixes),
    ),
    "openai_agents": replace(_GENAI, agent=(names.AGENT_NAME, "gen_ai.workflow.name")),
    "pydantic_ai": replace(
        _GENAI,
        agent=(names.AGENT_NAME, "agent_name"),
        tokens=replace(
            _GENAI_TOKENS,
            reasoning=(*_GENAI_TOKENS.reasoning, "gen_ai.usage.details.reasoning_tokens"),
        ),
    ),
    "google_genai": _GENAI,
    "google_adk": _GENAI,
    "litellm": replace(_GENAI, tokens=replace(_GENAI_TOKENS, zero_is_missing=True)),
    "vercel_ai": replace(
        _GENAI,
        tokens=Tokens(
            input=(names.INPUT_TOKENS, "ai.usage.inputTokens", "ai.usage.promptTokens"),
            output=(names.OUTPUT_TOKENS, "ai.usage.outputTokens", "ai.usage.completionTokens"),
            cached=("ai.usage.cachedInputTokens",),
            reasoning=("ai.usage.reasoningTokens",),
            total=("ai.usage.totalTokens",),
        ),
        agent=("ai.telemetry.functionId",),
        tool=("ai.toolCall.name",),
        model=(names.REQUEST_MODEL, names.RESPONSE_MODEL, "ai.model.id"),
        provider=(names.PROVIDER, names.SYSTEM, "ai.model.provider"),
        response_id=(names.RESPONSE_ID, "ai.response.id"),
        finished=(names.FINISH_REASONS, "ai.response.finishReason"),
        answered=(*_GENAI.answered, "ai.response.finishReason"),
        first_chunk=(("ai.response.msToFirstChunk", _NS_PER_MS),),
        affixes=(),
        request=("ai.prompt.messages",),
    ),
    "anthropic": replace(
        _GENAI,
        finished=(names.FINISH_REASONS, "anthropic.message.stop_reason"),
        affixes=tuple((f"anthropic.{kind}tool_use ", "") for kind in ("", "custom_", "mcp_")),
    ),
    "strands": replace(
        _GENAI,
        tokens=replace(_GENAI_TOKENS, zero_is_missing=True),
        first_token=(("gen_ai.server.time_to_first_token", _NS_PER_MS),),
    ),
    "logfire": _GENAI,
    "mcp": replace(_GENAI, affixes=(("MCP send tools/call ", ""), ("tools/call ", ""))),
    "span_name": replace(_GENAI, affixes=(("execute_tool ", ""), ("tool ", ""), ("tool:", ""))),
    "langsmith": replace(
        _GENAI,
        tokens=replace(
            _GENAI_TOKENS,
            cached=(f"{_LANGSMITH_USAGE}input_token_details.cache_read",),
            cache_write=(f"{_LANGSMITH_USAGE}input_token_details.cache_creation",),
            reasoning=(f"{_LANGSMITH_USAGE}output_token_details.reasoning",),
        ),
        session=("langsmith.trace.session_id",),
        answered=(*_GENAI.answered, "gen_ai.completion"),
        affixes=(("", ""),),
        request=("gen_ai.prompt",),
    ),
    "langfuse": replace(
        _GENAI,
        tokens=Tokens(
            input=(
                f"{_LANGFUSE_USAGE}prompt_tokens",
                f"{_LANGFUSE_USAGE}input_tokens",
                f"{_LANGFUSE_USAGE}input",
            ),
            output=(
                f"{_LANGFUSE_USAGE}completion_tokens",
                f"{_LANGFUSE_USAGE}output_tokens",
                f"{_LANGFUSE_USAGE}output",
            ),
            cached=(
                f"{_LANGFUSE_USAGE}prompt_tokens_details.cached_tokens",
                f"{_LANGFUSE_USAGE}input_tokens_details.cached_tokens",
            ),
            reasoning=(
                f"{_LANGFUSE_USAGE}completion_tokens_details.reasoning_tokens",
                f"{_LANGFUSE_USAGE}output_tokens_details.reasoning_tokens",
            ),
            total=(f"{_LANGFUSE_USAGE}total_tokens", f"{_LANGFUSE_USAGE}total"),
        ),
        session=("session.id", "langfuse.session.id"),
        model=("langfuse.observation.model.name",),
        finished=("langfuse.observation.metadata.finish_reason",),
        answered=("langfuse.observation.output", "langfuse.observation.completion_start_time"),
        affixes=(("", ""),),
        request=("langfuse.observation.input",),
    ),
}
"""The facts of each dialect, by the name that its verdicts carry."""

_GENAI_OPERATIONS: Final[Mapping[str, str]] = {
    "chat": "generation",
    "generate_content": "generation",
    "text_completion": "generation",
    "completion": "generation",
    "embeddings": "embedding",
    "retrieval": "retrieval",
    "rerank": "retrieval",
    "vector_db_retrieve": "retrieval",
    "execute_tool": "tool_execution",
    "invoke_agent": Role.AGENT,
    "create_agent": Role.STRUCTURE,
    "invoke_workflow": Role.STRUCTURE,
    "execute_task": Role.STRUCTURE,
    "agent_step": Role.STRUCTURE,
    "execute_event_loop_cycle": Role.STRUCTURE,
    "plan": "plan",
    "handoff": "handoff",
    "guardrail": "guardrail",
    "create_memory_store": "memory",
    "search_memory": "memory",
    "create_memory": "memory",
    "update_memory": "memory",
    "upsert_memory": "memory",
    "delete_memory": "memory",
    "delete_memory_store": "memory",
}

_OWN_PHASES: Final[Mapping[str, str]] = {
    **{phase: phase for phase in PHASES},
    "turn": Role.TURN,
    "other": Role.LEAF,
}


def _meanings(dialect: str, meanings: Mapping[str, str]) -> dict[str, Verdict]:
    return {value: _verdict(dialect, meaning) for value, meaning in meanings.items()}


def _genai(dialect: str, *scopes: str, **special: str) -> Row:
    """The row of a dialect that speaks OTel GenAI, with its ``special`` operations."""
    return Row(names.OPERATION, _meanings(dialect, {**_GENAI_OPERATIONS, **special}), scopes)


ROWS: Final = (
    Row(names.PHASE, _meanings(OWN, _OWN_PHASES), (OWN,), _verdict(OWN, Role.LEAF)),
    Row(names.PHASE, _meanings(OWN, {"turn": Role.TURN})),
    Row("logfire.span_type", _meanings("logfire", {"pending_span": Role.DROP, "log": Role.STRUCTURE})),
    Row(
        "langsmith.span.kind",
        _meanings(
            "langsmith",
            {
                "llm": "generation",
                "embedding": "embedding",
                "retriever": "retrieval",
                "tool": "tool_execution",
                "chain": Role.STRUCTURE,
                "prompt": Role.STRUCTURE,
                "parser": Role.STRUCTURE,
            },
        ),
        otherwise=_verdict("langsmith", Role.LEAF),
    ),
    Row(
        "openinference.span.kind",
        _meanings(
            "openinference",
            {
                "LLM": "generation",
                "EMBEDDING": "embedding",
                "RETRIEVER": "retrieval",
                "RERANKER": "retrieval",
                "TOOL": "tool_execution",
                "AGENT": Role.AGENT,
                "CHAIN": Role.STRUCTURE,
                "GUARDRAIL": "guardrail",
                "EVALUATOR": "verification",
                "PROMPT": "prompt_build",
            },
        ),
        otherwise=_verdict("openinference", Role.LEAF),
        named=(("TOOL", "handoff to ", _verdict("openinference", "handoff")),),
    ),
    Row(
        "traceloop.span.kind",
        _meanings(
            "openllmetry",
            {
                "workflow": Role.TURN,
                "agent": Role.AGENT,
                "task": Role.STRUCTURE,
                "tool": "tool_execution",
                "handoff": "handoff",
            },
        ),
    ),
    Row(
        "langfuse.observation.type",
        _meanings(
            "langfuse",
            {
                "generation": "generation",
                "embedding": "embedding",
                "retriever": "retrieval",
                "tool": "tool_execution",
                "agent": Role.AGENT,
                "chain": Role.STRUCTURE,
                "event": Role.STRUCTURE,
                "guardrail": "guardrail",
                "evaluator": "verification",
            },
        ),
        otherwise=_verdict("langfuse", Role.LEAF),
    ),
    Row(
        "",
        _meanings(
            "pydantic_ai",
            {"agent run": Role.AGENT, "running tool": "tool_execution", "running tools": Role.STRUCTURE},
        ),
        ("pydantic-ai",),
    ),
    Row(
        "",
        _meanings("anthropic", {"anthropic.messages.count_tokens": Role.LEAF}),
        ("com.anthropic.sdk.python",),
    ),
    Row(
        "",
        _meanings("litellm", {"litellm_request": "generation", "raw_gen_ai_request": "generation"}),
        ("litellm",),
    ),
    # These frameworks call one run a workflow: a prompt until the agents hand control back.
    _genai("openai_agents", "opentelemetry.instrumentation.genai.openai_agents", invoke_workflow=Role.TURN),
    _genai("pydantic_ai", "pydantic-ai"),
    _genai("anthropic", "com.anthropic.sdk.python"),
    _genai("strands", "strands."),
    _genai("google_genai", "opentelemetry.instrumentation.google_genai"),
    Row(
        names.OPERATION,
        _meanings("google_adk", _GENAI_OPERATIONS),
        ("gcp.vertex.agent",),
        named=(("execute_tool", "execute_tool (merged", _verdict("google_adk", Role.STRUCTURE)),),
    ),
    _genai("otel_genai"),
    Row(
        "llm.request.type",
        _meanings(
            "openllmetry",
            {
                "chat": "generation",
                "completion": "generation",
                "embedding": "embedding",
                "rerank": "retrieval",
            },
        ),
    ),
    Row(
        "ai.operationId",
        _meanings(
            "vercel_ai",
            {
                **dict.fromkeys(("ai.generateText", "ai.streamText"), Role.AGENT),
                **dict.fromkeys(("ai.generateObject", "ai.streamObject"), Role.AGENT),
                "ai.generateText.doGenerate": "generation",
                "ai.streamText.doStream": "generation",
                "ai.generateObject.doGenerate": "generation",
                "ai.streamObject.doStream": "generation",
                "ai.toolCall": "tool_execution",
                "ai.embed": Role.STRUCTURE,
                "ai.embedMany": Role.STRUCTURE,
                "ai.embed.doEmbed": "embedding",
                "ai.embedMany.doEmbed": "embedding",
                "ai.rerank": Role.STRUCTURE,
                "ai.rerank.doRerank": "retrieval",
            },
        ),
        otherwise=_verdict("vercel_ai", Role.LEAF),
    ),
    Row(
        "mcp.method.name",
        _meanings("mcp", {"tools/call": "tool_execution"}),
        otherwise=_verdict("mcp", Role.STRUCTURE),
    ),
    Row("asgi.event.type", {}, otherwise=_verdict("otel", Role.STRUCTURE)),
    Row(names.PHASE, _meanings(OWN, _OWN_PHASES)),
)
"""The first row that knows a span decides."""

LEAF: Final = _verdict("otel", Role.LEAF)
"""A span that no row knows."""

PLUMBING: Final = _verdict("otel", Role.STRUCTURE)
"""A SERVER or CONSUMER span that no row knows."""

HTTP_ATTEMPT: Final = replace(LEAF, http_attempt=True)
"""An HTTP client span: an attempt to reach the model where a model is being called."""

NAMED_TOOL: Final = _verdict("span_name", "tool_execution")
"""A span that only its name shows to be a tool: one of these prefixes and one word."""

TOOL_NAME_PREFIXES: Final = ("execute_tool ", "tool ", "tool:")
