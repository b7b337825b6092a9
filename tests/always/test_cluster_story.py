"""The whole story of tracing without code changes, in a real browser: a cluster of a parameter server and two workers
is enabled and started as ever; its runs are listed by what they fetch; one is traced from the page; the timeline shows
lanes of each process and each device; the packed session shows the same picture elsewhere, with the job gone.
"""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.always.conftest import Environment, plain, wait_for
from tests.web.browser import CHROMIUM, FLAGS, Tab, tab_of
from tests.web.conftest import TOKEN, command
from tests.web.conftest import environment as of_the_user

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

pytestmark = [
    pytest.mark.tf,
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine (make system-deps)"),
]
PROGRAM = Path(__file__).parents[2] / "bench" / "programs" / "cluster_task.py"
TRAIN, LARGEST = "train, loss:0", "largest:0"
DEVICES = ("/job:ps/replica:0/task:0/device:CPU:0", "/job:worker/replica:0/task:0/device:CPU:0")
LOOKS = 4
PATIENCE_S = 120.0
"""Eight processes share what cores there are."""
PICTURE = """() => {
  const canvas = document.querySelector('.tl-canvas'), legend = document.querySelector('.legend');
  const shown = () => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer;
  if (canvas?.dataset.state !== 'drawn' || !legend?.children.length) return null;
  const texts = (selector) => [...document.querySelectorAll(selector)].map((found) => found.textContent);
  return {
    groups: texts('.tl-group'), tracks: texts('.tl-link'), said: texts('.tl-status, .tl-badges, .legend'),
    marks: Number(canvas.dataset.marks), size: [canvas.width, canvas.height],
    hidden: document.querySelector('.tl-labels').clientHeight - document.querySelector('.tl-stage').clientHeight,
    colours: new Set(new Uint32Array(shown())).size,
    pixels: canvas.toDataURL(),
  };
}"""
TOLD = """async () => {
  const { build, ...told } = await (await fetch(`/api/v1${location.pathname}`)).json();
  return told;
}"""
"""All that the server says of the timeline but the name of its build."""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """The processes of a job, and the file that ends it."""

    ps: subprocess.Popen[str]
    workers: tuple[subprocess.Popen[str], ...]
    until: Path

    @property
    def pids(self) -> tuple[int, ...]:
        """Of all of them."""
        return tuple(process.pid for process in (self.ps, *self.workers))


def free_ports(count: int) -> list[int]:
    """Ports on which nobody listens."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [listener.getsockname()[1] for listener in held]
    for listener in held:
        listener.close()
    return ports


@pytest.fixture
def cluster(tensorflow: Environment) -> Cluster:
    """A parameter server and two workers, as a user starts them."""
    ps, *workers = (f"127.0.0.1:{port}" for port in free_ports(3))
    until = tensorflow.folder / "stop"
    places = json.dumps({"ps": [ps], "worker": workers})

    def task(job: str, number: int) -> subprocess.Popen[str]:
        words = ("--job", job, "--task", str(number), "--cluster", places, "--until", str(until))
        return tensorflow.start(PROGRAM, words=words, env=plain(CUDA_VISIBLE_DEVICES=""))

    return Cluster(ps=task("ps", 0), workers=(task("worker", 0), task("worker", 1)), until=until)


@contextmanager
def served(*words: str, cwd: Path) -> Iterator[str]:
    """The address of ``stepscope view``; home and caches are of that folder."""
    server = subprocess.Popen(
        command("view", "--port", "0", *words),
        cwd=cwd,
        env=of_the_user(STEPSCOPE_TOKEN=TOKEN, HOME=str(cwd), XDG_CACHE_HOME=str(cwd / "cache")),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    try:
        yield server.stdout.readline().strip().partition("/sessions/")[0].rstrip("/")
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=PATIENCE_S)


@contextmanager
def looking(chromium: Browser, url: str) -> Iterator[Tab]:
    """A tab that nothing may be complained of in, and that asks nobody but the server."""
    context = chromium.new_context(viewport={"width": 1440, "height": 3_000})  # all lanes are in sight
    tab = tab_of(context, url)
    context.set_default_timeout(1_000 * PATIENCE_S)
    yield tab
    assert tab.problems == []
    context.close()


def count_of(page: Page, task: str) -> str:
    """How often a task has run, as its row says."""
    row = page.get_by_role("row").filter(has=page.get_by_text(task, exact=True))
    return row.locator("td.number").first.inner_text()


def picture(page: Page) -> dict[str, object]:
    """What the timeline shows once several looks see the same: lanes, their labels, every pixel."""
    seen: list[object] = []

    def rests() -> object:
        page.wait_for_timeout(200)  # the page tells of merged spans a moment after it has drawn them
        seen.append(page.evaluate(PICTURE))
        return seen[-1] if len(seen) >= LOOKS and all(one == seen[-1] for one in seen[-LOOKS:]) else None

    found = wait_for(rests, "a timeline that rests", PATIENCE_S)
    assert found["hidden"] <= 0
    assert found["marks"] > 0
    assert found["colours"] > 10
    return dict(found)


def both(page: Page) -> list[dict[str, object]]:
    """The timeline as told and as drawn: the whole run, and the traced run."""
    told = wait_for(
        lambda: (now := page.evaluate(TOLD))["state"] == "ready" and not now["renewing"] and now, "a build", PATIENCE_S
    )
    page.get_by_text(f"{told['spans']:,} spans in {len(told['tracks'])} tracks", exact=True).wait_for()
    whole = picture(page)
    page.get_by_role("button", name=re.compile("^Op trace at")).click()
    page.wait_for_url(re.compile("from="))
    return [told, whole, picture(page)]


def test_the_whole_story(tensorflow: Environment, cluster: Cluster, tmp_path: Path) -> None:
    """From the hub to the picture of one traced run, and to the same picture from a file."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    packed = elsewhere / "one.stepscope.zip"
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        with served(cwd=tensorflow.folder) as url, looking(chromium, url) as tab:
            trace_one(tab, cluster)
            counts = ended(tensorflow, cluster)
            page = tab.page
            page.get_by_role("link", name="Download").wait_for()  # the page has become that of a finished session
            assert page.evaluate("() => window.sameLoad") is True
            page.get_by_role("link", name="Timeline").click()
            before = both(page)
            assert {one["title"] for one in page.evaluate(TOLD)["series"]} >= {"CPU", "memory"}
            with page.expect_download() as download:
                page.get_by_role("link", name="Download").click()
            download.value.save_as(packed)
        tensorflow.sessions.rename(tmp_path / "out-of-reach")
        with served(str(packed), cwd=elsewhere) as url, looking(chromium, url) as tab:
            page = tab.page
            page.get_by_role("link", name="one", exact=True).click()
            page.get_by_role("link", name="Tasks").click()
            page.get_by_text(TRAIN, exact=True).wait_for()
            assert (count_of(page, TRAIN), count_of(page, LARGEST)) == counts
            assert page.get_by_role("button", name=re.compile("^Trace")).count() == 0
            page.get_by_role("link", name="Timeline").click()
            after = both(page)
        chromium.close()
    assert [one.keys() for one in before] == [one.keys() for one in after]
    differing = [key for one, other in zip(before, after, strict=True) for key in one if one[key] != other[key]]
    assert differing == []


