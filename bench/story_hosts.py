"""The story of tracing a cluster without code changes, on hosts of their own: from ``enable`` to a file elsewhere.

Usage: story_hosts.py [--jobs ps,mirrored] [--keep FOLDER] [--write]

Two hosts train, a third gathers (``_hosts``, ``_whole_hosts``: own network, processes, names, clocks, memory files; by
root; needs chromium). Each is enabled with ``--gather``, ``--clock-hosts`` and ``--ui``; the job is started with plain
``python``. Job ``ps``: a parameter server and worker 0 on host 0, worker 1 on host 1, ``programs/cluster_task.py`` with
a MonitoredTrainingSession; ``mirrored``: two workers of a MultiWorkerMirroredStrategy, of which worker 1 is slow. For
a part of the job 1 % of the packets from and to host 1 are lost. What a person does and sees is done and looked for in
a browser: the jobs, Trace, the timeline, and after the job that of all hosts, packed, and opened where nothing else is.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
import shutil
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from playwright.sync_api import Error, sync_playwright

import _hosts
import _story_bed
import _story_facts
import _whole_hosts
from _hosts import Network, OneWay
from _story_bed import STEPSCOPE, Machine, wait_for
from stepscope.model.api.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from playwright.sync_api import Page, Playwright

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "story-hosts.md"
IMAGES = ROOT / "docs" / "images"
PROGRAMS = ROOT / "bench" / "programs"
TOKEN = "0123456789abcdef0123456789abcdef"
PORT = 5000
TRAIN = "train, loss:0"
ONE_WAY_S = 0.0005
LOSS, LOSSY_S = 0.01, 20.0
STEPS = 1500
LOOKS = 4
SETTLES_MS = 2_000
"""A page lists captures that were asked for elsewhere a moment after it is opened."""
WIDTH, HEIGHT = 1440, 2200
PICTURE = """() => {
  const canvas = document.querySelector('.tl-canvas');
  if (canvas?.dataset.state !== 'drawn') return null;
  const texts = (selector) => [...document.querySelectorAll(selector)].map((found) => found.textContent);
  return { groups: texts('.tl-group'), tracks: texts('.tl-link'), pixels: canvas.toDataURL() };
}"""
TOLD = """async () => {
  const { build, ...told } = await (await fetch(`/api/v1${location.pathname}`)).json();
  return told;
}"""
NOTES = """What is not so: a page lists the tasks of its host. Tasks of an asynchronous job have no step in common: the
same is the time. What is said of a host that is cut off, or a task that is killed: [far-captures](far-captures.md).
"""
HEAD = """# The story of tracing a cluster, on hosts of their own

