"""The agenteval contract: names, line types and required keys. The one place they are spelled.

Source: Gitlawb/zero 0.8 for the compatible part, the project's trace contract for the rest.
"""

from typing import Final, Literal, NamedTuple

__all__ = [
    "COUNTERS",
    "ISSUE_SEVERITY",
    "MARKS",
    "OPTIONAL_EVENT_KEYS",
    "PHASES",
    "REQUIRED_EVENT_KEYS",
    "SCHEMA_VERSION",
    "ZERO_OPTIONAL_EVENT_KEYS",
    "Controllable",
    "Kind",
    "Phase",
    "Severity",
]

SCHEMA_VERSION: Final = 1
"""Version 1 (2026-11): blocks with ``lines``, integer times, ids, usage, structure, gaps."""

Kind = Literal["model", "tool", "human", "process", "agent", "io"]
Controllable = Literal["yes", "no", "partly"]
Severity = Literal["error", "warning", "info"]


class Phase(NamedTuple):
    """A name of the vocabulary: who spends its time, whether the agent's author can change it.

    ``planned`` means that nothing in the product stamps it yet; ``phase()`` accepts it all the same.
    """

    name: str
    kind: Kind
    controllable: Controllable
    meaning: str
    planned: bool = False


_PHASES: Final = (
    Phase("prompt_build", "agent", "yes", "from the start of a round until the request is ready"),
    Phase("tool_partition", "agent", "yes", "choosing which tool schemas to expose"),
    Phase("provider_queue", "io", "yes", "credentials, rate limiter or semaphore before sending"),
    Phase("provider_connect", "io", "partly", "one HTTP attempt until the response headers"),
    Phase("provider_prewarm", "io", "yes", "opening a connection ahead of need", planned=True),
    Phase("generation", "model", "partly", "send until the last item of the stream"),
    Phase("tool_planning", "agent", "yes", "parsing, policy and ordering of tool calls", planned=True),
    Phase("tool_queue", "tool", "yes", "waiting for the tool concurrency limiter"),
    Phase("tool_execution", "tool", "yes", "one tool call, or the batch around several"),
    Phase("permission_wait", "human", "no", "waiting for a person's approval"),
    Phase("process_wait", "process", "partly", "waiting for a subprocess of a tool"),
    Phase("verification", "process", "yes", "checking the agent's own work"),
    Phase("compaction", "agent", "yes", "shortening the history"),
    Phase("persistence", "io", "yes", "writing the session or a checkpoint", planned=True),
    Phase("retry_wait", "io", "yes", "sleeping before a request is sent again"),
    Phase("reconnect_wait", "io", "partly", "sleeping before a stream is opened again", planned=True),
    Phase("model_switch", "agent", "yes", "closing one model session and opening another", planned=True),
    Phase("stream_consume", "agent", "yes", "the caller pausing between two items of a stream"),
    Phase("retrieval", "io", "yes", "searching documents"),
    Phase("embedding", "model", "partly", "computing embeddings"),
    Phase("memory", "io", "yes", "reading or writing the agent's memory"),
    Phase("guardrail", "agent", "yes", "checking input or output against a policy", planned=True),
    Phase("handoff", "agent", "yes", "passing the turn to another agent", planned=True),
    Phase("plan", "agent", "partly", "making a plan"),
    Phase("other", "agent", "partly", "a span of another instrumentation that fits none"),
)

PHASES: Final = {phase.name: phase for phase in _PHASES}
"""The vocabulary by name, in display order."""

COUNTERS: Final = frozenset(
    {
        "acceptance_checks",
        "cache_write_tokens",
        "cached_input_tokens",
        "compaction_attempts",
        "compaction_count",
        "completion_nudges",
        "input_tokens",
        "model_requests",
        "model_switches",
        "output_tokens",
        "polling_turn",
        "posture_escalations",
        "prefix_drift",
        "prefix_stable",
        "prewarm_attempts",
        "reasoning_tokens",
        "reconnect_count",
        "response_chain_reset",
        "response_chain_reused",
        "responses_http_fallback",
        "retry_count",
        "tool_calls",
    }
)

MARKS: Final = frozenset({"first_chunk", "first_token", "first_useful", "first_visible"})
"""Moments of a turn: the first call wins."""

REQUIRED_EVENT_KEYS: Final = (
    "span:tool_partition",
    "span:generation",
    "span:provider_connect",
    "counter:model_requests",
    "counter:input_tokens",
    "counter:output_tokens",
    "trace:run",
)
"""The seven keys of a normal model turn, in zero's order."""

ZERO_OPTIONAL_EVENT_KEYS: Final = (
    "span:provider_queue",
    "span:tool_execution",
    "span:permission_wait",
    "span:compaction",
    "span:verification",
    "counter:tool_calls",
    "counter:cached_input_tokens",
    "counter:retry_count",
    "counter:reconnect_count",
    "counter:compaction_count",
    "counter:completion_nudges",
    "counter:acceptance_checks",
    "counter:polling_turn",
    "counter:model_switches",
    "span:provider_prewarm",
    "counter:prewarm_attempts",
    "counter:prefix_stable",
    "counter:prefix_drift",
    "counter:posture_escalations",
    "event:prefix_hash",
    "task_state",
)
"""Zero's list as it stands, with ``event:prefix_hash``, which its own writer never emits."""

OPTIONAL_EVENT_KEYS: Final = (
    *(key for key in ZERO_OPTIONAL_EVENT_KEYS if key not in {"event:prefix_hash", "counter:polling_turn"}),
    "prefix_hash",
    "output_budget",
)
"""The corrected list: keys that a writer can really emit."""

ISSUE_SEVERITY: Final[dict[str, Severity]] = {
    "empty": "error",
    "no_header": "error",
    "no_events": "error",
    "bad_json_line": "error",
    "truncated_tail": "error",
    "trailing_content": "error",
    "bad_utf8": "error",
    "counter_value_invalid": "error",
    "counter_name_missing": "error",
    "counter_duplicate": "error",
    "span_duration_invalid": "error",
    "span_exclusive_invalid": "error",
    "span_end_before_start": "error",
    "span_duration_mismatch": "error",
    "timestamp_invalid": "error",
    "window_negative": "error",
    "duplicate_header": "error",
    "header_mismatch": "error",
    "header_name": "error",
    "parent_unknown": "error",
    "field_type": "error",
    "block_torn": "error",
    "line_too_long": "error",
    "id_invalid": "error",
    "span_outside_window": "warning",
    "span_interval_missing": "warning",
    "parent_ambiguous": "warning",
    "clock_skew": "warning",
    "cycle": "warning",
    "duplicate_span": "warning",
    "interrupted": "warning",
    "issues_omitted": "warning",
    "unknown_type": "info",
    "bom": "info",
}