def trace_one(tab: Tab, cluster: Cluster) -> None:
    """The hub lists the cluster's processes; a worker's tasks are its runs by fetches; one of them is traced."""
    page = tab.page
    for pid, what in zip(cluster.pids, ("ps --task 0", "worker --task 0", "worker --task 1"), strict=True):
        page.get_by_role("row", name=re.compile(f"cluster_task.py --job {what} .* {pid} ")).wait_for()
    page.get_by_text("One job: 3 of 3 tasks").wait_for()
    worker = cluster.workers[0].pid
    link = page.get_by_role("row", name=re.compile(f" {worker} ")).get_by_role("link").first
    link.click()
    page.get_by_role("link", name="Tasks").click()
    page.evaluate("() => { window.sameLoad = true; }")
    page.get_by_role("button", name=f"Trace {LARGEST}").wait_for()
    trained, looked = (int(count_of(page, name).replace(",", "")) for name in (TRAIN, LARGEST))
    assert trained > looked  # exact: no "at least" before either
    page.get_by_role("button", name=f"Trace {TRAIN}").click()
    page.locator(".capture-done").wait_for()
    assert f"Session.run {TRAIN} 1 step" in page.locator(".capture-done").inner_text()
    page.get_by_role("link", name="Timeline").click()
    for device in DEVICES:
        group = page.locator(".tl-group", has_text=device)
        group.wait_for()
        assert f"ops-001 {device}, traced by process {worker}" in group.inner_text()
    told = page.evaluate(TOLD)
    lanes = told["tracks"]
    of_process = {lane["title"].partition(" (")[0] for lane in lanes if f"process {worker}" in lane["group"]}
    assert of_process >= {"Steps", "main thread"}
    for device in DEVICES:
        assert sum(lane["spans"] for lane in lanes if device in lane["group"]) > 1
    page.get_by_label("Find").fill("matmul")
    page.locator(".tl-hits button").first.click()
    page.wait_for_url(re.compile("span=ops-001"))
    assert page.evaluate("() => window.sameLoad") is True


def ended(environment: Environment, cluster: Cluster) -> tuple[str, str]:
    """End the job as its user does; how often worker 0 says that it has run each task, as the page writes it."""
    cluster.until.touch()
    runs = []
    for worker in cluster.workers:
        out, err = worker.communicate(timeout=PATIENCE_S)
        assert worker.returncode == 0, err
        runs.append(json.loads(out.splitlines()[-1])["runs"])
    cluster.ps.terminate()
    cluster.ps.communicate(timeout=PATIENCE_S)
    assert cluster.ps.returncode == -signal.SIGTERM
    wait_for(lambda: not environment.runs() and len(environment.finished()) >= 2, "the sessions' ends", PATIENCE_S)
    joint = wait_for(
        lambda: list(environment.sessions.glob("*-job.stepscope/report.json")), "a joint report", PATIENCE_S
    )
    said = json.loads(joint[0].read_text())["cluster"]
    assert {row["name"] for row in said["members"]} == {"ps 0", "worker 0", "worker 1"}
    assert json.loads((joint[0].parent / "manifest.json").read_text())["joined_by"] == "enable"
    return f"{runs[0]['train']:,}", f"{runs[0]['largest']:,}"
