"""Names of span attributes, and the allow-list of those that may leave the process.

The GenAI names follow the OpenTelemetry GenAI semantic conventions (Development); they are spelled
here because the conventions' own constants moved and are deprecated where they were.
"""

from collections.abc import Mapping
from typing import Final

__all__ = [
    "ALLOWED",
    "EXCLUSIVE_MS",
    "MAX_STRING_CHARACTERS",
    "OUTCOME",
    "PHASE",
    "ROUND",
    "Scalar",
    "content_free",
]

Scalar = str | bool | int | float

PHASE: Final = "turntrace.phase"
EXCLUSIVE_MS: Final = "turntrace.exclusive_ms"
EXCLUSIVE_PROVISIONAL: Final = "turntrace.exclusive_provisional"
OUTCOME: Final = "turntrace.outcome"
ROUND: Final = "turntrace.round"
RUN_ID: Final = "turntrace.run_id"
PARENT_RUN_ID: Final = "turntrace.parent_run_id"
"""On the span of a turn that lies in another one, whose figures include its own."""

ATTEMPT: Final = "turntrace.attempt"
REASON: Final = "turntrace.reason"
TURN_AGENT: Final = "turntrace.agent"
"""The agent of the turn that a span lies in: what reads spans one by one cannot look it up."""

RETRIED_MODEL: Final = "turntrace.model"
"""On a wait before a request is sent again: the model of the call that it lies in."""

REPEATED: Final = "turntrace.repeated"
"""True on a span that shows a call again which a span above it shows: it is not counted."""

METRICS: Final = "turntrace.metrics"
"""Who makes metrics of a span: ``process`` or ``collector``; of the resource, and of a span that says otherwise."""

CALL_HASH: Final = "turntrace.call_hash"
"""On a tool call: a hash of its name and arguments with a salt of the process, so that repeats can be told."""

FIRST_TOKEN_MS: Final = "turntrace.first_token_ms"  # noqa: S105 - a name, no password
FIRST_VISIBLE_MS: Final = "turntrace.first_visible_ms"
AWAIT_MS: Final = "turntrace.stream.await_ms"
CONSUME_MS: Final = "turntrace.stream.consume_ms"
CHUNKS: Final = "turntrace.stream.chunks"
LABEL_PREFIX: Final = "turntrace.label."
WALL_PREFIX: Final = "turntrace.wall."
TURN_PREFIX: Final = "turntrace.turn."
FLAG_PREFIX: Final = "turntrace.flag."

OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
SYSTEM: Final = "gen_ai.system"
REQUEST_MODEL: Final = "gen_ai.request.model"
RESPONSE_MODEL: Final = "gen_ai.response.model"
RESPONSE_ID: Final = "gen_ai.response.id"
REQUEST_STREAM: Final = "gen_ai.request.stream"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
TIME_TO_FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
AGENT_NAME: Final = "gen_ai.agent.name"
CONVERSATION_ID: Final = "gen_ai.conversation.id"
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_TYPE: Final = "gen_ai.tool.type"
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE_TOKENS: Final = "gen_ai.usage.cache_write.input_tokens"
CACHE_CREATION_TOKENS: Final = "gen_ai.usage.cache_creation.input_tokens"
REASONING_TOKENS: Final = "gen_ai.usage.reasoning.output_tokens"
AGGREGATED_PREFIX: Final = "gen_ai.aggregated_usage."
ERROR_TYPE: Final = "error.type"
HTTP_STATUS: Final = "http.response.status_code"
HTTP_METHOD: Final = "http.request.method"
HTTP_RESEND: Final = "http.request.resend_count"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"

MAX_STRING_CHARACTERS: Final = 256

ALLOWED: Final = frozenset(
    {
        PHASE, EXCLUSIVE_MS, EXCLUSIVE_PROVISIONAL, OUTCOME, ROUND, RUN_ID, ATTEMPT, REASON, TURN_AGENT,
        RETRIED_MODEL,
        REPEATED, METRICS, PARENT_RUN_ID, CALL_HASH,
        FIRST_TOKEN_MS, FIRST_VISIBLE_MS, AWAIT_MS, CONSUME_MS, CHUNKS,
        OPERATION, PROVIDER, SYSTEM, REQUEST_MODEL, RESPONSE_MODEL, RESPONSE_ID, REQUEST_STREAM,
        FINISH_REASONS, TIME_TO_FIRST_CHUNK, AGENT_NAME, CONVERSATION_ID, TOOL_NAME, TOOL_TYPE, TOOL_CALL_ID,
        "gen_ai.agent.id", "gen_ai.agent.version", "gen_ai.workflow.name", "gen_ai.output.type",
        "gen_ai.request.max_tokens", "gen_ai.request.temperature", "gen_ai.request.top_p",
        "gen_ai.request.choice.count", "gen_ai.request.seed", "gen_ai.token.type",
        INPUT_TOKENS, OUTPUT_TOKENS, CACHE_READ_TOKENS, CACHE_WRITE_TOKENS, CACHE_CREATION_TOKENS,
        REASONING_TOKENS, "gen_ai.usage.prompt_tokens", "gen_ai.usage.completion_tokens",
        "gen_ai.aggregated_usage.input_tokens", "gen_ai.aggregated_usage.output_tokens",
        "gen_ai.aggregated_usage.cache_read.input_tokens",
        "gen_ai.aggregated_usage.cache_write.input_tokens",
        "gen_ai.aggregated_usage.cache_creation.input_tokens",
        "gen_ai.aggregated_usage.reasoning.output_tokens",
        ERROR_TYPE, HTTP_STATUS, "http.status_code", HTTP_METHOD, "http.method", HTTP_RESEND,
        SERVER_ADDRESS, SERVER_PORT, "network.protocol.name", "network.protocol.version",
        "mcp.method.name", "rpc.system", "db.system.name", "messaging.system",
        "openinference.span.kind", "traceloop.span.kind", "langsmith.span.kind",
    }
)  # fmt: skip
"""Content-free attributes: these names leave the process by default, and no other."""

_ALLOWED_PREFIXES: Final = (LABEL_PREFIX, WALL_PREFIX, TURN_PREFIX, FLAG_PREFIX)


def content_free(attributes: Mapping[str, object], keep: frozenset[str] = frozenset()) -> dict[str, Scalar]:
    """The scalars of ``attributes`` whose names are on the allow-list or in ``keep``, strings cut.

    A sequence of strings (finish reasons) becomes one comma-separated string.

    >>> content_free({"gen_ai.request.model": "m", "gen_ai.input.messages": "secret"})
    {'gen_ai.request.model': 'm'}
    """
    kept: dict[str, Scalar] = {}
    for name, value in attributes.items():
        if name not in ALLOWED and name not in keep and not str(name).startswith(_ALLOWED_PREFIXES):
            continue
        if isinstance(value, str):
            kept[name] = value[:MAX_STRING_CHARACTERS]
        elif isinstance(value, bool | int | float):
            kept[name] = value
        elif isinstance(value, tuple | list) and all(isinstance(item, str) for item in value):
            kept[name] = ",".join(value)[:MAX_STRING_CHARACTERS]
    return kept
