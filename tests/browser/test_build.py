"""The page that is committed is what its sources build."""

import shutil
import subprocess
from importlib import resources
from pathlib import Path

from browser.conftest import lacking

WEB = Path(__file__).parents[2] / "web"


def test_the_sources_build_the_page_that_is_committed(tmp_path):
    """Built anew by npm's tools it is the same to the byte, and its types are sound."""
    if not shutil.which("npm") or not (WEB / "node_modules").is_dir():
        lacking("npm or web/node_modules is missing")
    built = tmp_path / "page.html"
    subprocess.run(["npm", "run", "--silent", "check"], cwd=WEB, check=True, timeout=120)
    subprocess.run(["node", "build.mjs", built], cwd=WEB, check=True, capture_output=True, timeout=120)
    committed = resources.files("turntrace.report.page").joinpath("page.html").read_bytes()
    assert built.read_bytes() == committed
