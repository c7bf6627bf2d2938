"""Three real frameworks are run anew; what they send passes the same checks as the committed traces."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from package_index import skip_without_index

TESTS = Path(__file__).parent


@pytest.mark.index
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["anthropic", "openai_genai", "pydantic_ai"])
def test_a_framework_that_runs_now_is_read_right(name, tmp_path):
    """Installed as pinned, played against the model server, held against what that saw."""
    made = subprocess.run(
        [sys.executable, str(TESTS / "frameworks" / "run.py"), name, "--into", str(tmp_path)],
        capture_output=True,
        text=True,
    )
    if made.returncode and "'pip', 'install'" in made.stderr:
        skip_without_index()
    assert made.returncode == 0, made.stderr
    checks = str(TESTS / "test_framework_traces.py")
    checked = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-k", "not test_the_traces_are_there", checks],
        cwd=TESTS.parent,
        env={**os.environ, "FRAMEWORKS_TRACES": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stdout
    assert " passed" in checked.stdout
    assert "skipped" not in checked.stdout
