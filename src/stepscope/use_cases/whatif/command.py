"""The use case ``whatif``: run a program unchanged and with something changed, in turn, and report what each brings.

A trial is a setting of the job's environment (``model.report.remedies``) or an intervention in its process
(``experiments.interventions``). Each run is a full ``stepscope run`` without captures, which would slow some steps
and not others; it ends after some seconds of steady steps, or of blocks in which the trial is on or off, and what the
job writes is thrown away where the machine allows that. Without ``--try``, a first run with captures finds out what to
try.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from stepscope.experiments import climb, interventions, plan, schedule
from stepscope.experiments.climb import Rules
from stepscope.experiments.schedule import TimeLimits
from stepscope.launcher import apply
from stepscope.model.report.remedies import ENVIRONMENT_REMEDIES, OF_MEMORY
from stepscope.model.report.whatif import Choice
from stepscope.tables.errors import CaptureError, TargetError, UsageError
from stepscope.use_cases.whatif import (
    against,
    curve,
    in_session,
    options,
    outputs,
    progress,
    result,
    slopes,
    stacks,
    state,
    values,
    way,
)
from stepscope.use_cases.whatif.recorded import RecordedRuns
from stepscope.use_cases.whatif.result import Stage
from stepscope.use_cases.whatif.runs import Runner

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stepscope.experiments.climb import Kept
    from stepscope.experiments.plan import Candidate
    from stepscope.model.report.whatif import WhatIfReport
    from stepscope.report.whatif.live import Progress

FIRST_S = 12.0
"""Seconds of steady steps of the first run, which finds out what to try: enough for its captures."""
TRIAL_S = 5.0
"""Seconds of steady steps of every other run."""
IN_ONE_PROCESS = " It is switched on and off in one process."
"""What is said of such a trial where all are listed."""


def whatif(
    wanted: options.WhatIfOptions, say: Callable[[str], object], watch: Callable[[Progress], object] | None = None
) -> WhatIfReport | None:
    """Run everything. ``say`` gets one line per run, ``watch`` what is known when a run begins or has ended.

    Returns:
        None if there is nothing to try: no trial was given, and the first run suggests none; the folder keeps it.

    Raises:
        UsageError: an unknown trial, a missing library, too few rounds, no consent, or another program is resumed.
        TargetError: the program cannot be started, or a run of it failed.
        CaptureError: nothing could be recorded.
    """
    wanted = options.resumed(wanted)
    if not wanted.argv:
        raise UsageError("nothing to run; expected: stepscope whatif train.py [args], or --resume FOLDER")
    options.check(wanted)
    other = against.find(wanted.argv, wanted.against) if wanted.against else None
    now = options.asked(wanted, other.name if other is not None else "")
    folder, kept = options.begun(wanted, now)
    isolation = options.isolated(wanted, folder, say)
    with against.checked_out(wanted.argv, other) as argv:
        runner = Runner(
            argv=wanted.argv,
            other=argv,
            other_text=other.text if other is not None else "",
            folder=folder,
            seconds=0.0 if wanted.whole else TRIAL_S,
            isolation=isolation,
            memory=not OF_MEMORY.isdisjoint(wanted.singles),
            delayed_s=(wanted.seconds or slopes.SECONDS) if slopes.of(wanted.singles) else 0.0,
        )
        if kept.runs:
            say(f"{len(kept.runs)} runs of this experiment are in the folder and count")
        recorded = RecordedRuns(runner, kept, say, progress.follow(watch, _most_s(wanted)))
        try:
            report = _measured(wanted, recorded)
        except schedule.NotMeasuredError as error:
            raise CaptureError(f"the unchanged job cannot be measured: {error}") from error
        except KeyboardInterrupt:
            say(f"ended before a round was complete; to resume: {state.resume_command(folder)}")
            raise
    if report is not None:
        report = stacks.sampled(report, recorded, _most_s(wanted) - recorded.spent_s)
        report = msgspec.structs.replace(report, joined=in_session.join(report, recorded))
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
                text=f"{one.text}{IN_ONE_PROCESS if interventions.is_switched(one.name) else ''}",
                limits=one.limits,
            )
            for one in interventions.ALL
        ),
        *settings,
    )


def _most_s(wanted: options.WhatIfOptions) -> float:
    """Time for all runs; infinite where only rounds count."""
    asked = wanted.singles or wanted.curves or wanted.against
    return wanted.most_s if wanted.until_done or not asked else float("inf")


def _measured(wanted: options.WhatIfOptions, recorded: RecordedRuns) -> WhatIfReport | None:
    if wanted.until_done:
        return _until_done(wanted, recorded)
    return _once(wanted, recorded)


def _once(wanted: options.WhatIfOptions, recorded: RecordedRuns) -> WhatIfReport | None:
    """Each trial on the unchanged job, then curves."""
    looked = values.look(recorded) if values.NAME in wanted.singles else None
    others = values.others(slopes.others(wanted.singles)) + list(looked.trials if looked is not None else ())
    delayed = slopes.of(wanted.singles)
    named = (*others, *([plan.OTHER] if wanted.against else ()))
    candidates: Sequence[Candidate] = plan.named(named)
    asked = bool(named or wanted.curves or delayed)
    if looked is not None and not asked:
        return looked.alone()
    if not asked:
        candidates = _suggested(recorded)
        if values.is_worth(recorded.looks[-1].report, candidates, wanted.most_s - recorded.spent_s):
            looked = values.look(recorded)
            candidates = plan.ordered((*candidates, *looked.candidates))
        if not candidates:
            return looked.alone() if looked is not None else None
    stages: list[Stage] = []
    traced = []
    if candidates:
        seconds = float("inf") if asked else wanted.most_s - recorded.spent_s
        limits = TimeLimits(seconds=seconds, rounds=wanted.most_rounds)
        found = schedule.explore(candidates, recorded.measured, recorded.clock, limits, recorded.switched)
        stages.append(Stage(found=found))
    interrupted = any(stage.found.interrupted for stage in stages)
    for name in () if interrupted else wanted.curves:
        traced.append(curve.trace(recorded, name))
        interrupted = interrupted or traced[-1].experiment.interrupted
    curves = [curve.report(recorded, one) for one in traced]
    found_slopes = slopes.measured(recorded, delayed) if delayed and not interrupted else ()
    report = result.build(recorded, stages, curves=curves, interrupted=interrupted)
    report = msgspec.structs.replace(report, slopes=found_slopes)
    return looked.joined(report) if looked is not None else report


def _until_done(wanted: options.WhatIfOptions, recorded: RecordedRuns) -> WhatIfReport | None:
    """Gains kept one after the other."""

    def candidates(stage: str, kept: Kept) -> Sequence[Candidate]:
        return plan.named(wanted.singles) if wanted.singles else _suggested(recorded, stage=stage, kept=kept)

    rules = Rules(seconds=wanted.most_s, rounds=wanted.most_rounds, changed=wanted.changed_results)
    found = climb.climb(way.RecordedJob(recorded, candidates), recorded.clock, rules)
    if not found.suggested:
        return None
    return way.report(recorded, found, changed=wanted.changed_results)


def _suggested(recorded: RecordedRuns, *, stage: str = "", kept: Kept = ()) -> Sequence[Candidate]:
    """What a run with captures suggests."""
    if kept:
        recorded.say(f"kept: {', '.join(kept)}; running once to find out what is left")
    else:
        recorded.say("no --try given: running once to find out what to try")
    try:
        ran = recorded.look(FIRST_S, stage=stage, kept=kept)
    except TargetError as error:
        if not kept:
            raise
        recorded.say(f"what is left cannot be seen: {error}")
        return ()
    found = [one for one in plan.candidates(ran.report) if _installed(one.trial)]
    if found:
        recorded.say(f"to try: {', '.join(one.trial for one in found)}")
    if not OF_MEMORY.isdisjoint(one.trial for one in found):
        recorded.runner = replace(recorded.runner, memory=True)
    return found


def _installed(trial: str) -> bool:
    """Whether a trial that is a setting can be made here."""
    if trial not in ENVIRONMENT_REMEDIES:
        return True
    try:
        apply.environment((trial,), os.environ)
    except UsageError:
        return False
    return True
