"""Five tasks on the page, as somebody does them who knows what he wants: clicks, seconds, and the right answer.

Usage: page_tasks.py [--keep FOLDER] [--write]

Which layer is the slowest; which stage of the input blocks; which of two runs is faster; which op of a step takes
longest in a job that runs, after a capture; which of 40 jobs waits for its disk. Real sessions of
``examples/demo_train.py`` and of the same program with its augmentation written with TensorFlow ops, and a real Keras
fit that runs; the 40 jobs are processes that sleep, with statuses as sidecars publish them. All names have 225
characters. Each task is done in windows of 1440, 1024 and 800 pixels, light and dark, and begins at the list of
sessions and jobs. What must hold: at most six clicks (typing a word counts as one), the answer that the REST
interface's numbers give, no page wider than its window, nothing serious in axe.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from statistics import median
from typing import Literal, TypeVar

import msgspec
from playwright.sync_api import Locator, Page, sync_playwright

from stepscope.model.api.browsing import InputShown
from stepscope.model.api.rest_api import SessionDetail
from stepscope.model.api.status import LiveFinding, LiveShare, Status
from stepscope.model.report.op_table import OpTable
from stepscope.native import process_stat
from stepscope.tables.layout import key_of
from stepscope.wire import run_directory
from stepscope.wire.env import JOB_NAME, STATUS_NAME

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "page-tasks.md"
DEMO = ROOT / "examples" / "demo_train.py"
FIT = ROOT / "tests" / "run" / "programs" / "long_fit.py"
TOKEN = "0123456789abcdef0123456789abcdef"
LETTERS = 225
WIDTHS = (1440, 1024, 800)
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
JOBS = 40
MOST_CLICKS = 6
PATIENCE_MS = 300_000
FRESH_S = 5.0
SLOW = """    picture = tf.numpy_function(augment, [picture], tf.float32)
    picture.set_shape((SIDE, SIDE, 3))
"""
FAST = """    picture = tf.image.random_crop(tf.image.convert_image_dtype(picture, tf.float32), (SIDE, SIDE, 3))
    picture = tf.image.random_contrast(tf.image.random_flip_left_right(picture), 0.7, 1.3)
"""
Answer = TypeVar("Answer")
AXE = files("axe_playwright_python") / "axe.min.js"
SERIOUS = """async () => (await axe.run({ resultTypes: ["violations"] })).violations
  .filter((fault) => fault.impact === "serious" || fault.impact === "critical")
  .map((fault) => fault.id)"""
WIDER = "() => document.documentElement.scrollWidth - innerWidth"
HEAD = """# Five tasks on the page

Printed by `make bench-page-tasks ARGS=--write`. Real sessions and a real job that runs; the 40 jobs have statuses as
sidecars publish them. Names have 225 characters. Each task begins at the list of jobs and sessions and is done six
times: in windows of 1440, 1024 and 800 pixels, light and dark. Typing counts as a click. Seconds are those of a script
that clicks at once, so they are the page's, not a reader's; the load of the machine is in them ({load}).

| task | clicks | seconds (median, most) | right answers | wider than the window | serious in axe |
|---|---|---|---|---|---|
"""


@dataclass
class Visit:
    """One task in one window."""

    page: Page
    url: str
    clicks: int = 0

    def click(self, what: Locator) -> None:
        """Click, and count it."""
        self.clicks += 1
        what.click()

    def write(self, what: Locator, word: str) -> None:
        """Type a word, and count it as a click."""
        self.clicks += 1
        what.fill(word)

    def ask(self, path: str, kind: type[Answer]) -> Answer:
        """An answer of the REST interface."""
        asked = urllib.request.Request(f"{self.url}/api/v1{path}", headers={"Authorization": f"Bearer {TOKEN}"})
        with urllib.request.urlopen(asked) as answer:
            return msgspec.json.decode(answer.read(), type=kind)


@dataclass(frozen=True)
class Things:
    """What the tasks are about."""

    slow: Path
    fast: Path
    running: Path
    disk: str


@dataclass
class Row:
    """One line of the table."""

    title: str
    clicks: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    right: list[bool] = field(default_factory=list)
    wide: int = 0
    serious: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether everything that must hold does."""
        return all(self.right) and max(self.clicks) <= MOST_CLICKS and not self.wide and not self.serious

    def text(self) -> str:
        """As a line of the table."""
        most = f"{median(self.seconds):.1f}, {max(self.seconds):.1f}"
        right = f"{sum(self.right)} of {len(self.right)}"
        faults = ", ".join(sorted(set(self.serious))) or "0"
        return f"| {self.title} | {max(self.clicks)} | {most} | {right} | {self.wide} | {faults} |"


