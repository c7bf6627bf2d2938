"""The content-free events of zero: their fields, each with the value that zero reads where it is absent."""

from collections.abc import Mapping
from typing import Final

__all__ = ["EVENT_FIELDS"]

EVENT_FIELDS: Final[Mapping[str, Mapping[str, str | int | bool]]] = {
    "prefix_hash": dict.fromkeys(
        (
            "system_prompt",
            "base_instructions",
            "confirmation_policy",
            "project_context",
            "skills",
            "tools",
            "schema",
            "complete_prefix",
            "invalidation_reason",
        ),
        "",
    ),
    "output_budget": {
        "tool": "",
        "category": "",
        "original_bytes": 0,
        "retained_bytes": 0,
        "estimated_original_tokens": 0,
        "estimated_retained_tokens": 0,
        "truncated": False,
        "reason": "",
        "spill_created": False,
    },
    "task_state": {
        "revision": 0,
        "status": "",
        "plan_pending": 0,
        "plan_in_progress": 0,
        "plan_completed": 0,
        "plan_failed": 0,
        "tools_succeeded": 0,
        "tools_failed": 0,
        "verification_passed": 0,
        "verification_failed": 0,
        "verification_outcome": "",
        "changed_file_count": 0,
        "completion_decision": "",
        "plan_parity": "",
    },
}
"""In the order of the file: prefix_hash, output_budget, task_state."""
