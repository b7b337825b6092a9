"""A page whose server has gone says since when, and goes on when there is one again."""

from __future__ import annotations

import re
import signal
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from tests.web.browser import CHROMIUM, FLAGS, PATIENCE_MS
from tests.web.conftest import PATIENCE_S, TOKEN, command, environment

from stepscope.server.session_catalogue import SessionCatalogue

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Page

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine (make system-deps)"),
]


@pytest.fixture
def page() -> Iterator[Page]:
    """A tab of the system's chromium."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        context = chromium.new_context()
        context.set_default_timeout(PATIENCE_MS)
        yield context.new_page()
        chromium.close()


@contextmanager
def served(folder: Path, port: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server, and its address; killed at the end."""
    server = subprocess.Popen(
        command("view", str(folder), "--port", port),
        env=environment(STEPSCOPE_TOKEN=TOKEN, XDG_CACHE_HOME=str(folder / "cache")),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    try:
        yield server, server.stdout.readline().strip().rstrip("/")
    finally:
        server.kill()
        server.wait(PATIENCE_S)
        server.stdout.close()


def steps(page: Page) -> str:
    """How many steps the overview tells."""
    return page.locator(".facts div", has_text="Steps").locator("dd").first.inner_text()


def test_a_server_that_goes_and_comes_back(page: Page, live: int, tmp_path: Path) -> None:
    """Numbers of a job that runs are marked as old from the moment that there are no newer ones, until there are."""
    key = next(job.session for job in SessionCatalogue([]).running() if job.pid == live)
    with served(tmp_path, "0") as (server, url):
        page.goto(f"{url}/?token={TOKEN}")
        page.goto(f"{url}/sessions/{key}")
        page.locator(".state-running").wait_for()
        page.locator(".facts").wait_for()
        assert page.locator(".lost, .stale").count() == 0
        server.send_signal(signal.SIGKILL)
        server.wait(PATIENCE_S)
        page.locator(".lost").wait_for()
    said = page.locator(".lost").inner_text()
    since = re.search(r"No connection since (\d\d:\d\d:\d\d); the numbers are from that time", said)
    assert since is not None, said
    assert page.locator(".state").inner_text() == f"running at {since[1]}"
    assert page.locator("main.stale .facts").count() == 1
    before = steps(page)
    with served(tmp_path, url.rpartition(":")[2]):
        page.locator(".lost").wait_for(state="detached")
        page.locator(".state-running").wait_for()
        page.wait_for_function("was => !document.querySelector('.facts').innerText.includes(was)", arg=before)
        assert page.locator(".stale").count() == 0
