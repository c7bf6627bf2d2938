"""The SDKs' own tests of streams and raw responses end the same with our adapters on."""

import subprocess
import sys
from pathlib import Path

import pytest

from package_index import skip_without_index

RUN = Path(__file__).parent / "sdk_suites" / "run.py"


@pytest.mark.index
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_complaint_24_the_suite_ends_the_same(name):
    """Several hundred tests each, and none of them leaves a span open or makes an error of ours."""
    ran = subprocess.run([sys.executable, str(RUN), name], capture_output=True, text=True)
    if ran.returncode and "'pip', " in ran.stderr:
        skip_without_index()
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"{name}: every test ends the same with them" in ran.stdout
    assert "'left open': 0, 'own errors': 0" in ran.stdout