Printed by `make bench-story-hosts ARGS=--write` (by root). Two hosts and one that gathers: namespaces with networks,
processes, names, boot ids, memory files and clocks (100 and 200 s apart) of their own, 1 ms of round trip between
them. Each is enabled with `stepscope enable --gather --clock-hosts --ui`, the job starts with plain `python`, and all
that is seen is seen in a browser on that host. For 20 s of the job 1 % of the packets from and to host 1 are lost.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of the story."""

    what: str
    held: bool
    seconds: float
    said: str


@dataclass(slots=True, kw_only=True)
class Story:
    """A job, what was done, and what was seen."""

    job: str
    hosts: list[Machine]
    network: Path
    folder: Path
    pictures: Path
    steps: list[Step] = field(default_factory=list)
    until: float = 0.0

    def tell(self, what: str, began: float, said: str, *, held: bool = True) -> None:
        """Note a step."""
        self.steps.append(Step(what=what, held=held, seconds=time.monotonic() - began, said=said))
        print(
            f"{'yes' if held else 'NO '} {self.steps[-1].seconds:6.1f} s  {what}: {said}", file=sys.stderr, flush=True
        )

    def shot(self, page: Page, name: str) -> None:
        """A picture of what is seen."""
        page.screenshot(path=self.pictures / f"{self.job}-{name}.png")

    @property
    def key(self) -> Path:
        """The key of clocks and gathering; each host has its own copy."""
        return self.folder / "key"

    @property
    def url(self) -> str:
        """Address of the gathering server."""
        return f"http://{self.hosts[2].place.host.address}:{_story_bed.GATHER_PORT}"

    def _arrived(self) -> list[Path]:
        return list((self.folder / "gathered").glob("*/*/complete.json"))

    # -- the job --

    def enable(self) -> None:
        """A server that gathers, and two enabled environments."""
        began = time.monotonic()
        self.key.write_bytes(secrets.token_bytes(32))
        self.key.chmod(0o600)
        listen = ["--listen", self.url.removeprefix("http://"), "--key-file", str(self.key)]
        self.hosts[2].start([str(STEPSCOPE), "gather", "serve", str(self.folder / "gathered"), *listen], "server")
        wait_for(lambda: b"http" in self.hosts[2].place.out("server").read_bytes(), "a gathering server")
        names = ",".join(one.place.host.address for one in self.hosts[:2])
        options = ["--gather", self.url, "--clock-hosts", names, "--key-file", str(self.key), "--ui"]
        said = [one.tool("enable", "--python", one.python, *options) for one in self.hosts[:2]]
        self.tell("both hosts are enabled, with --gather, --clock-hosts, --ui", began, said[0].splitlines()[-3].strip())

    def start(self) -> None:
        """Start the job with plain python."""
        places = [one.place.host.address for one in self.hosts[:2]]
        if self.job == "mirrored":
            cluster = {"worker": [f"{place}:{PORT}" for place in places]}
            for number, host in enumerate(self.hosts[:2]):
                config = json.dumps({"cluster": cluster, "task": {"type": "worker", "index": number}})
                words = [host.python, str(PROGRAMS / "mirrored_worker.py"), str(STEPS), "1"]
                host.start(words, f"worker-{number}", TF_CONFIG=config)
            return
        cluster = {"ps": [f"{places[0]}:{PORT}"], "worker": [f"{places[0]}:{PORT + 1}", f"{places[1]}:{PORT}"]}
        for place, role, number in ((0, "ps", 0), (0, "worker", 0), (1, "worker", 1)):
            machine = self.hosts[place]
            words = [machine.python, str(PROGRAMS / "cluster_task.py"), "--job", role, "--task", str(number)]
            words += ["--cluster", json.dumps(cluster), "--until", str(machine.disk / "until")]
            words += ["--side", "256", "--batch", "512", "--layers", "4"]
            machine.start(words, f"{role}-{number}")

    def end(self) -> None:
        """The job ends as its user ends it, and what it left is gathered."""
        began = time.monotonic()
        for host in self.hosts[:2]:
            (host.disk / "until").touch()
        workers = [host.started[f"worker-{number}"] for number, host in enumerate(self.hosts[:2])]
        codes = [one.wait(_story_bed.PATIENCE_S) for one in workers]
        if self.job == "ps":
            jobs = json.loads(self.hosts[0].tool("ps", "--json"))
            (pid,) = [job["pid"] for job in jobs["jobs"] if job["member"] == "ps 0"]
            self.hosts[0].start(["kill", "-TERM", str(pid)], "kill")
        self.tell("the job ends by itself, exit codes as ever", began, f"{codes}", held=not any(codes))
        began = time.monotonic()
        wanted = 3 if self.job == "ps" else 2
        wait_for(lambda: len(self._arrived()) == wanted, "the sessions at the gathering server")
        arrived = self._arrived()
        self.tell("sessions arrive at the gathering server", began, ", ".join(sorted(p.parent.name for p in arrived)))


@contextmanager
def tab(playwright: Playwright, host: Machine, url: str) -> Iterator[Page]:
    """A page in a browser on a host; what goes wrong in it is an error."""
    browser = host.browser(playwright.chromium)
    page = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}).new_page()
    page.set_default_timeout(1000 * _story_bed.PATIENCE_S)
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    try:
        page.goto(url)
        yield page
    finally:
        browser.close()
    if wrong:
        raise RuntimeError(f"errors in the page: {wrong}")


def live(story: Story, playwright: Playwright) -> None:
    """The jobs in each host's page; one is traced while others run; the timeline while it goes on."""
    began = time.monotonic()
    tasks = 3 if story.job == "ps" else 2
    for host, there in ((0, tasks - 1), (1, 1)):
        with tab(playwright, story.hosts[host], wait_for(story.hosts[host].page, "a page")) as page:
            if there > 1:
                page.get_by_text(f"One job: {there} of {tasks} tasks").wait_for()
            member = f"worker {host}"
            page.get_by_text(member, exact=True).first.wait_for()
            story.shot(page, f"jobs-{host}")
            story.tell(f"the page of host {host} lists its tasks", began, f"{there} of {tasks}, {member}")
            _trace(story, page, host)
            began = time.monotonic()


