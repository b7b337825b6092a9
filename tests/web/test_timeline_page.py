"""The timeline in a real browser: zoom keeps what is chosen, back leads through every state, keys do what the mouse
does, and a capture of a running job appears.
"""

from __future__ import annotations

import re
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest
from tests.web.browser import CHROMIUM, FITS, FLAGS, NAMELESS, Tab, in_every_layout, layout, tab_of
from tests.web.conftest import PATIENCE_S, TOKEN, command, environment
from tests.web.timeline_sessions import SPIKE_AT, STEP, stored

from stepscope.tables.layout import key_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="no chromium (make system-deps)")]
DRAWN = "() => document.querySelector('.tl-canvas')?.dataset.state === 'drawn'"
WIDE = "() => ((q) => q.get('to') - q.get('from'))(new URLSearchParams(location.search))"
S = 1_000_000_000
STARTED = """() => {
  const found = performance.getEntriesByType('resource');
  const at = (end) => found.find((one) => one.name.endsWith(end)).startTime;
  return { timeline: at('/timeline'), script: at('.js') };
}"""
ASKED = "end => performance.getEntriesByType('resource').filter((one) => one.name.endsWith(end)).length"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The system's chromium, without a window."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server over a session with an op trace."""
    folder = tmp_path_factory.mktemp("timeline")
    path = stored(folder, traced=True)
    server = subprocess.Popen(
        command("view", str(path), "--port", "0"),
        env=environment(STEPSCOPE_TOKEN=TOKEN, XDG_CACHE_HOME=str(folder / "cache")),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    try:
        yield server.stdout.readline().strip().partition("/sessions/")[0]
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=PATIENCE_S)


@pytest.fixture(scope="module")
def page_of(served: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the session's timeline."""
    path = next(tmp_path_factory.getbasetemp().glob("timeline*/job.stepscope"))
    return f"/sessions/{key_of(path.resolve())}/timeline"


@pytest.fixture
def tab(chromium: Browser, served: str, request: pytest.FixtureRequest) -> Iterator[Tab]:
    """In one of the layouts; nothing is complained of."""
    width, scheme = layout(request)
    context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    found = tab_of(context, served)
    yield found
    assert found.problems == []
    context.close()


def drawn(tab: Tab) -> None:
    """Wait until all that is in sight is drawn."""
    tab.page.wait_for_function(DRAWN)


def shown(tab: Tab) -> tuple[float, float]:
    """The part of the time in the address, in seconds."""
    found = re.search(r"from=([-\d.]+).*?to=([-\d.]+)", tab.query())
    assert found is not None, tab.query()
    return float(found[1]), float(found[2])


def lane_y(tab: Tab, title: str, lane: int = 0) -> float:
    """The middle of a lane of the track, or of the resource, of that title."""
    box = tab.page.locator(".tl-track", has_text=title).first.bounding_box()
    assert box is not None
    return box["y"] + 18 * lane + 9


@in_every_layout
def test_from_a_finding_to_its_evidence(tab: Tab, page_of: str) -> None:
    """The link beside the evidence opens the timeline where it is; back leads to the finding."""
    page = tab.page
    tab.open(page_of.removesuffix("/timeline"))
    page.get_by_role("button", name=re.compile("HST004")).click()
    page.get_by_role("link", name=re.compile("^timeline: callback")).first.click()
    page.wait_for_url(re.compile(r"/timeline\?from=.*span="))
    page.get_by_role("heading", name="Plot.on_train_batch_end").wait_for()
    low, high = shown(tab)
    assert 0.02 < high - low < 0.04  # one step and some room
    said = page.locator(".tl-beside").inner_text()
    assert all(words in said for words in ("train.py:30", "Its step of 20 ms", "compute 10 ms"))
    page.locator(".source .hot").wait_for()
    drawn(tab)
    assert page.evaluate(FITS) <= 0
    assert page.evaluate(NAMELESS) == []
    page.go_back()
    page.wait_for_url("**?finding=1")
    page.get_by_role("heading", name="Evidence").wait_for()


def test_a_captures_button_puts_its_lanes_below_the_steps(tab: Tab, page_of: str) -> None:
    """Steps, their parts, then what was traced, then the rest."""
    page = tab.page
    tab.open(page_of)
    page.get_by_role("button", name=re.compile("^Op trace at")).click()
    page.wait_for_url(re.compile("first=ops-001"))
    drawn(tab)
    tops = [
        page.locator(".tl-track", has_text=title).first for title in ("Steps", "Parts of", "Stream #1", "CPU", "main")
    ]
    order = [int(place.evaluate("place => place.offsetTop")) for place in tops]  # of the lanes, wherever these stand
    assert order == sorted(order)


@in_every_layout
def test_the_picture_comes_first(tab: Tab, page_of: str) -> None:
    """What the session and its timeline are is asked for once, before the script; numbers after the last tile."""
    page = tab.page
    tab.open(page_of)
    drawn(tab)  # it is built
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.partition("/sessions/")[2].partition("?")[0][17:]))
    tab.open(page_of)
    page.get_by_text(re.compile("spans of .* names")).wait_for()
    assert asked.count("timeline/statistics") == 1
    assert asked.index("timeline/statistics") > max(at for at, path in enumerate(asked) if path == "timeline/tile")
    assert asked.index("timeline/statistics") > max(at for at, path in enumerate(asked) if path == "timeline/curves")
    times = page.evaluate(STARTED)
    assert times["timeline"] < times["script"]
    assert page.evaluate(ASKED, "/timeline") == 1


