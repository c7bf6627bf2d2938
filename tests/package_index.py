"""Whether what is to be installed for a test can be had at all."""

import subprocess
import sys
from functools import cache

import pytest

__all__ = ["skip_without_index"]


@cache
def _is_reachable():
    asked = [
        sys.executable,
        "-m",
        "pip",
        "index",
        "versions",
        "--retries=1",
        "--timeout=10",
        "opentelemetry-api",
    ]
    return subprocess.run(asked, capture_output=True, timeout=120).returncode == 0


def skip_without_index():
    """Called where an installation failed: skip the test if that is because there is no package index."""
    if not _is_reachable():
        pytest.skip("the package index cannot be reached")
