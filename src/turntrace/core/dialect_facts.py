"""Where each dialect keeps its tokens, its models, its names and its first moments."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from turntrace.core import attributes as names
from turntrace.core.agent_dialects import agent_facts
from turntrace.core.dialect_model import Facts, Tokens

__all__ = ["FACTS", "OWN"]

OWN: Final = "turntrace"
"""The scope of the spans that turntrace itself makes, and the name of their dialect."""

_NS_PER_S: Final = 1_000_000_000
_NS_PER_MS: Final = 1_000_000

_RAW_USAGE: Final = "gen_ai.usage.raw#"
"""Where logfire's clients keep what OpenAI's API said, as JSON text."""

_GENAI_TOKENS: Final = Tokens(
    input=(names.INPUT_TOKENS, "gen_ai.usage.prompt_tokens"),
    output=(names.OUTPUT_TOKENS, "gen_ai.usage.completion_tokens"),
    cached=(
        names.CACHE_READ_TOKENS,
        "gen_ai.usage.cache_read_input_tokens",
        f"{_RAW_USAGE}prompt_tokens_details.cached_tokens",
        f"{_RAW_USAGE}input_tokens_details.cached_tokens",
    ),
    cache_write=(
        names.CACHE_WRITE_TOKENS,
        names.CACHE_CREATION_TOKENS,
        "gen_ai.usage.cache_write_input_tokens",
        "gen_ai.usage.cache_creation_input_tokens",
    ),
    reasoning=(
        names.REASONING_TOKENS,
        "gen_ai.usage.reasoning_tokens",
        f"{_RAW_USAGE}completion_tokens_details.reasoning_tokens",
        f"{_RAW_USAGE}output_tokens_details.reasoning_tokens",
    ),
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

_LITELLM_USAGE: Final = "llm.openai.usage#"
_LANGSMITH_USAGE: Final = "langsmith.metadata.usage_metadata#"
_LANGFUSE_USAGE: Final = "langfuse.observation.usage_details#"

_VERCEL_AI: Final = replace(
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
)

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
    # it says zero where nothing was reported
    "openllmetry_anthropic": replace(_GENAI, tokens=replace(_GENAI_TOKENS, zero_is_missing=True)),
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
    "litellm": replace(
        _GENAI,
        tokens=Tokens(
            input=(*_GENAI_TOKENS.input, f"{_LITELLM_USAGE}prompt_tokens"),
            output=(*_GENAI_TOKENS.output, f"{_LITELLM_USAGE}completion_tokens"),
            cached=(*_GENAI_TOKENS.cached, f"{_LITELLM_USAGE}prompt_tokens_details.cached_tokens"),
            cache_write=_GENAI_TOKENS.cache_write,
            reasoning=(
                *_GENAI_TOKENS.reasoning,
                f"{_LITELLM_USAGE}completion_tokens_details.reasoning_tokens",
            ),
            total=(*_GENAI_TOKENS.total, f"{_LITELLM_USAGE}total_tokens"),
            zero_is_missing=True,
        ),
        model=(names.REQUEST_MODEL, names.RESPONSE_MODEL, "llm.openai.model"),
        response_id=(names.RESPONSE_ID, "llm.openai.id"),
        answered=(*_GENAI.answered, "llm.openai.id"),
    ),
    "vercel_ai": _VERCEL_AI,
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
        exception_is_failure=True,
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
    **agent_facts(_GENAI, _VERCEL_AI),
}
"""The facts of each dialect, by the name that its verdicts carry."""