def test_zoom_keeps_what_is_chosen(tab: Tab, page_of: str) -> None:
    """By wheel and by keys; the address says all, and opens the same."""
    page = tab.page
    tab.open(f"{page_of}?from=1&to=1.02")
    drawn(tab)
    box = page.locator(".tl-canvas").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] * 0.2, lane_y(tab, "main thread", 1))  # below the loop: a step's call
    page.wait_for_url(re.compile("span="))
    heading = page.locator("#span-title")
    heading.wait_for()
    name, span = heading.inner_text(), re.search(r"span=[^&]*", tab.query())
    assert name.strip() == "train_function"
    assert span is not None
    page.mouse.move(box["x"] + box["width"] * 0.2, box["y"] + 30)
    page.keyboard.down("Control")
    page.mouse.wheel(0, 600)
    page.keyboard.up("Control")
    page.wait_for_url(lambda url: "from=1&" not in url)
    low, high = shown(tab)
    assert high - low > 0.05
    assert span[0] in tab.query()
    page.locator(".tl-stage").focus()
    page.keyboard.press("f")
    page.wait_for_function(WIDE + " < 0.0201")
    low, high = shown(tab)
    assert abs((high - low) - 0.02) < 1e-6  # 10 ms, half of it before and behind
    page.reload()
    drawn(tab)
    assert page.locator("#span-title").inner_text() == name
    page.go_back()
    page.wait_for_url(lambda url: f"to={high}" not in url)
    assert page.locator("#span-title").inner_text() == name


def test_keys_alone(tab: Tab, page_of: str) -> None:
    """From span to span, up and down, zoom, select, unselect."""
    page = tab.page
    tab.open(page_of)
    drawn(tab)
    stage = page.locator(".tl-stage")
    stage.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile("span=steps"))
    title = page.locator("#span-title")
    title.wait_for()
    before = re.search(r"span=[^&]*", tab.query())
    page.keyboard.press("ArrowRight")
    page.wait_for_url(lambda url: before is not None and before[0] not in url)
    page.keyboard.press("ArrowDown")
    page.wait_for_function("() => document.querySelector('#span-title')?.textContent.trim() === 'compute'")
    page.keyboard.press("ArrowDown")
    page.wait_for_function("() => document.querySelector('#span-title')?.textContent.trim() === 'fit'")
    page.keyboard.press("ArrowDown")
    page.wait_for_function("() => document.querySelector('#span-title')?.textContent.trim() === 'train_function'")
    page.keyboard.press("m")
    page.wait_for_url(re.compile("sel="))
    page.get_by_role("heading", name="In the selection", exact=True).wait_for()
    page.keyboard.press("w")
    page.wait_for_url(re.compile("from="))
    page.keyboard.press("Escape")
    page.wait_for_url(lambda url: "sel=" not in url and "span=" not in url)
    page.get_by_role("heading", name="In view", exact=True).wait_for()


def test_a_search_finds_an_op(tab: Tab, page_of: str) -> None:
    """All of them are counted; a hit leads to its place."""
    page = tab.page
    tab.open(page_of)
    page.get_by_label("Find").fill("matmul")
    page.get_by_text("1 to 50 of 50, by time").wait_for()
    page.locator(".tl-hits button").nth(3).click()
    page.wait_for_url(re.compile("span=ops-001"))
    page.locator("#span-title").wait_for()
    low, high = shown(tab)
    assert low < (STEP + 700_000) / S < high  # the fourth
    assert page.evaluate(FITS) <= 0
    drawn(tab)
    page.get_by_role("button", name="Whole run").click()
    page.wait_for_url(lambda url: "from=" not in url and "span=" in url)


