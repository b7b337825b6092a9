"""A recorded session, a live job, and the application over both; no TensorFlow."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from starlette.testclient import TestClient

import stepscope
from stepscope.server.open_sessions import OpenSessions
from stepscope.server.session_catalogue import SessionCatalogue
from stepscope.server.session_labels import SessionLabels
from stepscope.server.timelines.kept_timelines import Timelines
from stepscope.web.application import create
from stepscope.web.operation import Hub
from stepscope.web.settings import Access

from .recorded import Recorded, fed, fit, looks, native, write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from starlette.types import ASGIApp

SOURCE = Path(stepscope.__file__).resolve().parent.parent
TOKEN = "0123456789abcdef0123456789abcdef"
PORT = 7330
PATIENCE_S = 120.0
FIT = Path(__file__).parents[1] / "run" / "programs" / "long_fit.py"
PROGRAM = """
import os, sys, time, stepscope

def log_everything(step):
    time.sleep(0.004)
    stepscope.metric("loss", 1.0 / (step + 1))

print("ready", flush=True)
step = 0
while step < int(sys.argv[1]) and not os.path.exists("stop"):
    stepscope.step()
    with stepscope.span("work"):
        time.sleep(0.004)
    log_everything(step)
    step += 1
"""


def environment(**more: str) -> dict[str, str]:
    """Of a process that finds this stepscope, and whose jobs nothing else measures."""
    dropped = ("STEPSCOPE", "VIRTUAL_ENV", "CONDA_PREFIX")
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(dropped)}
    return {**inherited, "PYTHONPATH": str(SOURCE), **more}


def command(*args: str) -> list[str]:
    """A command line of stepscope."""
    return [sys.executable, "-m", "stepscope", *args]


def answer(url: str, **headers: str) -> tuple[int, bytes]:
    """Status and body."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=PATIENCE_S) as said:
            return said.status, said.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def wait_for(what: Callable[[], object], why: str) -> object:
    """Wait until ``what`` gives something true."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if found := what():
            return found
        time.sleep(0.05)
    raise AssertionError(f"waited {PATIENCE_S} s for {why}")


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """A session of 300 steps with a slow callback."""
    return write(fit(), tmp_path_factory.mktemp("at-rest") / "slow.stepscope")


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Recorded, Recorded]:
    """Two sessions with native stacks and looks at memory; the callback of the second takes 2 ms instead of 7."""
    folder = tmp_path_factory.mktemp("pair")
    return (
        write(fit(), folder / "before.stepscope", profiles=[native()], looked=looks()),
        write(fit(callback_ms=2, draws_every=4), folder / "after.stepscope", profiles=[native()], looked=looks()),
    )


@pytest.fixture(scope="session")
def starving(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """A session whose steps wait for a map."""
    return write(fed(), tmp_path_factory.mktemp("fed") / "starving.stepscope")


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The pid of a job that runs and has published a status."""
    folder = tmp_path_factory.mktemp("live")
    (folder / "endless.py").write_text(PROGRAM)
    job = subprocess.Popen(
        command("run", "-q", "--session", "endless.stepscope", "endless.py", "1000000"),
        cwd=folder,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    catalogue = SessionCatalogue([])

    def published() -> int:
        session = str(folder / "endless.stepscope")
        return next((j.pid for j in catalogue.running() if j.status.session == session and j.status.updated_unix_s), 0)

    try:
        yield int(str(wait_for(published, "the live job's status")))
    finally:
        (folder / "stop").touch()
        try:
            job.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            job.send_signal(signal.SIGKILL)
            job.wait()


@pytest.fixture
def training(tmp_path: Path) -> Iterator[int]:
    """The pid of a Keras fit that runs, measured; it is killed, as the ops of one that ends well are measured again."""
    told = tmp_path / "told"
    words = str(FIT), str(told), str(tmp_path / "no-profiler")  # it rests in its steps: the browser needs a CPU, too
    job = subprocess.Popen(
        command("run", "-q", "--budget", "50%", "--session", "fit.stepscope", *words),
        cwd=tmp_path,
        env=environment(TF_CPP_MIN_LOG_LEVEL="2"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    catalogue = SessionCatalogue([])
    session = str(tmp_path / "fit.stepscope")

    def stepping() -> int:
        return next((j.pid for j in catalogue.running() if j.status.session == session and j.status.tasks), 0)

    pid = 0
    try:
        pid = int(str(wait_for(stepping, "the training's tasks")))
        yield pid
    finally:
        told.touch()
        with contextlib.suppress(ProcessLookupError):
            if pid:
                os.kill(pid, signal.SIGKILL)
        job.wait(PATIENCE_S)


@pytest.fixture(scope="session")
def access() -> Access:
    """With a known token."""
    return Access(port=PORT, token=TOKEN)


@pytest.fixture(scope="session")
def app(recorded: Recorded, access: Access, tmp_path_factory: pytest.TempPathFactory) -> ASGIApp:
    """The application over the recorded session's folder."""
    timelines = Timelines(tmp_path_factory.mktemp("timelines"))
    labels = SessionLabels(tmp_path_factory.mktemp("state") / "labels.json")
    catalogue = SessionCatalogue([recorded.path.parent], labels)
    return create(
        Hub(catalogue=catalogue, open_sessions=OpenSessions(), timelines=timelines),
        access,
    )


@pytest.fixture(scope="session")
def client(app: ASGIApp) -> TestClient:
    """Who knows the token."""
    return browser(app, headers={"Authorization": f"Bearer {TOKEN}"})


def browser(app: ASGIApp, **options: object) -> TestClient:
    """A client of the application; without options it knows nothing."""
    return TestClient(app, base_url=f"http://127.0.0.1:{PORT}", follow_redirects=False, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def url(
    recorded: Recorded,
    pair: tuple[Recorded, Recorded],
    starving: Recorded,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    """The address of a server that a user has started."""
    places = [recorded.path.parent, *(one.path for one in (*pair, starving))]
    with viewed(places, tmp_path_factory.mktemp("home")) as at:
        yield at


@contextlib.contextmanager
def viewed(places: Sequence[Path], home: Path) -> Iterator[str]:
    """The address of a server over these sessions; its cache and state lie in ``home``."""
    server = subprocess.Popen(
        command("view", *map(str, places), "--port", "0"),
        env=environment(STEPSCOPE_TOKEN=TOKEN, XDG_CACHE_HOME=str(home / "cache"), XDG_STATE_HOME=str(home / "state")),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    try:
        yield server.stdout.readline().strip().rstrip("/")
    finally:
        server.send_signal(signal.SIGINT)
        _, problems = server.communicate(timeout=PATIENCE_S)
    assert server.returncode == 0
    assert problems == ""