def _trace(story: Story, page: Page, host: int) -> None:
    """Trace from the page, and look at the timeline while the job runs."""
    began = time.monotonic()
    page.get_by_role("row").filter(has_text=f"worker {host}").get_by_role("link").first.click()
    page.get_by_role("link", name="Tasks").click()
    button = page.get_by_role("button", name=f"Trace {TRAIN}" if story.job == "ps" else "Capture now")
    button.wait_for()
    page.wait_for_timeout(SETTLES_MS)
    results = page.locator(".capture-done, .capture-failed")
    before = Counter(results.all_inner_texts())
    button.click()
    said = wait_for(lambda: _story_facts.of_request(Counter(results.all_inner_texts()) - before), "a result")
    story.shot(page, f"traced-{host}")
    story.tell(f"traced from the page of host {host}", began, said.replace("\n", " "), held="done" in said)
    what, held = _story_facts.together(said, story.job)
    story.tell(f"one click on host {host} traces the tasks of both", began, what, held=held)
    began = time.monotonic()
    page.get_by_role("link", name="Timeline").click()
    wait_for(lambda: page.evaluate(PICTURE), "a timeline")
    story.shot(page, f"live-{host}")
    groups = f"{len(page.locator('.tl-group').all())} groups in view"
    story.tell("the timeline of the running job is drawn", began, groups)


def lossy(story: Story) -> None:
    """For a while packets are lost."""
    began = time.monotonic()
    _hosts.lose(story.network, 1, LOSS)
    time.sleep(LOSSY_S)
    _hosts.lose(story.network, 1, 0.0)
    story.tell(f"{LOSS:.0%} of the packets of host 1 are lost for a while", began, "")


def joined(story: Story) -> Path:
    """All sessions as one."""
    began = time.monotonic()
    target = story.hosts[2].disk / "job.stepscope"
    slow = "worker 1 holds the other back"
    said = story.hosts[2].tool("merge", story.url, "--key-file", str(story.key), "-o", str(target))
    (story.pictures / f"{story.job}-report.txt").write_text(said)
    names = ("ps 0", "worker 0", "worker 1") if story.job == "ps" else ("worker 0", "worker 1")
    story.tell(
        "merge shows one report of all tasks", began, ", ".join(names), held=all(f"{name}:" in said for name in names)
    )
    same, held = _story_facts.joint(said, story.job)
    story.tell("it says what is the same over the hosts", began, same, held=held)
    found = [" ".join(words) for words in re.findall(r"^\d+ (\w+) +([A-Z]{3}\d{3}) ", said, re.MULTILINE)]
    story.tell("its findings", began, ", ".join(found), held=(slow in said) == (story.job == "mirrored"))
    return target


def shown(page: Page) -> list[object]:
    """The joint timeline, whole and at the trace, as told and as drawn."""
    page.get_by_role("link", name="Timeline").click()
    told = wait_for(lambda: (now := page.evaluate(TOLD))["state"] == "ready" and not now["renewing"] and now, "a build")
    found: list[object] = [told, _rests(page)]
    marks = page.get_by_role("button", name=re.compile("^Op trace at"))
    if marks.count():
        marks.first.click()
        page.wait_for_url(re.compile("from="))
        found.append(_rests(page))
    return found


def _rests(page: Page) -> object:
    """What is drawn once several looks see the same."""
    seen: list[object] = []

    def look() -> object:
        seen.append(page.evaluate(PICTURE))
        return seen[-1] if len(seen) >= LOOKS and all(one == seen[-1] for one in seen[-LOOKS:]) else None

    return wait_for(look, "a timeline that rests")


@contextmanager
def viewed(story: Story, session: Path, name: str) -> Iterator[str]:
    """``stepscope view`` of a session on the third host."""
    host = story.hosts[2]
    server = host.start([str(STEPSCOPE), "view", str(session), "--port", "0"], name, STEPSCOPE_TOKEN=TOKEN)
    wait_for(lambda: b"http" in host.place.out(name).read_bytes(), "view")
    said = re.search(r"(http://\S+?)/?(\?token|\s|/sessions)", host.place.out(name).read_text())
    try:
        yield said[1] if said is not None else ""
    finally:
        server.terminate()


