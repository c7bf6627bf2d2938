"""The table of dialects: how the instrumentations in the wild say what a span is.

The first row that knows a span decides, so the order is part of the table. Another dialect is another
row and, if its attributes have names of their own, another set of facts.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Final

from turntrace.core import attributes as names
from turntrace.core.agent_dialects import AGENT_ROWS
from turntrace.core.contract import PHASES
from turntrace.core.dialect_facts import OWN
from turntrace.core.dialect_model import Role, Row, Verdict

__all__ = [
    "HTTP_ATTEMPT",
    "LEAF",
    "NAMED_TOOL",
    "PLUMBING",
    "ROWS",
    "TOOL_NAME_PREFIXES",
]


@cache
def _verdict(dialect: str, meaning: str) -> Verdict:
    """The one verdict of ``meaning``: a role or the name of a phase."""
    if isinstance(meaning, Role):
        return Verdict(meaning, None, dialect)
    return Verdict(Role.PHASE, meaning, dialect)


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
    *AGENT_ROWS,
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
        named=(
            ("TOOL", "handoff to *", _verdict("openinference", "handoff")),
            ("LLM", "*._prepare_chat_with_tools", _verdict("openinference", Role.STRUCTURE)),
        ),
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
    _genai("openllmetry_anthropic", "opentelemetry.instrumentation.anthropic"),
    _genai("google_genai", "opentelemetry.instrumentation.google_genai"),
    Row(
        names.OPERATION,
        _meanings("google_adk", _GENAI_OPERATIONS),
        ("gcp.vertex.agent",),
        named=(("execute_tool", "execute_tool (merged*", _verdict("google_adk", Role.STRUCTURE)),),
    ),
    Row("", {"AutoFunctionInvocationLoop": _verdict("otel_genai", Role.STRUCTURE)}, ("semantic_kernel.",)),
    Row(
        names.OPERATION,
        _meanings("otel_genai", _GENAI_OPERATIONS),
        # litellm writes a call onto the span around it
        named=(("chat", "invoke_agent *", _verdict("otel_genai", Role.AGENT)),),
    ),
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
