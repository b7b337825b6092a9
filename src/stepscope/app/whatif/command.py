"""The use case ``whatif``: run a program unchanged and with something changed, in turn, and report what each brings.

A trial is a setting of the job's environment (``model.report.remedies``) or an intervention in its process
(``experiments.interventions``). Each run is a full ``stepscope run`` without captures, which would slow some steps
and not others; it ends after some seconds of steady steps, and what the job writes is thrown away where the machine
allows that. Without ``--try``, a first run with captures finds out what to try.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.app.whatif import outputs, result
from stepscope.app.whatif.runs import Ran, Runner, measure_of
from stepscope.collector.launch import apply, isolation
from stepscope.collector.launch.session_place import session_stem
from stepscope.errors import CaptureError, TargetError, UsageError
from stepscope.experiments import interventions, plan, schedule
from stepscope.model.report.remedies import ENVIRONMENT_REMEDIES
from stepscope.model.report.whatif import Choice
from stepscope.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stepscope.experiments.plan import Candidate
    from stepscope.experiments.schedule import Measured
    from stepscope.model.report.whatif import Measure, WhatIfReport

OPTION = "--try"
SUFFIX = ".whatif"
"""Suffix of the folder that holds the sessions."""
FIRST_S = 12.0
"""Seconds of steady steps of the first run, which finds out what to try: enough for its captures."""
TRIAL_S = 5.0
"""Seconds of steady steps of every other run."""
CLUSTER = ("TF_CONFIG", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS", "HOROVOD_RANK", "HOROVOD_SIZE", "WORLD_SIZE")
"""Variables that a worker of a cluster has: one worker alone cannot be tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfOptions:
    """Options of the command."""

    argv: tuple[str, ...]
    """The program's command line, from ``record.job_command``."""
    trials: tuple[str, ...] = ()
    """None: those that a first run suggests, or ``against``."""
    against: Path | None = None
    """Another version of the script: is it faster?"""
    rounds: int = 5
    """Most rounds."""
    seconds: float = 180.0
    """Time for all runs; with ``trials``, only rounds count."""
    folder: Path | None = None
    """None: named after the script, in the current directory."""
    whole: bool = False
    """Whether each run goes on to the program's own end."""
    network: bool = False
    """Whether the job may reach the network."""
    consent: bool = False
    """Whether the job may write where it writes, if the machine cannot throw that away."""


@dataclass(slots=True, kw_only=True)
class _Experiment:
    """What is made of the runs."""

    options: WhatIfOptions
    runner: Runner
    say: Callable[[str], object]
    measure: Measure = "run"
    runs: list[Ran]
    """All that were measured."""

    def run(self, trial: str, number: int) -> Measured:
        """One run of the schedule."""
        try:
            ran = self.runner.run(number, trial)
        except TargetError as error:
            if not trial:
                raise
            self.say(f"round {number}: {trial} not possible: {error}")
            return schedule.Measured(ns=0.0, why=str(error))
        if not self.runs:
            self.measure = measure_of((ran,))
        self.runs.append(ran)
        measured = ran.measured(self.measure, self.runs[0])
        self.say(f"round {number}: {trial or 'unchanged'} {_told(measured, self.measure)}")
        return measured


