"""The page of ``turntrace view`` as a person meets it, in a real browser without a network."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from browser.scenes import hostile_turn, stopped_turn
from report.turns import example

TESTS = Path(__file__).parents[1]
TRACES = sorted(
    path
    for folder in (TESTS / "data/traces", TESTS / "agents/traces")
    for path in folder.iterdir()
    if ".truth." not in path.name and path.suffix in {".json", ".jsonl", ".gz"}
)
BROKEN = [
    TESTS / "data/ndjson" / name for name in ("weak_truncated_middle.ndjson", "weak_outside_window.ndjson")
]
TABS = ("Phases", "Flame", "Spans", "Tokens", "Waterfall")


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """A trace of the demo."""
    out = tmp_path_factory.mktemp("demo") / "demo.ndjson"
    subprocess.run(
        [sys.executable, "-m", "turntrace", "demo", "--trace", out],
        check=True,
        capture_output=True,
        timeout=60,
    )
    return out


def adds_up(seen):
    """The bar holds the wall, and what is printed below it adds up to what is printed as its sum."""
    [turn, *_] = seen.report()["turns"]
    shares = seen.shares()
    assert sum(shares.values()) == turn["wall_ns"]
    assert shares.get("unattributed", 0) == turn["unattributed_ns"]
    chips = seen.page.locator(".legend .chip:not(.sum) b").all_inner_texts()
    total = seen.page.locator(".legend .sum b").inner_text().split()[0]
    assert sum(round(float(chip) * 1000) for chip in chips) == round(float(total) * 1000)


def every_tab(seen):
    """Each view opens and holds something."""
    for name in TABS:
        seen.tab(name)
        assert seen.page.locator("#panel > *").first.is_visible()
        assert seen.page.locator("#panel").inner_text().strip()


def test_the_demo_is_told_on_the_first_screen(look, demo):
    """How long, how much without the human, what to fix first and whether anything is missing: no click."""
    seen = look(demo)
    first = seen.page.locator("#app").inner_text()
    for told in (
        "s wall",
        "s active",
        "without waiting for you",
        "nothing is missing",
        "Fix first",
        "retry_wait",
    ):
        assert told in first
    for box in (".figures", ".missing", ".stacked", ".findings", ".wf-row >> nth=3"):
        bounds = seen.page.locator(box).first.bounding_box()
        assert bounds["y"] + bounds["height"] < 800, box
    adds_up(seen)
    every_tab(seen)


@pytest.mark.parametrize("trace", [*TRACES, *BROKEN], ids=lambda path: path.name)
def test_a_trace_of_another_tool_is_shown(look, trace):
    """Whatever the file came from: no error, the bar adds up, every tab opens."""
    seen = look(trace)
    turns = seen.report()["turns"]
    outermost = [turn for turn in turns if turn["parent_run_id"] is None] or turns
    if len(outermost) > 1:
        assert sum(seen.shares().values()) == sum(turn["wall_ns"] or 0 for turn in outermost)
        seen.page.locator(".picker select").select_option("0")
    if turns[0]["wall_ns"]:
        adds_up(seen)
    every_tab(seen)


def test_a_turn_that_stopped_promises_nothing(look):
    """Without an end there is no bar, no path and no share; what ran is shown."""
    seen = look(stopped_turn())
    assert seen.page.locator(".stacked").count() == 0
    assert "the turn has no end" in seen.page.locator(".missing").inner_text()
    assert "Unknown" in seen.page.locator(".fix").inner_text()
    assert seen.page.locator(".wf-row").count() == 7
    every_tab(seen)


def test_hostile_names_stay_text(look):
    """Markup, scripts and reversed text in names are shown as they are and start nothing."""
    seen = look(hostile_turn())
    every_tab(seen)
    for row in range(3):
        seen.page.locator(".wf-row").nth(row + 2).click()
        assert seen.page.locator(".details dl").first.is_visible()
    assert seen.page.locator("main script, main pre, main style").count() == 0
    shown = seen.page.locator("main").inner_text()
    assert "<script>alert(1)</script>" in shown
    assert "\u202e" not in shown
    assert "\x1b" not in shown


def test_a_phase_is_filtered_and_shown_again(look):
    """A click on a part of the bar leaves its spans and what is above them; another click shows all."""
    seen = look(example())
    everything = seen.page.locator(".wf-row").count()
    seen.page.locator('.part[data-phase="retry_wait"]').click()
    names = seen.page.locator(".wf-row .wf-name").all_inner_texts()
    assert names == ["demo-agent", "round 2", "generation", "retry_wait"]
    seen.tab("Spans")
    assert seen.page.locator(".found").inner_text() == "1 of 26 spans"
    seen.page.get_by_role("button", name="only retry_wait").click()
    assert seen.page.locator(".found").inner_text() == "26 of 26 spans"
    seen.tab("Waterfall")
    seen.page.locator(".wf-row").nth(everything - 1).wait_for()
    assert seen.page.locator(".wf-row").count() == everything


def test_what_to_fix_first_is_one_click_away(look):
    """A finding selects its span in the waterfall and tells everything of it."""
    seen = look(example())
    numbered = seen.page.locator(".wf-row:has(.wf-fix)").evaluate_all(
        "all => all.map(one => [one.querySelector('.wf-fix').innerText, one.querySelector('.wf-name').innerText])"
    )
    assert sorted(numbered) == [["1", "retry_wait"], ["2", "compaction"], ["3", "search"]]
    seen.page.locator(".finding").first.click()
    assert "retry_wait" in seen.page.locator(".wf-row.selected").inner_text()
    details = seen.page.locator(".details").inner_text()
    [span] = [one for one in seen.report()["turns"][0]["spans"] if one["phase"] == "retry_wait"]
    for told in ("1.000 s", "turntrace.reason", "429", span["span_id"], span["parent_id"]):
        assert told in details
    seen.page.locator(".details .link").click()
    assert "generation" in seen.page.locator(".details h2").inner_text()
    seen.page.keyboard.press("Escape")
    assert not seen.page.locator(".details").is_visible()


def test_spans_are_searched_and_sorted(look):
    """A word leaves the spans that have it; a column sorts by exact times."""
    seen = look(example())
    seen.page.keyboard.press("/")
    seen.page.keyboard.type("search")
    assert seen.page.locator(".found").inner_text() == "1 of 26 spans"
    assert seen.page.locator(".st-row").inner_text().startswith("search")
    seen.page.get_by_role("searchbox").fill("")
    seen.page.get_by_role("button", name="own s").click()
    owns = [one["exclusive_ns"] for one in seen.report()["turns"][0]["spans"]]
    shown = seen.page.locator(".st-row").evaluate_all(
        "all => all.map(one => Number(one.children[5].innerText))"
    )
    assert shown[0] == max(owns) / 1e9
    assert shown == sorted(shown, reverse=True)
    assert seen.page.locator('[aria-sort="descending"]').inner_text() == "own s ▾"


def test_the_waterfall_is_zoomed_and_panned(look):
    """Buttons, keys, wheel and drag change what the axis covers, and never beyond the turn."""
    seen = look(example())
    whole = seen.shown_ns()
    seen.page.get_by_role("button", name="Zoom in").click()
    half = seen.shown_ns()
    assert whole[0] < half[0] < half[1] < whole[1]
    canvas = seen.page.locator(".wf-bars").bounding_box()
    x, y = canvas["x"] + canvas["width"] / 2, canvas["y"] + 60
    seen.page.mouse.move(x, y)
    seen.page.mouse.down()
    seen.page.mouse.move(x - 120, y, steps=4)
    seen.page.mouse.up()
    dragged = seen.shown_ns()
    assert dragged[0] > half[0]
    assert dragged[1] - dragged[0] == pytest.approx(half[1] - half[0], abs=2)
    seen.page.keyboard.down("Control")
    seen.page.mouse.wheel(0, -300)
    seen.page.keyboard.up("Control")
    wheeled = seen.shown_ns()
    assert wheeled[1] - wheeled[0] < dragged[1] - dragged[0]
    seen.page.keyboard.press("0")
    assert seen.shown_ns() == whole
    for key in ("-", "+", "-"):
        seen.page.keyboard.press(key)
    assert seen.shown_ns() == whole


def test_a_finger_scrolls_and_pans(look):
    """On a phone a finger on the bars scrolls the page; once zoomed in it pans them."""
    seen = look(example(labels={"task": "one"}), size=(400, 800), has_touch=True, is_mobile=True)
    seen.page.locator(".wf-row").nth(0).scroll_into_view_if_needed()
    seen.page.locator(".wf-bars").evaluate("one => one.scrollIntoView({ block: 'center' })")
    session = seen.page.context.new_cdp_session(seen.page)
    x = seen.page.locator(".wf-bars").bounding_box()["x"] + 100

    def swipe(across, down):
        for step in range(12):
            points = [{"x": x + across * step / 10, "y": 400 + down * step / 10}] if step < 11 else []
            kind = "touchStart" if step == 0 else "touchMove" if points else "touchEnd"
            session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
            seen.page.wait_for_timeout(16)

    scrolled = "window.scrollY + document.querySelector('.wf-scroll').scrollTop"
    before = seen.page.evaluate(scrolled)
    swipe(0, 150)
    assert seen.page.evaluate(scrolled) < before
    whole = seen.shown_ns()
    seen.page.get_by_role("button", name="Zoom in").tap()
    zoomed = seen.shown_ns()
    seen.page.locator(".wf-bars").evaluate("one => one.scrollIntoView({ block: 'center' })")
    swipe(-60, 0)
    panned = seen.shown_ns()
    assert panned[0] > zoomed[0]
    assert whole[1] > zoomed[1]
    seen.page.locator(".wf-turn").tap()
    assert "label task" in seen.page.locator(".details").inner_text()


def test_what_is_shown_stays_when_the_details_take_their_room(look):
    """A narrower waterfall covers the same time as before."""
    seen = look(example())
    seen.page.keyboard.press("+")
    seen.page.keyboard.press("Shift+ArrowRight")
    before = seen.shown_ns()
    seen.page.locator(".wf-row").nth(2).click()
    assert seen.page.locator(".details").is_visible()
    assert seen.shown_ns() == pytest.approx(before, rel=0.1)


def test_the_keyboard_alone_walks_the_tree(look):
    """Rows are selected, closed, opened, followed along the critical path and zoomed to without a mouse."""
    seen = look(example())
    rows = seen.page.locator(".wf-row")
    everything = rows.count()
    seen.page.locator(".wf-rows").focus()
    for key in ("ArrowDown", "ArrowDown"):
        seen.page.keyboard.press(key)
    assert seen.page.locator(".wf-row.selected").get_attribute("aria-expanded") == "true"
    active = seen.page.locator(".wf-rows").get_attribute("aria-activedescendant")
    assert "round 1" in seen.page.locator(f"#{active}").inner_text()
    seen.page.keyboard.press("ArrowLeft")
    assert rows.count() == everything - 6
    seen.page.keyboard.press("ArrowRight")
    assert rows.count() == everything
    seen.page.keyboard.press("c")
    assert seen.page.locator(".wf-row.selected .wf-critical").count() == 1
    seen.page.keyboard.press("End")
    assert "provider_connect" in seen.page.locator(".wf-row.selected").inner_text()
    whole = seen.shown_ns()
    seen.page.keyboard.press("f")
    assert seen.shown_ns() != whole
    seen.page.keyboard.press("3")
    assert seen.page.get_by_role("tab", selected=True).inner_text() == "Flame"
    seen.page.get_by_role("tab", selected=True).focus()
    seen.page.keyboard.press("ArrowRight")
    assert seen.page.get_by_role("tab", selected=True).inner_text() == "Spans"


def test_a_click_on_a_bar_tells_of_its_span(look):
    """The canvas answers for what is drawn on it, and a tip names what the pointer is over."""
    seen = look(example())
    label = seen.page.locator(".wf-span", has_text="search").bounding_box()
    canvas = seen.page.locator(".wf-bars").bounding_box()
    seen.page.mouse.move(canvas["x"] + canvas["width"] * 0.2, label["y"] + 10)
    assert "search · tool_execution · took 1.340 s" in seen.page.locator(".wf-tip").inner_text()
    seen.page.mouse.click(canvas["x"] + canvas["width"] * 0.2, label["y"] + 10)
    assert seen.page.locator(".details h2").inner_text() == "search"


def test_the_critical_path_is_marked_where_the_report_says(look):
    """Every span of the path has its mark, and no other."""
    seen = look(example())
    turn = seen.report()["turns"][0]
    on_path = {part["span_id"] for part in turn["critical_path"] if part["end_ns"] > part["start_ns"]}
    marked = seen.page.locator(".wf-row:has(.wf-critical)").count()
    assert marked == len([one for one in turn["spans"] if one["span_id"] in on_path])
    unmarked = seen.page.locator(".wf-span:not(:has(.wf-critical)) .wf-name").all_inner_texts()
    assert "fetch" in unmarked


PIXEL = """([ns, row, below]) => {
    const bars = document.querySelector(".wf-bars");
    const [start, end] = document.querySelector(".wf").dataset.shown.split(" ").map(Number);
    const x = Math.round((ns - start) / (end - start) * (bars.clientWidth - 56));
    const top = document.querySelectorAll(".wf-row")[row].getBoundingClientRect().top;
    const y = Math.round(top - bars.getBoundingClientRect().top + below);
    const copy = new OffscreenCanvas(bars.width, bars.height).getContext("2d", { willReadFrequently: true });
    copy.drawImage(bars, 0, 0);
    return [...copy.getImageData(x * devicePixelRatio, y * devicePixelRatio, 1, 1).data];
}"""
BAR, FOOT = 10, 17


def test_bars_are_solid_where_they_are_their_own(look):
    """Own time has the colour of the phase, what children cover is light, outside there is nothing."""
    seen = look(example())
    seen.shown_ns()
    names = seen.page.locator(".wf-row .wf-name").all_inner_texts()
    row = names.index("retry_wait") - 2

    def pixel(ms, below=BAR):
        return seen.page.evaluate(PIXEL, [ms * 1_000_000, row, below])

    assert names[row] == "generation"
    assert pixel(4_000) == [0, 114, 178, 255]
    covered = pixel(2_900)
    assert covered[:3] == pytest.approx([0, 114, 178], abs=4)
    assert 60 < covered[3] < 120
    assert pixel(5_100)[3] == 0
    hatched = {
        tuple(seen.page.evaluate(PIXEL, [ms * 1_000_000, names.index("permission_wait"), BAR]))
        for ms in range(4_600, 4_800, 4)
    }
    assert (204, 121, 167, 255) in hatched
    assert len(hatched) > 1


def test_the_critical_path_is_drawn_along_the_bars_it_takes(look):
    """A black line lies at the foot of search, which the turn waited for, and none at that of fetch."""
    seen = look(example())
    seen.shown_ns()
    names = seen.page.locator(".wf-row .wf-name").all_inner_texts()

    def foot(name):
        return seen.page.evaluate(PIXEL, [1_500_000_000, names.index(name), FOOT])

    assert foot("search") == [21, 24, 29, 255]
    assert foot("fetch")[3] == 0


def test_the_flame_zooms_and_adds_up(look):
    """The frames of the first level fill the turn; a click makes one as wide as the page."""
    seen = look(example())
    seen.tab("Flame")
    first = seen.page.locator('.frame[style*="top: 24px"]')
    widths = first.evaluate_all("all => all.map(one => Number.parseFloat(one.style.width))")
    assert sum(widths) == pytest.approx(100, abs=0.3)
    seen.page.locator(".frame", has_text="search").click()
    assert ": 0.905 s · 10.7 %" in seen.page.locator(".flame-note").inner_text()


def test_dark_and_light(look):
    """The page follows the system, and the key t changes it; bars keep their colours."""
    seen = look(example(), color_scheme="dark")
    back = "getComputedStyle(document.body).backgroundColor"
    assert seen.page.evaluate(back) == "rgb(20, 23, 28)"
    bar = seen.page.locator('.part[data-phase="generation"]')
    before = bar.evaluate("one => getComputedStyle(one).backgroundColor")
    seen.page.keyboard.press("t")
    assert seen.page.evaluate(back) == "rgb(255, 255, 255)"
    assert bar.evaluate("one => getComputedStyle(one).backgroundColor") == before == "rgb(0, 114, 178)"


def test_it_is_printed_whole(look):
    """On paper every row of the waterfall is there, in the colours of paper, and afterwards all is as before."""
    seen = look(example(), size=(1280, 420), color_scheme="dark")
    rows = seen.page.locator(".wf-row").count()
    seen.page.evaluate(
        "window.addEventListener('beforeprint', () => { window.printed = document.querySelectorAll('.wf-row').length; })"
    )
    assert seen.page.pdf(print_background=True).startswith(b"%PDF")
    assert seen.page.evaluate("window.printed") == 31
    assert seen.page.locator(".wf-row").count() == rows


def test_without_scripts_there_is_a_table(look):
    """A reader that runs no scripts sees the report's table."""
    seen = look(example(), ready=False, java_script_enabled=False)
    shown = seen.page.locator("body").inner_text()
    assert "8.420 s wall" in shown
    assert "retry_wait" in shown


