"""The page in a real browser, without a network: what is pointed at, tapped and switched.

Debian's and Ubuntu's package is `chromium`; .ci/run installs it. Without a browser these tests are
skipped.
"""

import contextlib
import pathlib
import shutil

import pytest

from zoo.lab.comparison import page_report

pytestmark = pytest.mark.slow
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SIZES = {"wide": (1100, 900, "light"), "phone": (360, 740, "dark")}


# [text, left, right, lines] of each word of each cell that is shown.
CELLS = r"""[...document.querySelectorAll('.scroll :is(th, td)')].flatMap(
cell => !cell.offsetParent ? [] : [...cell.childNodes].filter(node => node.nodeType === 3).flatMap(
node => [...node.data.matchAll(/[^\s]*\d[^\s]*/g)].map(word => {
  const range = document.createRange();
  range.setStart(node, word.index);
  range.setEnd(node, word.index + word[0].length);
  const boxes = [...range.getClientRects()];
  return [word[0], Math.min(...boxes.map(b => b.left)), Math.max(...boxes.map(b => b.right)),
          boxes.length];
})))"""


@pytest.fixture(scope="module")
def browser():
    """A headless browser."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    installed_paths = [path for path in map(shutil.which, BROWSERS) if path]
    with playwright.sync_playwright() as started:
        bundled_path = started.chromium.executable_path
        paths = [*installed_paths, *([bundled_path] if pathlib.Path(bundled_path).exists() else [])]
        if not paths:
            pytest.skip(f"no browser is installed: none of {', '.join(BROWSERS)}")
        chromium = started.chromium.launch(executable_path=paths[0], args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def file(two_runs, second_seed, translated, tmp_path_factory):
    """The page of a softmax and a translator of two seeds each, and of a log-linear model."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    content = page_report.build_page(
        page_report.load_comparison([*two_runs, second_seed, *translated]), sentences=6
    )
    path.write_text(content, encoding="utf-8")
    return path


@pytest.fixture(params=SIZES)
def page(request, browser, file):
    """The page at a size; it has neither errors nor requests when the test is over."""
    width, height, scheme = SIZES[request.param]
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=scheme,
        has_touch=request.param == "phone",
        offline=True,
    )
    opened, problems, requests = context.new_page(), [], []
    opened.set_default_timeout(20_000)
    opened.on("console", lambda message: problems.append(message.text))
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("request", lambda sent_request: requests.append(sent_request.url))
    with contextlib.closing(context):
        opened.goto(file.as_uri())
        yield opened
        assert problems == []
        assert requests == [file.as_uri()]


def test_it_fits_and_follows_the_colour_scheme(page):
    width = page.viewport_size["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("section").count() == 8
    for chart in page.locator("svg.chart").all():
        assert chart.bounding_box()["width"] > 250
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(22, 22, 22)" if width == 360 else "rgb(255, 255, 255)")


def test_no_number_of_a_table_is_cut_or_broken(page):
    """On a phone the edge of a table that scrolls would cut "1,046" to "1,04"."""
    if page.viewport_size["width"] > 400:
        pytest.skip("wide tables fit, or scroll beside a shadow")
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    cells = page.evaluate(CELLS)
    assert len(cells) > 20
    for text, start, end, lines in cells:
        assert start >= 0 and end <= 360, text
        assert lines == 1 or not text.strip(), text
    tables = page.locator(".scroll:has(table)")
    assert tables.evaluate_all("all => all.every(one => one.scrollWidth <= one.clientWidth)")


def test_text_in_charts_is_readable(page):
    heights = page.evaluate(
        "[...document.querySelectorAll('svg.chart text')].map(text => parseFloat("
        "getComputedStyle(text).fontSize) * text.ownerSVGElement.getBoundingClientRect().width "
        "/ text.ownerSVGElement.viewBox.baseVal.width)"
    )
    assert heights and min(heights) >= 11


def test_a_word_shows_its_details_where_it_is_pointed_at(page):
    panel = page.locator('[data-panel="0"]')
    word = panel.locator(".text .w").nth(2)
    assert panel.locator(".details table").count() == 0
    word.hover()
    assert panel.locator(".details h4").first.inner_text() == word.inner_text()
    assert panel.locator(".details tr").count() == 5  # the best words
    assert "shown" in word.get_attribute("class")


def test_a_tap_and_the_arrow_keys_go_from_word_to_word(page):
    panel = page.locator('[data-panel="0"]')
    words = panel.locator(".text .w")
    (words.nth(1).tap if page.viewport_size["width"] == 360 else words.nth(1).click)()
    heading = panel.locator(".details h4").first
    assert heading.inner_text() == words.nth(1).inner_text()
    page.keyboard.press("ArrowRight")
    assert heading.inner_text() == words.nth(2).inner_text()
    page.keyboard.press("End")
    assert heading.inner_text() == words.last.inner_text()
    page.keyboard.press("Home")
    assert page.evaluate("document.activeElement.dataset.word") == "0"
    assert panel.locator('.text .w[tabindex="0"]').count() == 1


def test_the_keyboard_alone_reaches_a_word(page):
    page.locator('input[name="panel"]').first.focus()
    for _ in range(10):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.classList.contains('w')"):
            break
    assert page.evaluate("document.activeElement.dataset.word") == "0"


def test_switches_show_one_panel(page):
    buttons = page.locator('input[name="panel"]')
    assert buttons.count() == 4  # three recipes, and the first two against each other
    buttons.nth(1).check()
    visible = page.locator(".panel:visible")
    assert visible.count() == 1 and visible.get_attribute("data-panel") == "1"
    visible.locator(".text .w").first.hover()
    assert "background, log b(x)" in visible.locator(".details").inner_text()
    buttons.nth(3).check()
    visible.locator(".text .w").nth(3).hover()
    assert visible.locator(".details h4.of-run").count() == 2


def test_boxes_hide_runs_in_their_chart(page):
    figure = page.locator("#curves figure")
    curve = figure.locator('[data-run="1"]').first
    assert curve.is_visible()
    figure.locator('[data-shows="1"]').uncheck()
    assert not curve.is_visible() and figure.locator('[data-run="0"]').first.is_visible()
    figure.locator('[data-shows="1"]').check()
    assert curve.is_visible()