def whatif(options: WhatIfOptions, say: Callable[[str], object]) -> WhatIfReport | None:
    """Run everything. ``say`` gets one line per run.

    Returns:
        None if there is nothing to try: no trial was given, and the first run suggests none; the folder keeps it.

    Raises:
        UsageError: an unknown trial, a missing library, too few rounds, or no consent.
        TargetError: the program cannot be started, or a run of it failed.
        CaptureError: nothing could be recorded.
    """
    if options.rounds < schedule.MIN_ROUNDS:
        raise UsageError(f"--rounds {options.rounds}: an interval needs {schedule.MIN_ROUNDS} or more")
    candidates: Sequence[Candidate] = plan.named(
        (*options.trials, *([plan.OTHER] if options.against is not None else ()))
    )
    other = _other(options)
    apply.environment([one for one in options.trials if not _is_intervention(one)], os.environ, option=OPTION)
    _alone()
    began = time.monotonic()
    folder = _folder(options)
    seconds = 0.0 if options.whole else TRIAL_S
    runner = Runner(
        argv=options.argv, other=other, folder=folder, seconds=seconds, isolation=_isolation(options, folder, say)
    )
    first: Ran | None = None
    if not candidates:
        first, candidates = _suggested(runner, say)
        if not candidates:
            return None
    experiment = _Experiment(options=options, runner=runner, say=say, runs=[])
    seconds = float("inf") if first is None else options.seconds - (time.monotonic() - began)
    limits = schedule.Limits(seconds=seconds, rounds=options.rounds)
    try:
        found = schedule.explore(candidates, experiment.run, time.monotonic, limits)
    except schedule.NotMeasuredError as error:
        raise CaptureError(f"the unchanged job cannot be measured: {error}") from error
    report = result.build(runner, found, experiment.runs, experiment.measure, first)
    outputs.write(report, folder)
    return report


def catalogue() -> tuple[Choice, ...]:
    """All that can be tried."""
    settings = [
        Choice(name=remedy.id, kind="gain", text=remedy.text, limits="") for remedy in ENVIRONMENT_REMEDIES.values()
    ]
    return (
        *(
            Choice(
                name=f"{one.name}:{one.argument}" if one.argument else one.name,
                kind=one.kind,
                text=one.text,
                limits=one.limits,
            )
            for one in interventions.ALL
        ),
        *settings,
    )


def _is_intervention(trial: str) -> bool:
    return trial not in ENVIRONMENT_REMEDIES


def _other(options: WhatIfOptions) -> tuple[str, ...]:
    """The command line with the other script in the place of the first; () if there is none.

    Raises:
        UsageError: it is not there, or the command line names no script.
    """
    if options.against is None:
        return ()
    if not options.against.is_file():
        raise UsageError(f"--against {options.against}: no such file; expected another version of the script")
    at = next((i for i, word in enumerate(options.argv) if word.endswith(".py")), None)
    if at is None:
        raise UsageError(f"--against {options.against}: the command line names no script that it could replace")
    return (*options.argv[:at], str(options.against), *options.argv[at + 1 :])


def _alone() -> None:
    """Refuse to try one worker of a cluster."""
    found = [name for name in CLUSTER if os.environ.get(name)]
    if found:
        raise UsageError(f"{found[0]} is set: one worker of a cluster cannot be tried alone; unset it to try this one")


def _isolation(options: WhatIfOptions, folder: Path, say: Callable[[str], object]) -> isolation.Isolation | None:
    """How runs leave nothing behind; None with the user's consent.

    Raises:
        UsageError: the machine cannot isolate a job, and there is no consent.
    """
    wanted = isolation.Isolation(keep=(folder,), network=options.network)
    problem = isolation.problem(wanted)
    if not problem:
        return wanted
    if not options.consent:
        raise UsageError(
            f"what the runs write cannot be thrown away here: {problem}; "
            "with --yes they write where the program writes, and reach the network"
        )
    say(f"the runs write where the program writes and reach the network; trackers are set offline: {problem}")
    return None


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


def _suggested(runner: Runner, say: Callable[[str], object]) -> tuple[Ran, Sequence[Candidate]]:
    """The first run, with captures, and what it suggests."""
    say("no --try given: running once to find out what to try")
    ran = runner.run(0, "", budget="", seconds=FIRST_S if runner.seconds else 0.0)
    found = [one for one in plan.candidates(ran.report) if _is_intervention(one.trial) or _installed(one.trial)]
    if found:
        say(f"to try: {', '.join(one.trial for one in found)}")
    return ran, found


def _installed(name: str) -> bool:
    try:
        apply.environment((name,), {})
    except UsageError:
        return False
    return True


def _told(measured: Measured, measure: Measure) -> str:
    if not measured.ns:
        return f"not possible: {measured.why}"
    return f"{format_ns(measured.ns)} a {measure}"
