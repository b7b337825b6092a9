"""The timeline page on a large session: first opening, warm opening, frames, tiles, search and statistics, memory.

A synthetic session of one op trace: 100 threads, three spans deep (step, ten ops, forty kernels each), 1085 names. The
server is ``stepscope view``, the browser the system's chromium without a window and without a GPU. ``Asked`` is what
the page shall reach on an unloaded machine; the load while it ran stands above the table.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from urllib.parse import urlparse

import msgspec
import numpy as np
from playwright.sync_api import Browser, Page, sync_playwright

from stepscope.model.api.timeline import Timeline
from stepscope.model.session.session import Manifest
from stepscope.store import optrace
from stepscope.store.writer import SessionWriter
from stepscope.tables.layout import key_of
from stepscope.tables.optrace import Events, Line, LineKind, Metas, OpTrace, Plane, PlaneKind, TraceSource

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "ui.md"
HEAD = """# The timeline page on a large session

Printed by `make bench-ui ARGS=--write`. {about}

| | asked | seen |
|---|---|---|
"""
TOKEN = "0123456789abcdef0123456789abcdef"
THREADS, OPS, KERNELS = 100, 10, 40
A_STEP = 1 + OPS + OPS * KERNELS
NAMES = 1085
STEP_NS = 180_000_000
TILES = 200
PANS = 40
ROUNDS = 5
DRAWN = "() => document.querySelector('.tl-canvas')?.dataset.state === 'drawn'"
SINCE = "() => performance.now()"
Row = tuple[str, str, str]


def write(folder: Path, spans: int) -> Path:
    """Write a session with ``spans`` spans."""
    path = folder / "large.stepscope"
    path.mkdir()
    steps = max(1, spans // (THREADS * A_STEP))
    rng = np.random.default_rng(1)
    starts, durs, metas = [], [], []
    for _ in range(THREADS):
        begin = np.arange(steps, dtype=np.int64) * STEP_NS
        op = (begin[:, None] + np.arange(OPS) * (STEP_NS // OPS)).ravel()
        slot = STEP_NS // OPS // (KERNELS + 1)
        kernel = (op[:, None] + 1 + np.arange(KERNELS) * slot).ravel()
        start = np.concatenate([begin, op, kernel])
        dur = np.concatenate(
            [
                np.full(len(begin), STEP_NS - 1_000),
                np.full(len(op), STEP_NS // OPS - 500),
                rng.integers(slot // 8, slot - 2, len(kernel)),
            ]
        )
        meta = np.concatenate(
            [np.zeros(len(begin), np.int64), 1 + np.arange(len(op)) % 84, 85 + rng.integers(0, NAMES - 85, len(kernel))]
        )
        order = np.lexsort((-dur, start))
        starts.append(start[order])
        durs.append(dur[order])
        metas.append(meta[order].astype(np.int32))
    rows = len(starts[0])
    names = np.arange(1, NAMES + 1, dtype=np.int32)
    trace = OpTrace(
        source=TraceSource(format="test", name="synthetic"),
        planes=(Plane(index=0, name="/host:CPU", kind=PlaneKind.HOST, events=rows * THREADS),),
        lines=tuple(
            Line(index=i, plane=0, id=i, name=f"thread {i}", kind=LineKind.THREAD, first=i * rows, last=(i + 1) * rows)
            for i in range(THREADS)
        ),
        events=Events(
            start_ns=np.concatenate(starts),
            dur_ns=np.concatenate(durs),
            line=np.repeat(np.arange(THREADS, dtype=np.int32), rows),
            meta=np.concatenate(metas),
        ),
        metas=Metas(
            name=names,
            op_name=np.zeros(NAMES, np.int32),
            op_type=np.zeros(NAMES, np.int32),
            category=np.where(np.arange(NAMES) < 85, 1, 2).astype(np.int8),
            plane=np.zeros(NAMES, np.int32),
        ),
        strings=("", *(f"model/block_{i % 97}/op_{i}:Kernel" for i in range(NAMES))),
    )
    optrace.write(path, "ops-001", trace)
    SessionWriter(path).write_manifest(Manifest(id="ui", name="large", state="finished", ended_ns=steps * STEP_NS))
    return path


class Server:
    """``stepscope view`` over one session."""

    def __init__(self, session: Path, cache: Path) -> None:
        """Start it."""
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "stepscope", "view", str(session), "--port", "0"],
            env={**os.environ, "STEPSCOPE_TOKEN": TOKEN, "XDG_CACHE_HOME": str(cache)},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip().partition("/sessions/")[0]
        self.place = urlparse(self.url)
        self.path = f"/sessions/{key_of(session.resolve())}"

    def get(self, path: str) -> tuple[bytes, float]:
        """Answer and its seconds."""
        connection = http.client.HTTPConnection(str(self.place.hostname), self.place.port)
        began = time.perf_counter()
        connection.request("GET", f"/api/v1{self.path}{path}", headers={"Authorization": f"Bearer {TOKEN}"})
        answer = connection.getresponse()
        content = answer.read()
        took = time.perf_counter() - began
        connection.close()
        if answer.status != http.HTTPStatus.OK:
            raise RuntimeError(f"{path}: {answer.status} {content[:200]!r}")
        return content, took

    def memory_mb(self) -> float:
        """Anonymous memory of the server."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024

    def stop(self) -> None:
        """End it."""
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=60)


@contextlib.contextmanager
def tab(browser: Browser, server: Server) -> Iterator[Page]:
    """A page with the token and an empty cache."""
    context = browser.new_context(viewport={"width": 1500, "height": 1000})
    context.set_default_timeout(300_000)
    page = context.new_page()
    page.goto(f"{server.url}/assets/icon.svg?token={TOKEN}")
    yield page
    context.close()


