"""How coding agents from npm say what their spans are, and where these keep their facts.

Their spans are mostly plumbing: hundreds in a turn of codex, a thousand in one of opencode. What is not named
here is structure, so that none of it becomes a phase. Seen with the versions in docs/coding-agents.md.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from turntrace.core import attributes as names
from turntrace.core.dialect_model import Facts, Role, Row, Tokens, Verdict

__all__ = ["AGENT_ROWS", "CODING_AGENTS", "agent_facts"]

CODING_AGENTS: Final = frozenset({"claude_code", "codex", "gemini_cli", "opencode"})
"""The dialects of coding agents: their spans may be roots of many traces, and their events are read."""

_NS_PER_MS: Final = 1_000_000

_PLUMBING: Final = Verdict(Role.STRUCTURE, None, "plumbing")


def _meanings(dialect: str, meanings: Mapping[str, str]) -> dict[str, Verdict]:
    found = {
        value: Verdict(meaning, None, dialect)
        if isinstance(meaning, Role)
        else Verdict(Role.PHASE, meaning, dialect)
        for value, meaning in meanings.items()
    }
    return {value: _PLUMBING if verdict.role is Role.DROP else verdict for value, verdict in found.items()}


_CLAUDE: Final = ("com.anthropic.claude_code",)
_CODEX: Final = ("codex",)
_GEMINI: Final = ("gemini-cli",)
_OPENCODE: Final = ("opencode",)

AGENT_ROWS: Final = (
    Row(
        "span.type",
        _meanings(
            "claude_code",
            {
                "interaction": Role.TURN,
                "llm_request": "generation",
                "tool": Role.STRUCTURE,
                "tool.blocked_on_user": "permission_wait",
                "tool.execution": "tool_execution",
                "compaction": "compaction",
            },
        ),
        _CLAUDE,
    ),
    Row(
        "",
        _meanings(
            "claude_code",
            {
                "claude_code.api_request": "generation",
                "claude_code.api_error": "generation",
                "claude_code.tool_result": "tool_execution",
                "claude_code.tool_decision": "permission_wait",
            },
        ),
        _CLAUDE,
        _PLUMBING,
    ),
    Row("codex.turn.phase", _meanings("codex", {"sampling": "generation"}), _CODEX),
    Row("codex.tool.phase", _meanings("codex", {"dispatch": "tool_execution"}), _CODEX),
    Row(
        "",
        _meanings(
            "codex",
            {
                "session_task.turn": Role.TURN,
                "regular_task.prepare_run_turn": "prompt_build",
                "record_context_updates_and_set_reference_context_item": "prompt_build",
                "run_hooks_and_record_inputs": "prompt_build",
                "codex.api_request": "provider_connect",
                "codex.sse_event": "generation",
                "codex.websocket_event": "generation",
                "codex.tool_result": "tool_execution",
                "codex.tool_decision": "permission_wait",
            },
        ),
        _CODEX,
        _PLUMBING,
    ),
    Row(
        names.OPERATION,
        _meanings(
            "gemini_cli",
            {
                "user_prompt": Role.TURN,
                "agent_call": Role.AGENT,
                "llm_call": "generation",
                "tool_call": "tool_execution",
                "schedule_tool_calls": "permission_wait",
            },
        ),
        _GEMINI,
    ),
    Row(
        "",
        _meanings(
            "gemini_cli",
            {
                "gemini_cli.api_response": "generation",
                "gemini_cli.api_error": "generation",
                "gemini_cli.tool_call": "tool_execution",
            },
        ),
        _GEMINI,
        _PLUMBING,
    ),
    Row(
        "",
        _meanings(
            "opencode",
            {
                "SessionPrompt.prompt": Role.TURN,
                # a model of its own is asked for a title while the turn goes on
                "SessionPrompt.ensureTitle": Role.AGENT,
                "SessionPrompt.createUserMessage": "prompt_build",
                "SystemPrompt.environment": "prompt_build",
                "SystemPrompt.skills": "prompt_build",
                "SystemPrompt.mcp": "prompt_build",
                "Instruction.system": "prompt_build",
                "SessionTools.resolve": "tool_partition",
                "SessionCompaction.process": "compaction",
                "Permission.ask": "permission_wait",
                "Question.ask": "permission_wait",
                "ai.streamText.doStream": "generation",
                "ai.generateText.doGenerate": "generation",
                "ai.generateObject.doGenerate": "generation",
                "ai.streamObject.doStream": "generation",
                "ai.toolCall": "tool_execution",
                **dict.fromkeys(("ai.streamText", "ai.generateText"), Role.DROP),
                **dict.fromkeys(("ai.streamObject", "ai.generateObject"), Role.DROP),
            },
        ),
        _OPENCODE,
        _PLUMBING,
    ),
)
"""The rows of coding agents; their scopes are their own, so that they stand in nobody's way."""


def agent_facts(genai: Facts, vercel_ai: Facts) -> dict[str, Facts]:
    """The facts by dialect, from those of the conventions and of the SDK that opencode is made with."""
    return {
        "plumbing": replace(genai, tokens=Tokens(input=(), output=())),
        "claude_code": replace(
            genai,
            tokens=Tokens(
                input=("input_tokens",),
                output=("output_tokens",),
                cached=("cache_read_tokens",),
                cache_write=("cache_creation_tokens",),
                input_excludes_cache=True,
            ),
            session=(names.CONVERSATION_ID, "session.id"),
            tool=(names.TOOL_NAME, "tool_name"),
            model=(names.REQUEST_MODEL, "model"),
            response_id=(names.RESPONSE_ID, "request_id"),
            finished=(names.FINISH_REASONS, "stop_reason"),
            first_chunk=(("ttft_ms", _NS_PER_MS),),
            agent=(),
            called="claude",
            affixes=(),
        ),
        "codex": replace(
            genai,
            tokens=replace(genai.tokens, reasoning=("codex.usage.reasoning_output_tokens",)),
            session=("conversation.id",),
            tool=(names.TOOL_NAME, "tool_name"),
            model=(names.REQUEST_MODEL, "model"),
            agent=(),
            called="codex",
            affixes=(),
        ),
        "gemini_cli": replace(
            genai,
            tokens=replace(genai.tokens, output_excludes_reasoning=True),
            session=(names.CONVERSATION_ID, "session.id"),
            affixes=(),
        ),
        "opencode": replace(
            vercel_ai,
            session=("session.id",),
            agent=(),
            called="opencode",
            affixes=(("SessionPrompt.ensure", ""),),
        ),
    }