def test_the_page_could_not_reach_a_network_if_it_tried(look):
    """The policy refuses every connection, picture and script from elsewhere."""
    seen = look(example(), ready=False)
    blocked = seen.page.evaluate(
        """async () => {
            const found = [];
            document.addEventListener("securitypolicyviolation", event => found.push(event.effectiveDirective));
            await fetch("http://127.0.0.1:9/").catch(() => undefined);
            document.body.append(Object.assign(new Image(), { src: "http://127.0.0.1:9/x.png" }));
            const script = document.createElement("script");
            script.textContent = "window.broken = 1";
            document.body.append(script);
            await new Promise(done => setTimeout(done, 200));
            return [found.sort(), window.broken ?? null];
        }"""
    )
    assert blocked == [["connect-src", "img-src", "script-src-elem"], None]
    seen.said.clear()  # the browser says each refusal
    del seen.asked[1:]  # the picture that was refused


def test_many_turns_are_chosen_from(look, tmp_path):
    """The page of many turns shows all of them together, then each."""
    seen = look(
        *(
            replace(example(), run_id=f"run-{at}", session_id=f"s{at}", trace_id=f"{at:032x}")
            for at in (1, 2, 3)
        )
    )
    assert "3 turns" in seen.page.locator("h1").inner_text()
    assert sum(seen.shares().values()) == 3 * 8_420_000_000
    seen.tab("Flame")
    assert "turns: 25.260 s" in seen.page.locator(".flame-note").inner_text()
    seen.tab("Turns")
    seen.page.get_by_role("button", name="2 demo-agent").click()
    assert seen.page.locator("h1").inner_text().startswith("demo-agent · gpt-demo")
    assert seen.page.get_by_role("tab", selected=True).inner_text() == "Waterfall"
    seen.page.locator(".picker select").select_option("all")
    assert "3 turns" in seen.page.locator("h1").inner_text()