def long(name: str) -> str:
    """A name of 225 letters."""
    return name + "_" + "x" * (LETTERS - len(name) - 1)


def of_session(visit: Visit, session: Path, page: str) -> None:
    """From the list to a page of a session."""
    visit.click(visit.page.locator(f'a[href="/sessions/{key_of(session)}"]').first)
    visit.click(visit.page.get_by_role("link", name=page, exact=True))


def slowest_layer(visit: Visit, things: Things) -> bool:
    """The first row of the ops by layer that is one."""
    of_session(visit, things.slow, "Ops")
    visit.click(visit.page.get_by_role("button", name="By layer"))
    visit.page.wait_for_url("**by=layer**")
    rows = visit.page.locator("tbody tr td b")
    rows.first.wait_for()
    said = next(name for name in rows.all_inner_texts() if name not in {"no layer", "all others"})
    sums: dict[str, int] = {}
    for maker in visit.ask(f"/sessions/{key_of(things.slow)}/ops", OpTable).makers:
        if maker.layer:
            sums[maker.layer] = sums.get(maker.layer, 0) + maker.ns
    return said == max(sums, key=lambda layer: sums[layer])


def blocking_stage(visit: Visit, things: Things) -> bool:
    """The stage with the badge."""
    of_session(visit, things.slow, "Input")
    said = visit.page.locator("tr.mend b").first.inner_text()
    tree = visit.ask(f"/sessions/{key_of(things.slow)}/input", InputShown).tree
    (mend,) = [stage for stage in tree.stages if stage.mend] if tree is not None else [None]
    return mend is not None and said == mend.name and mend.function == "load"


def compared(visit: Visit, things: Things) -> bool:
    """Two ticked; the sentence at the head."""
    for session in (things.slow, things.fast):
        visit.click(visit.page.get_by_label(f"Compare {session.stem}"))
    visit.click(visit.page.get_by_role("link", name="Compare the two ticked"))
    said = visit.page.locator(".answer").first.inner_text()
    rates = [
        visit.ask(f"/sessions/{key_of(one)}/summary", SessionDetail).summary.throughput.samples_per_s or 0.0
        for one in (things.slow, things.fast)
    ]
    return said.startswith("B is faster" if rates[1] > rates[0] else "B is slower")


def longest_op(visit: Visit, things: Things) -> bool:
    """A capture of the running job; the first row."""
    of_session(visit, things.running, "Ops")
    visit.click(visit.page.get_by_role("button", name="Capture now"))
    visit.page.locator(".ask .capture-done").wait_for()
    rows = visit.page.locator("tbody tr td b")
    rows.first.wait_for()
    said = rows.first.inner_text()
    ops = visit.ask(f"/sessions/{key_of(things.running)}/ops", OpTable).ops
    return said == max(ops, key=lambda op: op.ns).name


def waits_for_disk(visit: Visit, things: Things) -> bool:
    """One word in the search."""
    visit.write(visit.page.get_by_label("Search"), "disk")
    rows = visit.page.locator('section[aria-labelledby="jobs-title"] tbody tr')
    visit.page.wait_for_function(
        "() => document.querySelectorAll('[aria-labelledby=jobs-title] tbody tr').length === 1"
    )
    return rows.first.locator(".named").inner_text().startswith(things.disk)


TASKS: dict[str, Callable[[Visit, Things], bool]] = {
    "slowest layer": slowest_layer,
    "stage of the input that blocks": blocking_stage,
    "which of two runs is faster": compared,
    "capture in a running job, longest op of its step": longest_op,
    f"which of {JOBS} jobs waits for its disk": waits_for_disk,
}


def environment(**more: str) -> dict[str, str]:
    """Of our processes."""
    return {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "STEPSCOPE_TOKEN": TOKEN, **more}


def record(folder: Path) -> tuple[Path, Path]:
    """Sessions of the demo and of its mended version."""
    source = DEMO.read_text()
    assert SLOW in source
    made = []
    for name, program in (("slow", source), ("mended", source.replace(SLOW, FAST))):
        script = folder / f"train_{name}.py"
        script.write_text(program)
        session = folder / f"{long(name)}.stepscope"
        if not session.exists():
            words = ["run", "-q", "--budget", "20%", "--session", str(session), "--", sys.executable, str(script)]
            subprocess.run([sys.executable, "-m", "stepscope", *words], env=environment(), cwd=folder, check=True)
        made.append(session.resolve())
    return made[0], made[1]


