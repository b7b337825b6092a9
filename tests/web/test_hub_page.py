"""The hub as a run list in a real browser: labels, sorting, deletion, two ticked to compare, at every width."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec
import pytest
from tests.web.browser import AXE, CHROMIUM, FITS, FLAGS, NAMELESS, SERIOUS, Tab, tab_of
from tests.web.conftest import PATIENCE_S, TOKEN, command, environment

from stepscope.model.api.rest_api import Job, JobPage
from stepscope.model.api.status import LiveCapture, LiveFinding, Status
from stepscope.tables.layout import key_of

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Route
    from tests.web.recorded import Recorded

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine (make system-deps)"),
]
LONG = "long_name_" * 22


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The system's chromium, without a window."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture
def folder(recorded: Recorded, starving: Recorded, tmp_path: Path) -> Path:
    """Three sessions, one of them with a very long name."""
    for name, one in (("slow", recorded), ("starving", starving), (LONG, recorded)):
        path = tmp_path / "sessions" / f"{name}.stepscope"
        shutil.copytree(one.path, path)
        manifest = json.loads((path / "manifest.json").read_text())
        (path / "manifest.json").write_text(json.dumps({**manifest, "id": name}))
    return tmp_path / "sessions"


@pytest.fixture
def tab(chromium: Browser, folder: Path, tmp_path: Path) -> Iterator[Tab]:
    """A tab over them."""
    server = subprocess.Popen(
        command("view", str(folder), "--port", "0"),
        env=environment(STEPSCOPE_TOKEN=TOKEN, XDG_STATE_HOME=str(tmp_path), XDG_CACHE_HOME=str(tmp_path)),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    context = chromium.new_context(viewport={"width": 1440, "height": 900})
    try:
        yield tab_of(context, server.stdout.readline().strip().rstrip("/"))
    finally:
        context.close()
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=PATIENCE_S)


def test_labels_sorting_and_comparing(tab: Tab, folder: Path) -> None:
    """Renamed and tagged, found by the tag, sorted, two ticked and compared in six clicks."""
    page = tab.page
    page.get_by_role("button", name="Edit starving").click()
    page.get_by_label("Name", exact=True).fill("Waits for its map")
    page.get_by_label("Tags").fill("loader, baseline, loader")
    page.get_by_label("Note").fill("before the change")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("link", name="Waits for its map").wait_for()
    page.get_by_role("button", name="baseline").click()
    page.wait_for_url("**q=baseline**")
    page.get_by_role("link", name="slow", exact=True).wait_for(state="detached")
    page.get_by_label("Search").fill("")
    page.get_by_role("button", name="Session", exact=True).click()
    page.wait_for_url("**sort=name**")
    page.get_by_role("link", name="slow", exact=True).wait_for()
    before, after = (key_of((folder / f"{name}.stepscope").resolve()) for name in ("starving", "slow"))
    page.get_by_label("Compare Waits for its map").check()
    page.get_by_label("Compare slow").check()
    page.get_by_role("link", name="Compare the two ticked").click()
    page.wait_for_url(f"**/compare?before={before}&after={after}")
    page.locator(".answer").wait_for()
    assert tab.problems == []


def test_deleting_asks_for_the_name(tab: Tab, folder: Path) -> None:
    """Nothing goes without it, and nothing else goes with it."""
    page = tab.page
    page.get_by_role("button", name="Edit slow", exact=True).click()
    page.get_by_role("button", name="Delete…").click()
    gone = page.get_by_role("button", name="Delete for ever")
    assert gone.is_disabled()
    page.get_by_label("Name of the session to delete").fill("slow")
    gone.click()
    page.get_by_role("link", name="slow", exact=True).wait_for(state="detached")
    assert sorted(p.name for p in folder.iterdir() if not p.name.startswith(".")) == [
        f"{LONG}.stepscope",
        "starving.stepscope",
    ]
    assert tab.problems == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_at_every_width(tab: Tab, scheme: str) -> None:
    """The list, the open dialog and a comparison, with a name of 220 letters; nothing serious in axe."""
    page = tab.page
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    for width in (1440, 1024, 800):
        page.set_viewport_size({"width": width, "height": 900})
        tab.open("/")
        page.get_by_role("button", name="Edit slow", exact=True).wait_for()
        assert page.evaluate(FITS) <= 0
        page.get_by_role("button", name=re.compile("Edit long_name")).click()
        page.get_by_role("button", name="Delete…").click()
        assert page.evaluate(FITS) <= 0
        assert page.evaluate(NAMELESS) == []
        page.evaluate(AXE.read_text())
        assert page.evaluate(SERIOUS) == []


def job(pid: int, severity: str, *, session: str = "", path: str = "", captures: tuple[LiveCapture, ...] = ()) -> Job:
    """A running job whose top finding is that bad."""
    top = LiveFinding(code="INP001", title="waits", severity=severity, cost_ratio=0.5) if severity else None
    status = Status(pid=pid, state="running", steps=10, top=top, findings=1, session=path, captures=captures)
    return Job(pid=pid, name=f"job_{pid}.py", user="me", state="running", session=session, status=status)


def jobs_are(tab: Tab, listed: list[Job]) -> None:
    """The list of jobs is what ``listed`` holds when it is asked for."""

    def answer(route: Route) -> None:
        page = JobPage(items=tuple(listed), total=len(listed), offset=0, next_offset=None)
        route.fulfill(body=msgspec.json.encode(page), content_type="application/json")

    tab.page.route("**/api/v1/jobs?**", answer)


def test_the_worst_jobs_come_first(tab: Tab, folder: Path) -> None:
    """By severity, not by cost or age; a click on a header orders otherwise; links count and lead down."""
    page = tab.page
    jobs_are(tab, [job(pid, how) for pid, how in ((11, "low"), (12, ""), (13, "high"), (14, "medium"), (15, "high"))])
    tab.open("/")
    rows = page.locator("section[aria-labelledby=jobs-title] tbody tr")
    rows.nth(4).wait_for()
    names = rows.locator("td.named").all_inner_texts
    assert [text.split()[0] for text in names()] == [f"job_{pid}.py" for pid in (13, 15, 14, 11, 12)]
    page.get_by_role("button", name="Pid", exact=True).click()
    page.wait_for_url("**jobs=pid**")
    assert [text.split()[0] for text in names()] == [f"job_{pid}.py" for pid in (15, 14, 13, 12, 11)]
    page.get_by_role("link", name="5 running jobs").wait_for()
    page.get_by_role("link", name=re.compile(r"^\d+ sessions$")).click()
    page.wait_for_url("**#sessions-title")
    assert tab.problems == []


def test_a_job_names_its_session_or_why_there_is_none(tab: Tab, folder: Path) -> None:
    """A link under the session's own name; without one, whether it is too early or cannot be read."""
    page = tab.page
    path = folder / "slow.stepscope"
    key = key_of(path.resolve())
    jobs_are(tab, [job(21, "", session=key, path=str(path)), job(22, "", path="/far/away.stepscope"), job(23, "")])
    tab.open("/")
    cell = page.locator("section[aria-labelledby=jobs-title] td.named")
    cell.nth(2).wait_for()
    assert [one.split("\n")[-1] for one in cell.all_inner_texts()] == [
        "session slow",
        "its session cannot be read here",
        "no session yet",
    ]
    cell.first.get_by_role("link", name="slow", exact=True).click()
    page.wait_for_url(f"**/sessions/{key}")
    assert tab.problems == []


