"""Fixtures ``browser`` and ``look``: pages of traces in a real chromium that is offline.

Without chromium or playwright the tests are skipped, and fail where TURNTRACE_REQUIRE says browser.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from browser.install import found
from browser.scenes import write
from turntrace.cli.selection import load
from turntrace.core.beside import beside as turns_beside
from turntrace.report.beside import beside_view
from turntrace.report.case import examine
from turntrace.report.page.document import page as page_of

REQUIRED = "browser" in os.environ.get("TURNTRACE_REQUIRE", "").split(",")
WRITES_PICTURES = os.environ.get("TURNTRACE_PICTURES") == "write"
PATIENCE_MS = 30_000


def pytest_collection_modifyitems(items):
    """Every test here needs the browser."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


def lacking(said):
    """Skip; where the browser is required, fail."""
    (pytest.fail if REQUIRED else pytest.skip)(f"{said}; `make test-browser` tells what it takes")


@pytest.fixture(scope="session")
def browser():
    """A chromium without a window."""
    chromium_path = found()
    if chromium_path is None:
        lacking("there is no chromium: apt-get install chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        lacking("playwright is not installed")
    with sync_playwright() as playwright:
        # root, as in containers, has no sandbox; a fixed rendering of fonts, wherever it runs
        options = ["--no-sandbox", "--font-render-hinting=none"]
        chromium = playwright.chromium.launch(executable_path=chromium_path, args=options)
        yield chromium
        chromium.close()


@pytest.fixture
def pictures_are_written():
    """Whether the reference pictures are taken anew."""
    return WRITES_PICTURES


@dataclass
class Look:
    """A page that is looked at: what it said, what it asked for."""

    page: object
    address: str
    said: list = field(default_factory=list)
    asked: list = field(default_factory=list)

    def shares(self):
        """The parts of the bar, by phase, in nanoseconds."""
        parts = self.page.locator(".where .stacked .part")
        pairs = parts.evaluate_all("all => all.map(one => [one.dataset.phase, Number(one.dataset.ns)])")
        return dict(pairs)

    def report(self):
        """The report that the page holds."""
        return self.page.evaluate(
            """async () => {
                const text = document.getElementById("report");
                if (text.dataset.encoding !== "gzip") return JSON.parse(text.textContent);
                const bytes = Uint8Array.from(atob(text.textContent), one => one.charCodeAt(0));
                const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
                return await new Response(plain).json();
            }"""
        )

    def tab(self, name):
        """Open a tab."""
        self.page.get_by_role("tab", name=name, exact=True).click()

    def shown_ns(self):
        """What the time axis of the waterfall covers, once it is drawn."""
        self.page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        start, end = self.page.locator(".wf").get_attribute("data-shown").split()
        return int(start), int(end)


def side_by_side(a, b):
    """The blocks that lay two lots of turns beside each other."""
    sides = ([(case.turn, case.attribution) for case in map(examine, side)] for side in (a, b))
    return beside_view(turns_beside(*sides), ["before.ndjson", "after.ndjson"])


@pytest.fixture
def look(browser, tmp_path):
    """Open the page of a trace file or of turns; afterwards: no error was said, nothing was asked for."""
    opened = []

    def show(*shown, size=(1280, 800), ready=True, beside=None, script=None, **options):
        target = tmp_path / f"page{len(opened)}.html"
        traces = [one if isinstance(one, Path) else write(tmp_path / "run.ndjson", *shown) for one in shown]
        selection = load([str(path) for path in dict.fromkeys(traces)])
        names = [Path(path).name for path in selection.paths]
        pair = None if beside is None else side_by_side(*beside)
        target.write_bytes(b"".join(page_of(selection.cases, names, pair)))
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            locale="en-US",
            timezone_id="UTC",
            offline=True,
            **options,
        )
        context.set_default_timeout(PATIENCE_MS)
        seen = Look(page=context.new_page(), address=target.as_uri())
        opened.append((context, seen))
        if script:
            seen.page.add_init_script(script)
        seen.page.on("console", lambda line: seen.said.append(f"{line.type}: {line.text}"))
        seen.page.on("pageerror", lambda error: seen.said.append(str(error)))
        seen.page.on("request", lambda request: seen.asked.append(request.url))
        seen.page.goto(seen.address)
        if ready:
            seen.page.wait_for_selector("#app[data-ready]")
        return seen

    yield show
    for context, seen in opened:
        context.close()
        assert seen.said == []
        assert seen.asked == [seen.address]
