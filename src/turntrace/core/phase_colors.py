"""One fixed colour for each phase, the same wherever a phase is drawn."""

from collections.abc import Mapping
from typing import Final

__all__ = ["PHASE_COLORS", "UNATTRIBUTED"]

UNATTRIBUTED: Final = "unattributed"

PHASE_COLORS: Final[Mapping[str, str]] = {
    "prompt_build": "#6969ff",
    "tool_partition": "#5a1eb4",
    "provider_queue": "#87e1ff",
    "provider_connect": "#56b4e9",
    "provider_prewarm": "#6996ff",
    "generation": "#0072b2",
    "tool_planning": "#ff965a",
    "tool_queue": "#b42d00",
    "tool_execution": "#e69f00",
    "permission_wait": "#cc79a7",
    "process_wait": "#b4d2a5",
    "verification": "#009e73",
    "compaction": "#f0e442",
    "persistence": "#4b693c",
    "retry_wait": "#d55e00",
    "reconnect_wait": "#961e1e",
    "model_switch": "#0000ff",
    "stream_consume": "#e1e196",
    "retrieval": "#a54b87",
    "embedding": "#1e4bff",
    "memory": "#692d78",
    "guardrail": "#d200b4",
    "handoff": "#ff005a",
    "plan": "#ffd269",
    "other": "#693c5a",
    UNATTRIBUTED: "#c8c8c8",
}
"""Hexadecimal sRGB by phase, ``unattributed`` included.

The frequent phases have the colours of Okabe and Ito. Any two differ for trichromats, protanopes and
deuteranopes alike (a test says by how much).

Source: M. Okabe, K. Ito, Color Universal Design, 2008.
"""