def read(story: Story, playwright: Playwright, session: Path) -> None:
    """The joint session in the page, packed, and the same opened elsewhere."""
    packed = story.folder / "elsewhere" / "job.stepscope.zip"
    packed.parent.mkdir()
    began = time.monotonic()
    with viewed(story, session, "view") as url, tab(playwright, story.hosts[2], f"{url}/?token={TOKEN}") as page:
        page.get_by_role("link", name="job", exact=True).first.click()
        page.get_by_role("heading").first.wait_for()
        page.wait_for_timeout(2000)
        story.shot(page, "overview")
        text = page.locator("main, body").first.inner_text()
        story.tell("the joint session opens in the page", began, f"{len(text)} letters")
        began = time.monotonic()
        before = shown(page)
        story.shot(page, "trace")
        for what, held, said in _story_facts.facts(msgspec.convert(before[0], Timeline), story.job):
            story.tell(what, began, said, held=held)
        page.get_by_role("link", name="Timeline").click()
        _rests(page)
        story.shot(page, "timeline")
        began = time.monotonic()
        with page.expect_download() as download:
            page.get_by_role("link", name="Download").click()
        download.value.save_as(packed)
        story.tell("packed from the page", began, f"{packed.stat().st_size / 1e6:.1f} MB")
    began = time.monotonic()
    for number, path in enumerate((session, story.folder / "gathered", *(one.sessions for one in story.hosts[:2]))):
        path.rename(story.folder / f"away-{number}")
    with viewed(story, packed, "elsewhere") as url, tab(playwright, story.hosts[2], f"{url}/?token={TOKEN}") as page:
        page.get_by_role("link", name="job", exact=True).first.click()
        after = shown(page)
        story.tell("opened elsewhere, told and drawn the same", began, f"{len(after)} views", held=before == after)


def told(job: str, playwright: Playwright, keep: Path) -> list[Step]:
    """One story."""
    network = Network(paths={"*": OneWay(delay_s=ONE_WAY_S)})
    with (
        tempfile.TemporaryDirectory(prefix="story-", ignore_cleanup_errors=True) as scratch,
        tempfile.TemporaryDirectory(prefix="story-net-") as net,
        _hosts.hosts(3, network, Path(net)) as hosts,
        _story_bed.machines([_whole_hosts.made(host, Path(scratch)) for host in hosts]) as machines,
    ):
        story = Story(job=job, hosts=machines, network=Path(net), folder=Path(scratch), pictures=keep)
        try:
            story.enable()
            story.start()
            live(story, playwright)
            lossy(story)
            story.end()
            read(story, playwright, joined(story))
        except (Error, OSError, RuntimeError, LookupError, ValueError) as error:  # what was seen is the result
            story.tell(
                "the story goes on", time.monotonic(), f"{type(error).__name__}: {error}".splitlines()[0], held=False
            )
        finally:
            shutil.copytree(scratch, keep / job, dirs_exist_ok=True, ignore=shutil.ignore_patterns("venv", "cache"))
        return story.steps


def table(job: str, steps: Sequence[Step]) -> list[str]:
    """The story's table."""
    rows = [f"| {one.what} | {'yes' if one.held else '**no**'} | {one.seconds:.0f} | {one.said} |" for one in steps]
    return ["", f"## {job}", "", "| step | seen | s | what |", "|---|---|---:|---|", *rows]


def main() -> int:
    """Tell the stories and print the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", default="ps,mirrored")
    parser.add_argument("--keep", type=Path, default=ROOT / "build" / "story-hosts", help="pictures and sessions")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    options = parser.parse_args()
    why = _hosts.why_not()
    if why:
        print(f"not here: {why}")
        return 0
    options.keep.mkdir(parents=True, exist_ok=True)
    lines, held = [HEAD], True
    with sync_playwright() as playwright:
        for job in options.jobs.split(","):
            steps = told(job, playwright, options.keep)
            lines += table(job, steps)
            held = held and all(one.held for one in steps)
    lines += [line for name, what in _story_facts.SHOWN for line in ("", f"![{what}](../images/story-{name}.png)")]
    lines += [
        "",
        f"{os.cpu_count()} cores; load {os.getloadavg()[1]:.1f} in the last five minutes, in part the jobs.",
        "",
    ]
    text = "\n".join([*lines, NOTES])
    print(text)
    if options.write:
        PAGE.write_text(text)
        _story_facts.keep_pictures(options.keep, IMAGES)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