def test_a_drag_selects_a_range(tab: Tab, page_of: str) -> None:
    """Its statistics stand below; what is merged is said, and how many."""
    page = tab.page
    tab.open(page_of)
    drawn(tab)
    page.get_by_text(re.compile(r"of them are merged with neighbours")).wait_for()
    page.locator(".tl-badges", has_text="merged").first.wait_for()
    assert "40 stack samples" in page.locator("main").inner_text()
    box = page.locator(".tl-canvas").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 50, steps=4)
    page.mouse.up()
    page.wait_for_url(re.compile("sel="))
    page.get_by_role("heading", name="In the selection", exact=True).wait_for()
    page.get_by_role("row", name=re.compile(r"Plot.on_train_batch_end .* 5\d ")).wait_for()  # a quarter of 200 and some
    page.get_by_role("button", name="Zoom to it").last.click()
    page.wait_for_url(lambda url: "sel=" not in url and "from=" in url)


COLUMN = """([x, top, tall]) => {
  const canvas = document.querySelector('.tl-canvas');
  const data = canvas.getContext('2d').getImageData(0, top, canvas.width, tall).data;
  const first = (column, line) => 4 * (line * canvas.width + column);
  const at = (column, line) => data.slice(first(column, line), first(column, line) + 3).join();
  const ground = at(x - 40, 0);
  return [x - 40, x].map((column) => [...Array(tall).keys()].filter((line) => at(column, line) !== ground).length);
}"""
"""How many pixels are drawn of a column, and of one 40 pixels before it."""


def test_a_spike_is_seen_from_far_away(tab: Tab, page_of: str) -> None:
    """One ms of 300 MB/s in four seconds reach the top of their lane; the value is at the pointer and in a table."""
    page = tab.page
    tab.open(page_of)
    drawn(tab)
    label = page.locator(".tl-track", has_text="network in")
    assert "to 300 MB/s" in label.inner_text()
    label.get_by_text(re.compile("merged")).wait_for()
    box = page.locator(".tl-canvas").bounding_box()
    assert box is not None
    low, high = -0.01 * 4, 4 * 1.01  # the whole run, with room on both sides
    x = box["width"] * ((SPIKE_AT + 500_000) / S - low) / (high - low)
    top = lane_y(tab, "network in") - 9 - box["y"]
    before, at = page.evaluate(COLUMN, [int(x), int(top), 28])
    assert at == 28  # all of the lane's height
    assert before < 4
    page.mouse.move(box["x"] + x, box["y"] + top + 14)
    tip = page.locator(".tl-tip")
    tip.wait_for()
    assert re.match(r"network in: (.* to )?300 MB/s.*all interfaces", tip.inner_text())
    row = page.get_by_role("row", name=re.compile("^network in"))
    row.wait_for()
    assert row.inner_text().split("\t")[1:] == ["1 MB/s", "2.33 MB/s", "300 MB/s", "1,003"]
    assert page.evaluate(FITS) <= 0


def test_resources_of_a_span_by_keys(tab: Tab, page_of: str) -> None:
    """M selects a span's time: what the machine did in it is a table; Enter folds the lanes, back unfolds them."""
    page = tab.page
    tab.open(page_of)
    drawn(tab)
    page.locator(".tl-stage").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile("span=steps"))
    page.locator("#span-title").wait_for()
    page.keyboard.press("m")
    page.get_by_role("heading", name="Resources in the selection").wait_for()
    cpu = page.get_by_role("row", name=re.compile("^CPU"))
    assert cpu.inner_text().split("\t")[1:4] == ["1 core", "1 core", "1 core"]
    fold = page.get_by_role("button", name=re.compile("resources"))
    fold.press("Enter")
    page.wait_for_url(re.compile("fold=resources"))
    assert fold.get_attribute("aria-expanded") == "false"
    assert page.locator(".tl-track", has_text="network in").count() == 0
    page.reload()
    drawn(tab)
    assert page.locator(".tl-track", has_text="network in").count() == 0
    page.go_back()
    page.locator(".tl-track", has_text="network in").wait_for()


