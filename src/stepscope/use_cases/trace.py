"""The use case ``trace``: request a capture from a running job's sidecar and wait for the result."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from stepscope.diagnosis import capture_account
from stepscope.launcher import jobs
from stepscope.model.api.capture_ask import DEFAULT_WHEN_WAIT_S, CaptureAsk
from stepscope.report import capture_text
from stepscope.store.manifests import read_manifest
from stepscope.tables.errors import CaptureError, NotCaughtError, SessionError, UsageError
from stepscope.wire import commands

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stepscope.launcher.jobs import RunningJob
    from stepscope.model.api.status import LiveCapture

_LOOK_S = 0.2
_COUNTDOWN = re.compile(r"waits [\d.,]+ \w+")
"""Part of a text that changes every second: it is said once."""
BEGIN_S = 30.0
"""Time for the sidecar to load its modules before it accepts requests."""
FINISH_S = 30.0
"""Time for the sidecar of an ended job to finish."""
AFTER_WAIT_S = 60.0
"""Time for a capture that is in progress when the wait for its moment is over."""
SILENT_S = 60.0
"""Time after which a request without any response is given up."""


def trace(wanted: str, asked: Mapping[str, object], say: Callable[[str], object], timeout_s: float) -> str:
    """Have a capture made of the job that ``wanted`` names; return the text to show.

    Args:
        wanted: pid, session or script of a running job.
        asked: the options of the command; None for those not given.
        say: called with what it waits for.
        timeout_s: how long to wait for it.

    Raises:
        StepscopeError: there is no such job, it accepts no request, or the capture failed or timed out.
    """
    job = jobs.find(wanted)
    names = {"every": "every_s", "wait": "wait_s"}
    fields = {names.get(name, name): value for name, value in asked.items() if value is not None}
    if "when" in fields:
        fields.setdefault("wait_s", DEFAULT_WHEN_WAIT_S)
        timeout_s = max(timeout_s, float(str(fields["wait_s"])) + AFTER_WAIT_S)
    done = ask(job, msgspec.convert({**fields, "id": commands.new_id()}, CaptureAsk), say, timeout_s)
    return capture_text.render(done, session=job.status.session)


def check_when(asked: Mapping[str, object]) -> None:
    """Check a condition before a job is looked for.

    Raises:
        UsageError: it is none, or does not go with the other options.
    """
    from stepscope.sidecar import moment_captures  # not loaded by who lists jobs

    fields = {
        name: value for name, value in asked.items() if value is not None and name in {"kind", "task", "when", "count"}
    }
    every = asked.get("every") or 0.0
    problem = moment_captures.problem(msgspec.convert({**fields, "every_s": every, "id": "1"}, CaptureAsk))
    if problem:
        raise UsageError(problem)


def ask(job: RunningJob, wanted: CaptureAsk, say: Callable[[str], object], timeout_s: float) -> LiveCapture:
    """The first finished capture of the request; ``say`` is called with what it waits for.

    Raises:
        CaptureError: the job accepts no request, or the capture failed or timed out.
    """
    _let_begin(job, say)
    return _wait(job, send(job, wanted), say, timeout_s)


def _let_begin(job: RunningJob, say: Callable[[str], object]) -> None:
    """Wait until the sidecar of a newly started job accepts requests."""
    folder = job.run / commands.REQUESTS_NAME
    deadline = time.monotonic() + BEGIN_S
    if not folder.is_dir():
        say(f"waiting up to {BEGIN_S:g} s for the job's sidecar, which has just started")
    while not folder.is_dir() and time.monotonic() < deadline and jobs.again(job) is not None:
        time.sleep(_LOOK_S)


def send(job: RunningJob, wanted: CaptureAsk) -> str:
    """Hand the request to the job's sidecar; return its id, under which the status reports its progress.

    Raises:
        CaptureError: the job accepts no request.
    """
    folder = job.run / commands.REQUESTS_NAME
    try:
        return commands.send(str(folder), msgspec.to_builtins(wanted), wanted.id)
    except FileNotFoundError:
        raise CaptureError(
            f"{job.name} ({job.status.pid}) does not accept requests: its sidecar has just started, or is of an older "
            "stepscope; try again in a few seconds"
        ) from None
    except OSError as error:
        raise CaptureError(
            f"{folder}: {error.strerror or error}; expected one of your own jobs: stepscope ps"
        ) from error


def _wait(job: RunningJob, identity: str, say: Callable[[str], object], timeout_s: float) -> LiveCapture:
    began = heard = time.monotonic()
    latest = ""
    while True:
        time.sleep(_LOOK_S)
        now = jobs.again(job)
        if now is None:
            return _from_session(job, identity)
        mine = [capture for capture in now.status.captures if capture.request == identity]
        if mine:
            heard = time.monotonic()
            if mine[0].state == "done":
                return mine[0]
            if mine[0].state == "failed":
                kind = NotCaughtError if mine[0].when else CaptureError
                raise kind(f"{job.name}: no capture: {mine[0].text}")
            if mine[0].text and _COUNTDOWN.sub("", mine[0].text) != _COUNTDOWN.sub("", latest):
                say(mine[0].text)
            latest = mine[0].text or latest
        waited = time.monotonic() - began
        if waited > timeout_s:
            raise CaptureError(
                f"{job.name}: no capture in {timeout_s:g} s ({latest or 'still in progress'}); it continues, and "
                "the report will contain it"
            )
        if time.monotonic() - heard > SILENT_S:
            raise CaptureError(f"{job.name}: its sidecar does not answer; see stepscope ps")


def _from_session(job: RunningJob, identity: str) -> LiveCapture:
    """The capture of a job that has ended meanwhile: its sidecar still collects what was written.

    Raises:
        CaptureError: there is none.
    """
    why = "the job ended before the capture was done"
    deadline = time.monotonic() + FINISH_S
    while time.monotonic() < deadline:
        try:
            manifest = read_manifest(Path(job.status.session))
        except SessionError as error:
            why = str(error)
            break
        mine = [capture for capture in manifest.captures if capture.request == identity]
        if mine and mine[0].outcome == "done":
            return capture_account.live(mine[0])
        if mine or manifest.state != "running":
            why = mine[0].text if mine else why
            break
        time.sleep(_LOOK_S)
    raise CaptureError(f"{job.name}: no capture: {why}; what was recorded: stepscope report {job.status.session}")
