"""The program, run with and without edits, each time in another overlay: no edit is ever in the user's tree."""

from __future__ import annotations

import dataclasses
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from stepscope.derive.view import SessionView
from stepscope.model.report.report import Report
from stepscope.store import open_session
from stepscope.tables import layout
from stepscope.tables.errors import TargetError
from stepscope.use_cases.fix import patches
from stepscope.use_cases.fix import said as logs
from stepscope.use_cases.fix.candidates import Program
from stepscope.use_cases.fix.proof import RunFailedError, Timed, TimeOverError
from stepscope.use_cases.whatif import same_steps
from stepscope.use_cases.whatif.runs import NO_CAPTURES, OUT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from stepscope.model.report.whatif import Measure
    from stepscope.use_cases.whatif.runs import Runner, TrialRun

LOOK_S = 12.0
"""Seconds of steady steps of a run that finds out what to edit: enough for its captures."""
SHARE = 3.0
"""A run that takes more than the time divided by this is too long to prove anything."""
STAGE = "fix"
"""Begin of the names of runs."""
LAST_LINES = 1
"""Lines of a failed run's output that are shown."""
SLOWER = 3.0
"""Times the longest unchanged run that a patched one may take."""
LEAST_MOST_S = 60.0
"""Seconds that a patched run may take in any case: the first calls of a compiled step take longer."""


class TooLongError(Exception):
    """One run takes more than a third of the time."""


class Job:
    """The program and the time that is left for its runs."""

    def __init__(self, runner: Runner, most_s: float, say: Callable[[str], object]) -> None:
        """``runner``: makes whole runs; its folder also gets the new contents. ``most_s``: time for everything."""
        self._runner = runner
        self._most_s = most_s
        self._began = time.monotonic()
        self._say = say
        self._files = 0
        self.runs = 0
        self.longest_s = 0.0
        """The longest run so far."""
        self.unchanged: list[logs.Said] = []
        """What each whole run of the unchanged program has logged."""
        self._first: TrialRun | None = None

    @property
    def spent_s(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self._began

    @property
    def left_s(self) -> float:
        """Seconds that are left."""
        return self._most_s - self.spent_s

    def look(self, texts: Mapping[str, bytes]) -> tuple[Report, Program]:
        """A run that finds out what to edit, and the program's own files with what is edited so far.

        Raises:
            TooLongError: it takes too long.
            TargetError: the program cannot be started, or failed.
            CaptureError: nothing could be recorded.
        """
        self._say(f"run {self.runs + 1}: what takes the time")
        ran = self._run(texts, budget="", seconds=LOOK_S, most_s=self._most_s / SHARE)
        view = SessionView(open_session(self._runner.folder / ran.session))
        version = ".".join(view.frameworks.get("tensorflow", "").split(".")[:2])
        return ran.report, program([*view.session.sources, *script(self._runner.argv)], Path.cwd(), texts, version)

    def timed(self, texts: Mapping[str, bytes], what: str) -> Timed:
        """A whole run, timed, and what it logged; ``what``: in words.

        Raises:
            TimeOverError: there is no time for it.
            TooLongError: one run takes more than its share of the time.
            RunFailedError: it failed, with edits.
            TargetError: it failed, without any.
        """
        if self.left_s < self.longest_s:
            raise TimeOverError
        first = not self.unchanged and not texts
        most_s = self._most_s / SHARE if first else min(self.left_s, max(LEAST_MOST_S, SLOWER * self.longest_s))
        began = time.monotonic()
        try:
            ran = self._run(texts, most_s=most_s)
        except TargetError as error:
            if not first and self.left_s <= 0.0:
                raise TimeOverError from error
            if texts:
                raise RunFailedError(str(error)) from error
            raise
        self.longest_s = max(self.longest_s, time.monotonic() - began)
        stem = self._runner.folder / ran.session.removesuffix(layout.SUFFIX)
        found = logs.read(stem.with_name(stem.name + OUT), stem.with_name(stem.name + ".log"))
        if not texts:
            self.unchanged.append(found)
        self._first = self._first or ran
        one = timed(same_steps.read(ran, self._first, self._runner.folder), self._first, found)
        self._say(f"run {self.runs}: {what}: {one.ns['run'] / 1e9:.1f} s")
        return one

    def _run(
        self, texts: Mapping[str, bytes], *, budget: str = NO_CAPTURES, seconds: float = 0.0, most_s: float
    ) -> TrialRun:
        self.runs += 1
        try:
            return self._edited(texts).run(
                self.runs, "", stage=STAGE, budget=budget, seconds=seconds, most_s=max(most_s, 1.0)
            )
        except TargetError as error:
            if most_s == self._most_s / SHARE and "not done after" in str(error):
                raise TooLongError from error
            raise TargetError(self._ended(str(error))) from error

    def _edited(self, texts: Mapping[str, bytes]) -> Runner:
        """The runner with new contents of files."""
        if not texts or self._runner.isolation is None:
            return self._runner
        replaced = []
        for path, data in sorted(texts.items()):
            self._files += 1
            source = self._runner.folder / f"content-{self._files}"
            source.write_bytes(data)
            replaced.append((path, str(source)))
        isolation = dataclasses.replace(self._runner.isolation, replaced=tuple(replaced))
        return replace(self._runner, isolation=isolation)

    def _ended(self, error: str) -> str:
        """How a run failed, with the end of its output, whose file is not left."""
        text, _, log = error.partition("; its output: ")
        try:
            lines = Path(log.partition(";")[0]).read_text("utf-8", "replace").strip().splitlines()
        except OSError:
            return error
        return f"{text}{''.join(f': {line.strip()}' for line in lines[-LAST_LINES:])}"


def timed(ran: TrialRun, first: TrialRun, found: logs.Said) -> Timed:
    """The times of a run, by the steps of the first one where it has them."""
    alike = ran.alike is not None or ran.steps == first.steps
    measures: tuple[Measure, ...] = ("sample", "step", "run")
    return Timed(
        ns={measure: ran.ns(measure) for measure in measures},
        steps=first.steps if alike else ran.steps,
        count=ran.report.session.steps,
        said=found,
    )


def script(argv: Sequence[str]) -> list[str]:
    """The script of a command line, if it names one."""
    found = next((word for word in argv if word.endswith(".py")), "")
    return [os.path.realpath(found)] if found and Path(found).is_file() else []


def program(names: Iterable[str], cwd: Path, texts: Mapping[str, bytes], version: str) -> Program:
    """The program's own files that can be edited.

    Args:
        names: absolute paths of the user's files that the run has seen.
        cwd: where it ran.
        texts: what is edited so far, by absolute path.
        version: of TensorFlow.
    """
    found: dict[str, bytes] = {}
    for name in sorted({os.path.realpath(name) for name in (*names, *texts) if name.endswith(".py")}):
        try:
            data = texts[name] if name in texts else Path(name).read_bytes()
            patches.text_of(name, data)
        except (OSError, patches.RefusedError):
            continue
        found[name] = data
    return Program(texts=found, cwd=cwd, version=version)
