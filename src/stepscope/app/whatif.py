"""The use case ``whatif``: run a program unchanged and with each remedy, in turn, and report the gain of each.

A remedy is a setting of the job's environment (``model.report.remedies``); machine and code stay unchanged. Each run is
a full ``stepscope run`` without captures, which would slow some steps and not others.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import msgspec

from stepscope._version import __version__
from stepscope.agent.payload import PAYLOAD
from stepscope.app.record import REPORT_JSON, shown
from stepscope.collector.captures import budget as budgets
from stepscope.collector.launch import apply, launch, mask
from stepscope.collector.launch.session_place import session_stem
from stepscope.errors import CaptureError, TargetError, UsageError
from stepscope.experiments import statistics
from stepscope.model.report.finding import Report
from stepscope.model.report.remedies import ENVIRONMENT_REMEDIES
from stepscope.model.report.whatif import Measure, Verdict, WhatIfReport, WhatIfResult, WhatIfRun
from stepscope.store import layout
from stepscope.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

OPTION = "--try"
SUFFIX = ".whatif"
"""Suffix of the folder that holds the sessions."""
_AS_IT_IS = "as-it-is"
_NO_CAPTURES = "0%"
_LEVEL = 0.95
"""Level of the intervals, as the schema states it."""
_NOT_IN_EFFECT = "DX146"
_COUNTS = frozenset({"high", "medium", "low"})


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfOptions:
    """Options of the command."""

    argv: tuple[str, ...]
    """The program's command line, from ``record.job_command``."""
    remedies: tuple[str, ...] = ()
    """None: those named by the findings of an extra run."""
    rounds: int = 5
    folder: Path | None = None
    """None: named after the script, in the current directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ran:
    """One run and its report."""

    round: int
    remedy: str
    session: str
    report: Report

    @property
    def step_ns(self) -> float | None:
        """Mean time of a steady step, including ends of epochs; None without steps."""
        rate = self.report.session.throughput.steps_per_s
        return 1e9 / rate if rate else None

    @property
    def codes(self) -> frozenset[str]:
        """Codes of the findings of severity low or higher."""
        return frozenset(finding.code for finding in self.report.findings if finding.severity in _COUNTS)

    @property
    def note(self) -> str:
        """Why its remedy was not in effect; "" if it was."""
        return next((d.text for d in self.report.diagnostics if d.code == _NOT_IN_EFFECT), "")

    def ns(self, measure: Measure) -> float:
        """The measured time that is compared."""
        return (self.step_ns or 0.0) if measure == "step" else float(self.report.session.wall_ns)


def whatif(options: WhatIfOptions, say: Callable[[str], object]) -> WhatIfReport | None:
    """Run everything. ``say`` gets one line per stage.

    Returns:
        None if no remedy was given and no finding names one; the folder keeps the run.

    Raises:
        UsageError: an unknown remedy, a missing library, or too few rounds.
        TargetError: the program cannot be started, or a run of it failed.
        CaptureError: nothing could be recorded.
    """
    if options.rounds < statistics.MIN_PAIRS:
        raise UsageError(f"--rounds {options.rounds}: an interval needs {statistics.MIN_PAIRS} or more")
    apply.environment(options.remedies, os.environ, option=OPTION)
    folder = _folder(options)
    remedies = tuple(dict.fromkeys(options.remedies)) or _told(options, folder, say)
    if not remedies:
        return None
    names = ("", *remedies)
    runs: list[_Ran] = []
    for number in range(1, options.rounds + 1):
        order = names if number % 2 else names[::-1]
        made = {name: _run(options.argv, folder, number, name) for name in order}
        runs += made.values()
        times = ", ".join(f"{name or 'unchanged'} {_told_time(made[name])}" for name in names)
        say(f"round {number} of {options.rounds}: {times}")
    return _report(options, folder, names, runs)


def to_json(report: WhatIfReport) -> str:
    """For programs: schema ``stepscope.whatif/1``."""
    return msgspec.json.format(msgspec.json.encode(report), indent=1).decode()


def _folder(options: WhatIfOptions) -> Path:
    stem = f"{session_stem(options.argv)}-{time.strftime('%m%d-%H%M')}"
    wanted = options.folder
    for number in range(1, 1000):
        path = wanted or Path.cwd() / f"{stem}{f'-{number}' if number > 1 else ''}{SUFFIX}"
        try:
            path.mkdir(parents=wanted is not None)
        except FileExistsError:
            if wanted is None:
                continue
            raise UsageError(f"--folder {wanted}: it already exists; expected a new folder") from None
        except OSError as error:
            raise CaptureError(f"{path} cannot hold sessions: {error.strerror}; choose --folder") from error
        return path.absolute()
    raise CaptureError(f"there are already a thousand folders {stem}*; choose another with --folder")


def _told(options: WhatIfOptions, folder: Path, say: Callable[[str], object]) -> tuple[str, ...]:
    """The settings named by the findings of a run with captures."""
    say("no --try given: running once to find remedies")
    ran = _run(options.argv, folder, 0, "", budget="")
    named = [remedy.id for finding in ran.report.findings for remedy in finding.remedies]
    found = tuple(dict.fromkeys(name for name in named if name in ENVIRONMENT_REMEDIES))
    fit = tuple(name for name in found if _installed(name))
    left_out = [name for name in found if name not in fit]
    if left_out:
        say(f"skipped, because the library is not installed: {', '.join(left_out)}")
    if fit:
        say(f"trying: {', '.join(fit)}")
    return fit


def _installed(name: str) -> bool:
    try:
        apply.environment((name,), {})
    except UsageError:
        return False
    return True


def _run(argv: Sequence[str], folder: Path, number: int, name: str, budget: str = _NO_CAPTURES) -> _Ran:
    """One run: ``name`` is its remedy, "" for none."""
    label = f"{number}-{name or _AS_IT_IS}"
    session, log = folder / f"{label}{layout.SUFFIX}", folder / f"{label}.log"
    wanted = launch.LaunchOptions(
        argv=tuple(argv),
        payload=PAYLOAD,
        session=session,
        budget=budget,
        first_look_ns=budgets.first_look_ns(budgets.parse(budget or budgets.DEFAULT)),
        apply=(name,) if name else (),
    )
    with _printing_to(log):
        outcome = launch.run(wanted)
    if outcome.exit_code == -signal.SIGINT:
        raise KeyboardInterrupt
    if outcome.exit_code:
        how = f"signal {-outcome.exit_code}" if outcome.exit_code < 0 else f"exit code {outcome.exit_code}"
        raise TargetError(f"the run {label} ended with {how}; its output: {shown(log)}")
    if outcome.session is None:
        raise CaptureError(f"the run {label}: {'; '.join(outcome.messages) or 'nothing was recorded'}")
    try:
        report = msgspec.json.decode((session / REPORT_JSON).read_bytes(), type=Report)
    except (OSError, msgspec.DecodeError) as error:
        raise CaptureError(f"the run {label} has no report: {error}; see: stepscope report {shown(session)}") from error
    return _Ran(round=number, remedy=name, session=session.name, report=report)


@contextmanager
def _printing_to(log: Path) -> Iterator[None]:
    """Redirect all output of this process and its children to ``log``."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    try:
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    except OSError as error:
        raise CaptureError(f"{log} cannot be written: {error.strerror}") from error
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(file)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, before in zip((1, 2), kept, strict=True):
            os.dup2(before, number)
            os.close(before)


