"""Which real agents are played here, and how often."""

import os

import pytest

from agents.setups import CACHE

__all__ = ["ALLOWED", "REPEATS", "installed"]

REPEATS = int(os.environ.get("TURNTRACE_AGENT_REPEATS", "20"))
ALLOWED = REPEATS // 10
"""How many repeats may be out of bounds: 2 of 20."""

_IS_REQUIRED = "agents" in os.environ.get("TURNTRACE_REQUIRE", "").split(",")


def installed(name: str) -> None:
    """Skip, or with TURNTRACE_REQUIRE=agents fail, where the agent is not installed."""
    if not (CACHE / name / ".installed").exists():
        told = f"{name} is not installed; `make agents` installs it from npm"
        (pytest.fail if _IS_REQUIRED else pytest.skip)(told)
