"""Find on the timeline walks through its hits; a tooltip goes with its span; one link to a place, in a real browser."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from tests.web.browser import CHROMIUM, FITS, FLAGS, Tab, tab_of
from tests.web.conftest import viewed, wait_for
from tests.web.timeline_sessions import stored

from stepscope.tables.layout import key_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="no chromium (make system-deps)")]
DRAWN = "() => document.querySelector('.tl-canvas')?.dataset.state === 'drawn'"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The system's chromium, without a window."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address of a server over a session with an op trace, and of that session's overview there."""
    path = stored(tmp_path_factory.mktemp("find"), traced=True)
    with viewed([path], tmp_path_factory.mktemp("home")) as url:
        yield url.partition("/sessions/")[0], f"/sessions/{key_of(path.resolve())}"


@pytest.fixture
def tab(chromium: Browser, place: tuple[str, str]) -> Iterator[Tab]:
    """Nothing is complained of."""
    context = chromium.new_context(viewport={"width": 1440, "height": 900})
    found = tab_of(context, place[0])
    yield found
    assert found.problems == []
    context.close()


def drawn(tab: Tab) -> None:
    """Wait until all that is in sight is drawn."""
    tab.page.wait_for_function(DRAWN)


def test_one_link_to_a_place(tab: Tab, place: tuple[str, str]) -> None:
    """However many rows of a finding's evidence are from there."""
    page = tab.page
    tab.open(place[1])
    page.get_by_role("button", name=re.compile("HST004")).click()
    page.get_by_role("link", name=re.compile("^timeline: callback")).first.wait_for()
    places = page.locator("article table a").evaluate_all("links => links.map((link) => link.href)")
    assert len(places) == len(set(places))


def test_enter_walks_through_the_hits(tab: Tab, place: tuple[str, str]) -> None:
    """`/` leads to Find, which says how many there are; Enter and Shift-Enter go from one to the next and around."""
    page = tab.page
    tab.open(f"{place[1]}/timeline")
    drawn(tab)
    page.keyboard.press("/")
    page.keyboard.type("matmul")
    status = page.locator(".tl-walk [role=status]")
    status.get_by_text("50 found", exact=True).wait_for()
    seen: list[str] = []
    for key, said in (("Enter", "1 of 50 found"), ("Enter", "2 of 50 found"), ("Shift+Enter", "1 of 50 found")):
        page.keyboard.press(key)
        status.get_by_text(said, exact=True).wait_for()
        page.locator(".tl-hits [aria-current]").wait_for()
        before = seen[-1] if seen else ""
        page.wait_for_function("old => new URLSearchParams(location.search).get('span') !== (old || null)", arg=before)
        seen.append(page.evaluate("() => new URLSearchParams(location.search).get('span')"))
    assert seen[0] == seen[2] != seen[1]
    page.keyboard.press("Shift+Enter")
    status.get_by_text("50 of 50 found", exact=True).wait_for()
    assert page.evaluate("() => document.activeElement.type") == "search"
    assert page.evaluate(FITS) <= 0
    page.get_by_label("Find").fill("no such span")
    status.get_by_text("not found").wait_for()
    assert page.get_by_role("button", name="Next hit").is_disabled()


def test_a_tip_goes_with_the_pointer(tab: Tab, place: tuple[str, str]) -> None:
    """Once it is elsewhere. Where lanes move below it, the browser points again by itself, at what lies there then."""
    page = tab.page
    tab.open(f"{place[1]}/timeline")
    drawn(tab)
    tip = page.locator(".tl-tip")

    def shown() -> bool:
        box = page.locator(".tl-canvas").bounding_box()  # what loads later moves the lanes
        steps = page.locator(".tl-track", has_text="Steps").first.bounding_box()
        assert box is not None
        assert steps is not None
        at = (box["x"] + box["width"] / 2, steps["y"] + 9)
        page.mouse.move(at[0] - 3, at[1])
        page.mouse.move(*at)
        page.wait_for_timeout(50)
        return tip.is_visible()

    wait_for(shown, "a tip: the lanes may be drawn anew")
    page.mouse.move(1, 1)
    tip.wait_for(state="detached")