def opened(page: Page, server: Server, query: str = "") -> float:
    """Seconds from navigation until everything in view is drawn."""
    page.goto(f"{server.url}{server.path}/timeline{query}", wait_until="commit")
    page.wait_for_function(DRAWN)
    return float(page.evaluate(SINCE)) / 1000


def frames(page: Page) -> tuple[float, float]:
    """Median milliseconds of script, and marks, per frame while panning."""
    page.locator(".tl-stage").focus()
    found: list[tuple[float, int]] = []
    for number in range(PANS):
        page.keyboard.press("a" if number % 2 else "d")
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        seen = page.evaluate("() => ({...document.querySelector('.tl-canvas').dataset})")
        found.append((float(seen["ms"]), int(seen["marks"])))
    return median(ms for ms, _ in found), median(marks for _, marks in found)


def tiles(server: Server, timeline: Timeline, workers: int) -> list[float]:
    """Milliseconds of random tiles at random zooms."""
    rng = random.Random(workers)
    asked = []
    for _ in range(TILES):
        level = rng.randrange(10, 26)
        last = max(1, timeline.end_ns >> (level + 10))
        lanes = sum(track.lanes for track in timeline.tracks)
        group = rng.randrange(-(-lanes // timeline.lanes_per_tile))
        asked.append(f"/timeline/tile?build={timeline.build}&level={level}&tile={rng.randrange(last)}&group={group}")
    with ThreadPoolExecutor(workers) as pool:
        return [1000 * took for _, took in pool.map(server.get, asked)]


def p95(values: Sequence[float]) -> float:
    """The 95th percentile."""
    return float(np.quantile(values, 0.95))


def asked_often(ask: Callable[[], tuple[bytes, float]]) -> float:
    """Median milliseconds of a request."""
    return median(1000 * ask()[1] for _ in range(ROUNDS))


def measure(session: Path, cache: Path) -> Iterator[Row]:
    """All rows of the table."""
    with sync_playwright() as playwright:
        path = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        server = Server(session, cache)
        with tab(browser, server) as page:
            yield "first opening, without levels", "6 s", f"{opened(page, server):.1f} s"
        server.stop()
        server = Server(session, cache)
        with tab(browser, server) as page:
            took = opened(page, server)
            yield "process start to pixels, with levels", "1.5 s", f"{time.perf_counter() - server.began:.2f} s"
            warm = [took]
        for _ in range(ROUNDS - 1):
            with tab(browser, server) as page:
                warm.append(opened(page, server))
        yield "navigation to pixels, with levels", "0.5 s", f"{median(warm):.2f} s"
        timeline = msgspec.json.decode(server.get("/timeline")[0], type=Timeline)
        end = timeline.end_ns / 1e9
        with tab(browser, server) as page:
            opened(page, server, f"?from={end * 0.3}&to={end * 0.4}")
            ms, marks = frames(page)
            yield f"script of a frame, {marks:,.0f} marks without labels", "4 ms for 20,000", f"{ms:.1f} ms"
            opened(page, server, f"?from={end * 0.3}&to={end * 0.3 + 0.02}")
            ms, marks = frames(page)
            yield f"script of a frame, {marks:,.0f} marks with labels", "16 ms", f"{ms:.1f} ms"
        yield "tile p95, alone", "20 ms", f"{p95(tiles(server, timeline, 1)):.0f} ms"
        yield "tile p95, four at once", "50 ms", f"{p95(tiles(server, timeline, 4)):.0f} ms"
        build = f"build={timeline.build}"
        yield (
            "search for a name",
            "300 ms",
            f"{asked_often(lambda: server.get(f'/timeline/search?{build}&q=op_{NAMES - 1}')):.0f} ms",
        )
        yield (
            "statistics of a tenth of the run",
            "300 ms",
            f"{asked_often(lambda: server.get(_statistics(build, end * 0.3, end * 0.4))):.0f} ms",
        )
        yield (
            "statistics of the whole run",
            "300 ms",
            f"{asked_often(lambda: server.get(f'/timeline/statistics?{build}')):.0f} ms",
        )
        yield "memory of the server (anonymous)", "300 MB", f"{server.memory_mb():.0f} MB"
        server.stop()
        browser.close()


def _statistics(build: str, begin_s: float, end_s: float) -> str:
    return f"/timeline/statistics?{build}&from_ns={int(begin_s * 1e9)}&to_ns={int(end_s * 1e9)}"


def main() -> None:
    """Measure, print, and with --write store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spans", type=int, default=10_000_000)
    parser.add_argument("--write", action="store_true", help=f"store the table in {PAGE.name}")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stepscope-ui-") as folder:
        session = write(Path(folder), options.spans)
        rows = []
        for row in measure(session, Path(folder) / "cache"):
            rows.append(row)
            print(*row, sep=" | ", flush=True)
        kept = sum(f.stat().st_size for f in (Path(folder) / "cache").rglob("*") if f.is_file()) / 1e6
    rows.append(("cache on disk", "", f"{kept:.0f} MB"))
    load = "/".join(f"{value:.0f}" for value in os.getloadavg())
    about = f"{options.spans:,} spans in {3 * THREADS} lanes; {os.cpu_count()} CPUs, load {load} at the end."
    text = HEAD.format(about=about) + "".join(f"| {' | '.join(row)} |\n" for row in rows)
    print(text)
    if options.write:
        PAGE.write_text(text)


if __name__ == "__main__":
    main()