def test_slash_leads_to_the_search(tab: Tab, folder: Path) -> None:
    """From anywhere, and the key itself is not written; in a field it is a letter like others."""
    page = tab.page
    tab.open("/")
    page.get_by_role("link", name="starving").wait_for()
    page.keyboard.press("/")
    page.keyboard.type("starv/")
    search = page.get_by_label("Search")
    page.wait_for_url("**q=starv**")
    assert search.input_value() == "starv/"
    search.fill("starving")
    page.get_by_role("link", name="slow", exact=True).wait_for(state="detached")
    page.get_by_role("link", name="starving").wait_for()


def test_a_capture_by_one_click(tab: Tab, folder: Path) -> None:
    """Where a job has a session: what was asked, what became of it, and a link to its ops; a refusal is said."""
    page = tab.page
    path = folder / "slow.stepscope"
    key = key_of(path.resolve())
    listed = [job(31, "", session=key, path=str(path)), job(32, "")]
    asked: list[object] = []

    def capture(route: Route) -> None:
        asked.append(route.request.post_data_json)
        done = LiveCapture(request="r1", asked_by="user", state="done", steps=10)
        listed[0] = job(31, "", session=key, path=str(path), captures=(done,))
        route.fulfill(body=json.dumps({"request": "r1"}), content_type="application/json")

    jobs_are(tab, listed)
    page.route("**/api/v1/jobs/31/captures", capture)
    tab.open("/")
    page.get_by_role("button", name="Capture ops of job_31.py 31").click()
    page.get_by_role("link", name="its ops").click()
    page.wait_for_url(f"**/sessions/{key}/ops")
    assert asked == [{"kind": "ops", "steps": 10}]
    tab.open("/")
    assert page.get_by_role("button", name=re.compile("Capture ops of")).count() <= 1
