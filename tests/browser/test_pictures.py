"""What the first screen looks like, held against pictures that were looked at.

``TURNTRACE_PICTURES=write`` takes them anew. The comparison is of blocks of eight pixels, so that the edges of letters
may differ, and says how much of the picture looks otherwise.
"""

import base64
from pathlib import Path

import pytest

from report.turns import example

PICTURES = Path(__file__).parent / "pictures"
SCREENS = {
    "phone": ((400, 800), {}),
    "laptop": ((1280, 800), {}),
    "laptop-dark": ((1280, 800), {"color_scheme": "dark"}),
    "wall-4k": ((3840, 2160), {}),
}
MOST_OTHERWISE = 0.03

DIFFERENCE = """async ([one, other]) => {
    const blocks = async (png) => {
        const image = new Image();
        image.src = "data:image/png;base64," + png;
        await image.decode();
        const canvas = new OffscreenCanvas(Math.ceil(image.width / 8), Math.ceil(image.height / 8));
        const pen = canvas.getContext("2d");
        pen.imageSmoothingQuality = "high";
        pen.drawImage(image, 0, 0, canvas.width, canvas.height);
        return [`${image.width} x ${image.height}`, pen.getImageData(0, 0, canvas.width, canvas.height).data];
    };
    const [size, a] = await blocks(one);
    const [otherSize, b] = await blocks(other);
    if (size !== otherSize) return `${size} instead of ${otherSize}`;
    let otherwise = 0;
    for (let at = 0; at < a.length; at += 4) {
        const far = Math.max(...[0, 1, 2].map(part => Math.abs(a[at + part] - b[at + part])));
        if (far > 32) otherwise++;
    }
    return otherwise / (a.length / 4);
}"""


def difference(browser, one, other):
    """How much of two pictures looks otherwise, from 0 to 1."""
    page = browser.new_page()
    try:
        return page.evaluate(DIFFERENCE, [base64.b64encode(png).decode() for png in (one, other)])
    finally:
        page.close()


@pytest.mark.parametrize("name", SCREENS)
def test_the_first_screen_looks_as_it_did(look, browser, name, pictures_are_written):
    """At the size of a phone, of a laptop, dark, and of a wall of 4k."""
    size, options = SCREENS[name]
    seen = look(example(), size=size, **options)
    seen.shown_ns()
    taken = seen.page.screenshot()
    reference = PICTURES / f"{name}.png"
    if pictures_are_written:
        reference.parent.mkdir(exist_ok=True)
        reference.write_bytes(taken)
    assert difference(browser, taken, reference.read_bytes()) < MOST_OTHERWISE


def test_the_comparison_sees_what_is_missing(look, browser):
    """Without its bars, or in the other scheme, the page is not the same picture."""
    reference = (PICTURES / "laptop.png").read_bytes()
    seen = look(example())
    seen.shown_ns()
    seen.page.locator(".stacked").evaluate("one => one.remove()")
    assert difference(browser, seen.page.screenshot(), reference) > MOST_OTHERWISE
    dark = (PICTURES / "laptop-dark.png").read_bytes()
    assert difference(browser, dark, reference) > 0.5
