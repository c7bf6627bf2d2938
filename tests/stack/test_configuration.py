"""Each configuration is taken by the program that it is for, as the containers start it: without variables."""

import subprocess

import pytest

from stack.install import binary
from stack.servers import CONFIG

pytestmark = [pytest.mark.servers, pytest.mark.usefixtures("programs")]

COLLECTOR = [f"--config={CONFIG / name}" for name in ("collector.yaml", "turn-metrics.yaml")]


def said(program, *arguments):
    """The status and the words of a program."""
    done = subprocess.run(
        [str(binary(program)), *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        ("collector", ("validate", *COLLECTOR)),
        ("jaeger", ("validate", f"--config={CONFIG / 'jaeger.yaml'}")),
        ("promtool", ("check", "config", CONFIG / "prometheus.yaml")),
    ],
)
def test_a_configuration_is_valid(program, arguments):
    """By the program's own word."""
    status, words = said(program, *arguments)
    assert status == 0, words


def test_a_component_that_is_not_in_the_binary_is_refused(tmp_path):
    """So that the test above would see one."""
    text = (CONFIG / "collector.yaml").read_text()
    broken = tmp_path / "collector.yaml"
    broken.write_text(text.replace("deltatocumulative", "deltatonothing"))
    status, words = said("collector", "validate", f"--config={broken}", COLLECTOR[1])
    assert status != 0
    assert "deltatonothing" in words
