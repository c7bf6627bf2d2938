"""A turn of 50,000 spans: how soon it is there, and how fast it moves. Figures are printed with ``-s``."""

import statistics

import pytest

from browser.scenes import long_turn, one_round
from report.turns import span, turn

PAINTED_MS = 2_000
FRAME_MS = 1_000 / 30

# Moves something at every frame and tells how long each frame took, the first ones left out.
FRAMES = """async (kind) => {
    const bars = document.querySelector(".wf-bars");
    const scroller = document.querySelector(".wf-scroll");
    const moves = {
        pan: at => bars.dispatchEvent(new WheelEvent("wheel", { deltaX: at < 60 ? 25 : -25, bubbles: true, cancelable: true })),
        zoom: at => bars.dispatchEvent(new WheelEvent("wheel", {
            deltaY: at < 60 ? -40 : 40, ctrlKey: true, clientX: 700, clientY: 600, bubbles: true, cancelable: true })),
        scroll: at => { scroller.scrollTop += at < 60 ? 70 : -70; },
    };
    const shown = () => document.querySelector(".wf").dataset.shown + scroller.scrollTop;
    const first = shown();
    const took = [];
    let before = await new Promise(requestAnimationFrame);
    for (let at = 0; at < 120; at++) {
        moves[kind](at);
        const now = await new Promise(requestAnimationFrame);
        took.push(now - before);
        before = now;
        if (at === 50 && shown() === first) throw new Error(`${kind} moved nothing`);
    }
    return took.slice(5);
}"""


def frames(seen, kind):
    """The median and the 95th percentile of the time between two frames while something moves, in ms."""
    took = sorted(seen.page.evaluate(FRAMES, kind))
    found = statistics.median(took), took[len(took) * 95 // 100]
    print(f"{kind}: median {found[0]:.1f} ms, P95 {found[1]:.1f} ms")
    return found


@pytest.fixture(scope="session")
def long_page(tmp_path_factory):
    """The trace of a long turn, written once."""
    from browser.scenes import write

    return write(tmp_path_factory.mktemp("long") / "long.ndjson", long_turn())


def test_a_long_turn_is_there_at_once(look, long_page):
    """First paint within two seconds, all 50,000 spans read soon after, a page that fits into a mail."""
    seen = look(long_page)
    painted = seen.page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    ready = seen.page.evaluate("performance.now()")
    print(f"first paint {painted:.0f} ms, ready before {ready:.0f} ms")
    assert painted < PAINTED_MS
    turn = seen.report()["turns"][0]
    assert len(turn["spans"]) == 50_000
    assert sum(seen.shares().values()) == turn["wall_ns"]


NEVER_READ = "window.DecompressionStream = function () { return new TransformStream({ transform: () => new Promise(() => {}) }); }"


def test_the_first_screen_needs_no_span(look):
    """Before the spans are read the figures, the whole bar and what to fix first are there."""
    spans = [
        span(f"s{at}", "retry_wait" if at % 2 else "generation", at * 2, at * 2 + 1) for at in range(4_000)
    ]
    seen = look(turn(spans, 8_000), ready=False, script=NEVER_READ)
    seen.page.get_by_text("Reading the spans").wait_for()
    assert sum(seen.shares().values()) == 8_000_000_000
    assert "8.000 s wall" in seen.page.locator(".figures").inner_text()
    assert "retry_wait" in seen.page.locator(".finding").inner_text()


def test_a_long_turn_moves_smoothly(look, long_page):
    """Panned, zoomed and scrolled at 30 frames a second or better, with rounds closed and all rows open."""
    seen = look(long_page)
    assert seen.page.locator(".wf-rows").get_attribute("aria-rowcount") == "501"
    assert frames(seen, "zoom")[0] < FRAME_MS
    seen.page.keyboard.press("+")
    seen.page.keyboard.press("+")
    assert frames(seen, "pan")[0] < FRAME_MS
    assert frames(seen, "scroll")[0] < FRAME_MS
    seen.page.get_by_role("button", name="Expand").click()
    assert seen.page.locator(".wf-rows").get_attribute("aria-rowcount") == "50501"
    assert seen.page.locator(".wf-row").count() < 100
    assert frames(seen, "pan")[0] < FRAME_MS
    assert frames(seen, "scroll")[0] < FRAME_MS


def test_a_single_round_of_50_000_spans(look):
    """One closed row that stands for all of them is still drawn at every frame."""
    seen = look(one_round())
    seen.page.keyboard.press("+")
    assert frames(seen, "pan")[0] < FRAME_MS
    seen.tab("Spans")
    seen.page.get_by_role("searchbox").fill("s49999")
    assert seen.page.locator(".found").inner_text() == "1 of 50,000 spans"