def test_a_pinned_lane_stays_in_sight(tab: Tab, page_of: str) -> None:
    """By keys, in the order of the address; what is below scrolls, what is clicked on is what is drawn there."""
    page = tab.page
    page.set_viewport_size({"width": 1000, "height": 420})
    tab.open(f"{page_of}?from=0.029&to=0.036")
    drawn(tab)
    below = page.locator(".tl-canvas").bounding_box()
    assert below is not None
    stream = page.get_by_role("button", name="Pin Stream #1(Compute) to the top")
    stream.press("Enter")
    page.wait_for_url(re.compile("pin=ops-001"))
    page.get_by_role("button", name="Pin network in to the top").press("Enter")
    page.wait_for_url(re.compile("pin=ops-001[^&]*net-in"))
    drawn(tab)
    page.locator(".tl-scroll").evaluate("e => e.scrollTo(0, 1000)")
    assert page.locator(".tl-scroll").evaluate("e => e.scrollTop") > 40
    assert lane_y(tab, "Stream #1") == pytest.approx(below["y"] + 24 + 9, abs=1)  # below the group's title
    assert lane_y(tab, "network in") == pytest.approx(below["y"] + 24 + 21 + 9, abs=1)
    page.mouse.click(below["x"] + below["width"] * 0.293, lane_y(tab, "Stream #1"))  # 31.05 ms: 31.03 to 31.07
    page.locator("#span-title", has_text="sgemm").wait_for()
    page.reload()
    drawn(tab)
    assert lane_y(tab, "Stream #1") == pytest.approx(below["y"] + 24 + 9, abs=1)
    page.locator(".tl-stage").focus()
    page.keyboard.press("p")
    page.wait_for_url(lambda url: "pin=net-in" in url)
    assert stream.get_attribute("aria-pressed") == "false"
    page.go_back()
    page.wait_for_url(re.compile("pin=ops-001"))
    assert page.evaluate(NAMELESS) == []


def test_arrows_lead_from_a_launch_to_its_kernel(tab: Tab, page_of: str) -> None:
    """One arrow, of the chosen span alone; L and the list follow it; a span without links has none."""
    page = tab.page
    tab.open(f"{page_of}?from=0.03&to=0.0302")
    drawn(tab)
    box = page.locator(".tl-canvas").bounding_box()
    assert box is not None
    arrows = "n => document.querySelector('.tl-canvas').dataset.arrows === n"
    page.wait_for_function(arrows, arg="0")
    page.mouse.click(box["x"] + box["width"] * 0.75, lane_y(tab, "Stream #1"))  # 30.15 of 30 to 30.2 ms: 30.13 to 30.17
    page.locator("#span-title", has_text="sgemm").wait_for()
    page.wait_for_function(arrows, arg="1")
    assert "launched by cudaLaunchKernel 30 us earlier" in page.locator(".tl-beside").inner_text()
    page.locator(".tl-stage").focus()
    page.keyboard.press("l")
    page.locator("#span-title", has_text="cudaLaunchKernel").wait_for()
    page.wait_for_function(arrows, arg="1")
    page.get_by_role("button", name="sgemm").first.press("Enter")
    page.locator("#span-title", has_text="sgemm").wait_for()
    page.go_back()
    page.locator("#span-title", has_text="cudaLaunchKernel").wait_for()
    page.locator(".tl-stage").focus()
    page.keyboard.press("Escape")
    page.wait_for_function(arrows, arg="0")


@pytest.mark.tf
@pytest.mark.slow
def test_a_capture_of_a_training_appears(chromium: Browser, served: str, training: int) -> None:
    """The timeline of a running job gets the tracks of its new op trace, and the page is never loaded again."""
    context = chromium.new_context(viewport={"width": 1440, "height": 900})
    tab = tab_of(context, served)
    page = tab.page
    page.get_by_role("row", name=re.compile(f"long_fit.py .* {training} ")).get_by_role("link").first.click()
    page.get_by_role("link", name="Timeline").click()
    drawn(tab)
    page.evaluate("() => { window.sameLoad = true; }")
    page.get_by_role("link", name="Tasks").click()
    page.get_by_role("button", name=re.compile("Trace train")).click()
    page.get_by_role("link", name="Timeline").click()
    page.locator(".tl-group", has_text="/host:CPU").first.wait_for()
    page.get_by_label("Find").fill("matmul")
    page.locator(".tl-hits button").first.click()
    page.wait_for_url(re.compile("span=ops-"))
    drawn(tab)
    assert page.evaluate("() => window.sameLoad") is True
    assert tab.problems == []
    context.close()
