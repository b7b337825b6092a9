"""Makes the pictures of docs/images from a real session: offline report, overview, timeline.

Usage: pictures.py [--session FOLDER]

Runs ``examples/demo_train.py`` under ``stepscope run``, or takes a session of it, and photographs what a user sees with
the system's chromium. Colours are reduced to a palette, so that all pictures together stay below ``MOST_BYTES``.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from stepscope.tables.layout import key_of

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
MOST_BYTES = 300_000
COLOURS = 64
TOKEN = "0123456789abcdef0123456789abcdef"
COMMAND = ("python", "demo_train.py")
DRAWN = "() => document.querySelector('.tl-canvas')?.dataset.state === 'drawn'"


def record(folder: Path) -> Path:
    """The session of a run of the example."""
    shutil.copy(ROOT / "examples" / COMMAND[-1], folder)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    words = [sys.executable, "-m", "stepscope", "run", "-q", "--session", "demo_train.stepscope", *COMMAND]
    environment = {**os.environ, "PATH": path, "TF_CPP_MIN_LOG_LEVEL": "3"}
    subprocess.run(words, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    return folder / "demo_train.stepscope"


def unnamed(session: Path, copy: Path) -> Path:
    """A copy of a session that does not name the machine."""
    shutil.copytree(session, copy)
    manifest = json.loads((copy / "manifest.json").read_text())
    manifest["host"]["name"] = "a-host"
    (copy / "manifest.json").write_text(json.dumps(manifest))
    return copy


def keep(name: str, shot: bytes) -> int:
    """Write a picture with few colours; its size."""
    picture = (
        Image.open(io.BytesIO(shot))
        .convert("RGB")
        .quantize(COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    )
    picture.save(IMAGES / name, optimize=True)
    return (IMAGES / name).stat().st_size


def traced(session: Path) -> str:
    """The query of a timeline that shows some traced steps."""
    for capture in json.loads((session / "manifest.json").read_text())["captures"]:
        if capture.get("steps"):
            begin = capture["at_ns"] / 1e9
            return f"?from={begin:.3f}&to={begin + 0.35:.3f}"
    return ""


def tab(browser: Browser, width: int, height: int, scheme: str) -> Page:
    """A page of some size, light or dark."""
    dark = scheme == "dark"
    return browser.new_page(viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light")


def pages(browser: Browser, session: Path, home: Path) -> list[tuple[str, bytes]]:
    """Overview and timeline, as ``stepscope view`` serves them."""
    state = {"STEPSCOPE_TOKEN": TOKEN, "XDG_CACHE_HOME": str(home), "XDG_STATE_HOME": str(home)}
    words = [sys.executable, "-m", "stepscope", "view", str(session), "--port", "0"]
    server = subprocess.Popen(words, env={**os.environ, **state}, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    url = server.stdout.readline().strip().partition("/sessions/")[0]
    here = f"{url}/sessions/{key_of(session.resolve())}"
    found = []
    for width, height, scheme in ((1440, 900, "light"), (800, 900, "dark")):
        page = tab(browser, width, height, scheme)
        page.set_default_timeout(300_000)
        page.goto(f"{here}?token={TOKEN}")
        page.locator(".card").first.wait_for()
        page.wait_for_load_state("networkidle")
        found.append((f"page-overview-{width}.png", page.screenshot()))
        page.goto(f"{here}/timeline{traced(session)}")
        page.wait_for_function(DRAWN)
        page.wait_for_load_state("networkidle")
        page.wait_for_function(DRAWN)  # what came last is drawn, too
        found.append((f"page-timeline-{width}.png", page.screenshot()))
        page.close()
    server.send_signal(signal.SIGINT)
    server.communicate()
    return found


def reports(browser: Browser, session: Path) -> list[tuple[str, bytes]]:
    """The offline report, light from its head and dark from its charts."""
    found = []
    for scheme in ("light", "dark"):
        page = tab(browser, 1200, 800, scheme)
        page.goto((session / "report.html").resolve().as_uri())
        if scheme == "dark":
            page.get_by_role("heading", name="Step times", exact=True).evaluate(
                "heading => heading.scrollIntoView({behavior: 'instant'})"
            )
        found.append((f"report-{scheme}.png", page.screenshot()))
        page.close()
    return found


def main() -> None:
    """Make all pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--session", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        session = unnamed(asked.session or record(folder), folder / "shown" / "demo_train.stepscope")
        path = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        shots = [*reports(browser, session), *pages(browser, session, folder)]
        browser.close()
    sizes = {name: keep(name, shot) for name, shot in shots}
    for name, size in sizes.items():
        print(f"{size:8,} {name}")
    if sum(sizes.values()) > MOST_BYTES:
        sys.exit(f"{sum(sizes.values()):,} bytes in all; expected at most {MOST_BYTES:,}")


if __name__ == "__main__":
    main()