def test_two_files_stand_beside_each_other(look):
    """The page opens with the comparison, in the colours of the phases, and says that it is no verdict."""
    slow = replace(example(), run_id="run-2", completed_ns=example().completed_ns + 500_000_000)
    seen = look(example(), slow, beside=([example()], [slow]))
    assert seen.page.get_by_role("tab", selected=True).inner_text() == "Compare"
    assert seen.page.locator("h1").inner_text() == "before.ndjson beside after.ndjson"
    assert "no verdict" in seen.page.locator(".figures").inner_text()
    whole = seen.page.locator("tr", has_text="whole turn").inner_text().split()
    assert whole[:5] == ["whole", "turn", "8.420", "8.920", "+0.500"]
    bars = seen.page.locator("tr", has_text="generation").locator(".pair")
    assert bars.evaluate_all("all => all.map(one => one.style.width)") == ["100%", "100%"]
    seen.tab("Turns")
    seen.page.get_by_role("button", name="1 demo-agent").click()
    assert seen.page.get_by_role("tab", name="Compare").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("tab", TABS)
def test_nothing_serious_bars_a_reader(look, tab, scheme):
    """axe-core finds nothing serious or critical, in any tab, dark or light."""
    from axe_playwright_python.sync_playwright import Axe

    seen = look(example(), color_scheme=scheme)
    seen.tab(tab)
    if tab == "Waterfall":
        seen.page.locator(".wf-row").nth(3).click()
    # axe comes in from outside, which the policy would refuse a page
    result = Axe().run(seen.page)
    grave = [
        (one["id"], one["nodes"][0]["html"][:200], one["nodes"][0]["failureSummary"])
        for one in result.response["violations"]
        if one["impact"] in {"serious", "critical"}
    ]
    assert grave == [], json.dumps(grave, indent=1)