def _told_time(ran: _Ran) -> str:
    step = ran.step_ns
    return format_ns(ran.report.session.wall_ns) if step is None else f"{format_ns(step)} a step"


def _report(options: WhatIfOptions, folder: Path, names: Sequence[str], runs: Sequence[_Ran]) -> WhatIfReport:
    measure: Measure = "step" if all(ran.step_ns for ran in runs) else "run"
    by_name = {name: sorted((r for r in runs if r.remedy == name), key=lambda r: r.round) for name in names}
    plain = by_name[""]
    times = plain[0].report.session.step_times
    return WhatIfReport(
        version=__version__,
        command=tuple(mask.mask_command(options.argv)),
        measure=measure,
        step=times.source if measure == "step" and times is not None else "",
        rounds=options.rounds,
        ns=round(median(ran.ns(measure) for ran in plain)),
        results=tuple(_result(name, plain, by_name[name], measure) for name in names if name),
        runs=tuple(
            WhatIfRun(
                round=ran.round,
                remedy=ran.remedy,
                ns=round(ran.ns(measure)),
                findings=tuple(sorted(ran.codes)),
                session=ran.session,
            )
            for ran in runs
        ),
        folder=shown(folder),
    )


def _result(name: str, plain: Sequence[_Ran], with_it: Sequence[_Ran], measure: Measure) -> WhatIfResult:
    times = [[ran.ns(measure) for ran in side] for side in (plain, with_it)]
    change = statistics.paired(*times, level=_LEVEL)
    verdict: Verdict = "faster" if change.high < 1 else "slower" if change.low > 1 else "undecided"
    before, after = [ran.codes for ran in plain], [ran.codes for ran in with_it]
    return WhatIfResult(
        remedy=name,
        text=ENVIRONMENT_REMEDIES[name].text,
        ns=round(median(ran.ns(measure) for ran in with_it)),
        ratio=change.ratio,
        low=change.low,
        high=change.high,
        verdict=verdict,
        gone=tuple(sorted(frozenset.intersection(*before) - frozenset.union(*after))),
        new=tuple(sorted(frozenset.intersection(*after) - frozenset.union(*before))),
        note=next((ran.note for ran in with_it if ran.note), ""),
    )