@contextlib.contextmanager
def training(folder: Path) -> Iterator[Path]:
    """A fit that runs, measured."""
    told, session = folder / "told", folder / f"{long('running')}.stepscope"
    told.unlink(missing_ok=True)
    shutil.rmtree(session, ignore_errors=True)
    words = ["run", "-q", "--budget", "50%", "--session", str(session), str(FIT), str(told)]
    job = subprocess.Popen([sys.executable, "-m", "stepscope", *words], env=environment(), stdout=subprocess.PIPE)
    assert job.stdout is not None
    if not job.stdout.readline():
        raise RuntimeError(f"the job ended: {job.wait()}")
    try:
        yield session.resolve()
    finally:
        told.touch()
        job.communicate()


@contextlib.contextmanager
def sleeping() -> Iterator[str]:
    """Forty jobs that sleep, one of which is said to wait for its disk; gives its name."""
    jobs, runs, stop = [], [], threading.Event()
    why = "the disk sdb is busy 98 % of the time and delivers 96 MB/s; steps wait for input 71 % of the time"
    try:
        for number in range(JOBS):
            jobs.append(subprocess.Popen(["sleep", "100000"]))
            me = (jobs[-1].pid, process_stat.start_ticks(jobs[-1].pid))
            run = Path(run_directory.make("", time.monotonic_ns(), me, 1 << 10))
            runs.append(run)
            name = long(f"job-{number:02d}") + ".py"
            late = number == JOBS * 2 // 3
            command = ("python", name, "--model", f"resnet-{number}")
            owner = {"pid": me[0], "start_ticks": me[1], "launcher_pid": 0, "command": list(command), "sources": False}
            run_directory.write_json(str(run / JOB_NAME), {**owner, "mode": "enable", "cwd": "/"})
            parts = (LiveShare(component="input-wait", ratio=0.71 if late else 0.02 + number / 1_000),)
            other = LiveFinding(code="HST004", title="a callback draws on every batch", severity="low", cost_ratio=0.04)
            disk = LiveFinding(code="DSK001", title=why, severity="high", cost_ratio=0.7)
            now_s = time.time()
            status = Status(
                command=command,
                framework="tensorflow 2.21.0",
                state="running",
                phase="training",
                started_unix_s=now_s - 600,
                updated_unix_s=now_s,
                analysed_unix_s=now_s,
                steps=1_000 + number,
                steps_per_s=10.0,
                anatomy=parts,
                findings=1,
                top=disk if late else other,
            )
            (run / STATUS_NAME).write_bytes(msgspec.json.encode(status))

        def fresh() -> None:
            while not stop.wait(FRESH_S):
                for run in runs:
                    os.utime(run / STATUS_NAME)

        threading.Thread(target=fresh, daemon=True).start()
        yield long(f"job-{JOBS * 2 // 3:02d}") + ".py"
    finally:
        stop.set()
        for job in jobs:
            job.kill()
            job.wait()
        for run in runs:
            run_directory.remove(str(run))


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of ``stepscope view`` over the folder."""
    home = environment(XDG_CACHE_HOME=str(folder / "cache"), XDG_STATE_HOME=str(folder / "state"))
    command = [sys.executable, "-m", "stepscope", "view", str(folder), "--port", "0"]
    server = subprocess.Popen(command, env=home, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        yield server.stdout.readline().strip().rstrip("/")
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate()


def measure(url: str, things: Things) -> list[Row]:
    """Every task in every window."""
    rows = {title: Row(title) for title in TASKS}
    with sync_playwright() as playwright:
        path = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        for width in WIDTHS:
            for scheme in SCHEMES:
                context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
                context.set_default_timeout(PATIENCE_MS)
                page = context.new_page()
                for title, task in TASKS.items():
                    page.goto(f"{url}/?token={TOKEN}")
                    page.locator("tbody tr").first.wait_for()
                    visit = Visit(page, url)
                    began = time.perf_counter()
                    right = task(visit, things)
                    row = rows[title]
                    row.seconds.append(time.perf_counter() - began)
                    row.clicks.append(visit.clicks)
                    row.right.append(right)
                    row.wide += page.evaluate(WIDER) > 0
                    page.evaluate(AXE.read_text())
                    row.serious += page.evaluate(SERIOUS)
                    print(f"{width} {scheme}: {row.text()}", flush=True)
                context.close()
        browser.close()
    return list(rows.values())


def main() -> None:
    """Print, perhaps write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, help="folder for the sessions, which are used again")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = asked.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(exist_ok=True)
        slow, fast = record(folder)
        running = stack.enter_context(training(folder))
        disk = stack.enter_context(sleeping())
        url = stack.enter_context(served(folder))
        rows = measure(url, Things(slow, fast, running, disk))
    load = f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}"
    text = HEAD.format(load=load) + "".join(f"{row.text()}\n" for row in rows)
    sys.stdout.write(text)
    if asked.write:
        PAGE.write_text(text)
    sys.exit(not all(row.holds for row in rows))


if __name__ == "__main__":
    main()
