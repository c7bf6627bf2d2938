"""The page that is committed is what its sources build, and lays out what the report says."""

import json
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import pytest

from browser.conftest import lacking
from turntrace.cli.selection import load
from turntrace.report.json_report import json_report

TESTS = Path(__file__).parents[1]
WEB = TESTS.parent / "web"
TRACES = sorted(
    path
    for folder in ("data/traces", "agents/traces", "frameworks/traces")
    for path in (TESTS / folder).iterdir()
    if ".truth." not in path.name and path.is_file()
)


def test_the_sources_build_the_page_that_is_committed(tmp_path):
    """Built anew by npm's tools it is the same to the byte, and its types are sound."""
    if not shutil.which("npm") or not (WEB / "node_modules").is_dir():
        lacking("npm or web/node_modules is missing")
    built = tmp_path / "page.html"
    subprocess.run(["npm", "run", "--silent", "check"], cwd=WEB, check=True, timeout=120)
    subprocess.run(["node", "build.mjs", built], cwd=WEB, check=True, capture_output=True, timeout=120)
    committed = resources.files("turntrace.report.page").joinpath("page.html").read_bytes()
    assert built.read_bytes() == committed


@pytest.mark.parametrize("trace", TRACES, ids=lambda path: path.name)
def test_the_solid_part_of_a_bar_is_the_exclusive_time(trace):
    """For every span of every trace, to the nanosecond; and every span has one row, whatever its round."""
    if not shutil.which("node") or not (WEB / "node_modules").is_dir():
        lacking("node or web/node_modules is missing")
    report = b"".join(json_report(load([str(trace)]).cases))
    done = subprocess.run(
        ["node", "../tests/browser/own_parts.mjs"],
        cwd=WEB,
        input=report,
        check=True,
        capture_output=True,
        timeout=60,
    )
    told = json.loads(done.stdout)
    assert told["wrong"] == []
    assert told["spans"] > 0
