"""The runs of an experiment: made, or, if it is resumed, taken from its folder."""

from __future__ import annotations

import time
from statistics import geometric_mean
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from stepscope.experiments.interventions import is_switched
from stepscope.experiments.schedule import MeasuredRun
from stepscope.tables.errors import CaptureError, TargetError
from stepscope.tables.units import format_ns
from stepscope.use_cases.whatif import same_steps
from stepscope.use_cases.whatif import state as states
from stepscope.use_cases.whatif.runs import NO_CAPTURES, measure_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.model.report.whatif import Measure
    from stepscope.use_cases.whatif.runs import Runner, TrialRun
    from stepscope.use_cases.whatif.state import MadeRun, State

Kept = tuple[str, ...]
SLOWER, LEAST_MOST_S = 6.0, 120.0
"""Times the longest run of the unchanged job, and seconds, that a changed one may take: batch:4 has steps of four times
the length, a cache is filled for up to half a minute, and XLA compiles."""


class RecordedRuns:
    """Makes each run once: its time counts, and it is written to the folder's state.

    The clock of the experiment is the time of its runs, so that a resumed one decides as it would have.
    """

    def __init__(
        self, runner: Runner, state: State, say: Callable[[str], object], watch: Callable[[RecordedRuns], object]
    ) -> None:
        """``state``: with the runs that are made already. ``watch``: called when a run begins or has ended."""
        self.runner = runner
        self.say = say
        self.running = ""
        """What runs now, in words; "" between runs."""
        self._watch = watch
        self.spent_s = 0.0
        self.measure: Measure = "run"
        self.runs: list[TrialRun] = []
        """All that were compared, in order."""
        self.looks: list[TrialRun] = []
        """Those that found out what to try."""
        self._state = state
        self._known = list(state.runs)
        self._taken = 0

    def clock(self) -> float:
        """Seconds of all runs so far."""
        return self.spent_s

    def look(self, seconds: float, *, stage: str = "", kept: Kept = ()) -> TrialRun:
        """A run with captures.

        Raises:
            TargetError: the run failed.
            CaptureError: nothing could be recorded.
        """
        ran = self._run(0, "", stage, kept, budget="", seconds=seconds if self.runner.seconds else 0.0)
        self.looks.append(ran)
        return ran

    def looked(self, trial: str) -> TrialRun:
        """A run of a trial that has no time and ends by itself.

        Raises:
            TargetError: the run failed.
            CaptureError: nothing could be recorded.
        """
        return self._run(0, trial, "", (), seconds=0.0)

    def measured(self, trial: str, number: int, *, stage: str = "", kept: Kept = ()) -> MeasuredRun:
        """A run of a round.

        Raises:
            TargetError: the job as it is failed.
            CaptureError: nothing could be recorded.
        """
        return self.compared(trial, number, stage=stage, kept=kept)[0]

    def switched(self, trial: str, number: int) -> MeasuredRun | None:
        """A run of a round in which the trial is switched on and off; None if it cannot be, or runs go on to their end.

        Raises:
            CaptureError: nothing could be recorded.
        """
        if not (self.runner.seconds and is_switched(trial)) or self.measure == "run":
            return None
        return self.compared(trial, number, switched=True)[0]

    def delayed(self, trial: str) -> TrialRun:
        """A run in which calls of a place are delayed and not, in turn.

        Raises:
            TargetError: the run failed.
            CaptureError: nothing could be recorded.
        """
        ran = self._run(1, trial, "", (), switched=True)
        self.runs.append(ran)
        self._now_runs("")
        return ran

    def compared(
        self, trial: str, number: int, *, stage: str = "", kept: Kept = (), switched: bool = False
    ) -> tuple[MeasuredRun, TrialRun | None]:
        """A run of a round, and the run itself, if it did not fail.

        Raises:
            TargetError: the job as it is failed.
            CaptureError: nothing could be recorded.
        """
        place = _place(stage, number, trial, kept, switched=switched)
        taken = self._taken
        try:
            ran = self._run(number, trial, stage, kept, switched=switched)
        except TargetError as error:
            if not (trial or kept):
                raise
            self._say(f"{place} not possible: {error}", taken)
            return MeasuredRun(ns=0.0, why=str(error)), None
        if not self.runs:
            self.measure = measure_of((ran,))
        base = next((one for one in self.runs if (one.stage, one.kept) == (stage, kept)), ran)
        ran = same_steps.read(ran, base, self.runner.folder)
        self.runs.append(ran)
        self._now_runs("")
        measured = ran.measured(self.measure, base)
        self._say(f"{place} {_in_words(measured, self.measure, switched=switched)}", taken)
        return measured, ran

    def _say(self, line: str, taken: int) -> None:
        """Say a line, unless the run was taken from the folder."""
        if self._taken == taken:
            self.say(line)

    def _run(
        self,
        number: int,
        trial: str,
        stage: str,
        kept: Kept,
        *,
        budget: str = NO_CAPTURES,
        seconds: float | None = None,
        switched: bool = False,
    ) -> TrialRun:
        known = self._take(number, trial, stage, kept, switched=switched)
        if known is not None:
            return known
        began = time.monotonic()
        self._now_runs(_place(stage, number, trial, kept, switched=switched))
        made = states.MadeRun(stage=stage, round=number, kept=kept, trial=trial, wall_s=0.0, switched=switched)
        try:
            most_s = self._most_s() if (trial or kept) and seconds != 0 else 0.0
            ran = self.runner.run(
                number,
                trial,
                kept=kept,
                stage=stage,
                budget=budget,
                seconds=seconds,
                switched=switched,
                most_s=most_s,
            )
        except TargetError as error:
            self._now_runs("")
            if trial or kept:  # the job as it is may be mended, and resumed
                self._keep(msgspec.structs.replace(made, why=str(error), wall_s=time.monotonic() - began))
            raise
        self._keep(msgspec.structs.replace(made, session=ran.session, wall_s=ran.wall_s, contacts=ran.contacts))
        return ran

    def _most_s(self) -> float:
        """Longest time that a changed run may take; 0, any, if the job runs to its end or has not run yet."""
        unchanged = [one.wall_s for one in (*self.looks, *self.runs) if not (one.trial or one.kept)]
        least_s = LEAST_MOST_S + self.runner.delayed_s
        return max(least_s, SLOWER * max(unchanged)) if unchanged and self.runner.seconds else 0.0

    def _now_runs(self, what: str) -> None:
        self.running = what
        self._watch(self)

    def _take(self, number: int, trial: str, stage: str, kept: Kept, *, switched: bool) -> TrialRun | None:
        """A run that the folder has, if it can be read.

        Raises:
            TargetError: it failed.
        """
        wanted = (stage, number, kept, trial, switched)
        keys = ((one, (one.stage, one.round, one.kept, one.trial, one.switched)) for one in self._known)
        found = next((one for one, key in keys if key == wanted), None)
        if found is None:
            return None
        self._known.remove(found)
        try:
            ran = self._read(found)
        except CaptureError:
            return None
        self.spent_s += found.wall_s
        self._taken += 1
        if ran is None:
            raise TargetError(found.why)
        return ran

    def _read(self, made: MadeRun) -> TrialRun | None:
        if not made.session:
            return None
        ran = self.runner.read(
            made.round,
            made.trial,
            made.session,
            made.wall_s,
            kept=made.kept,
            stage=made.stage,
            switched=made.switched,
        )
        return replace(ran, contacts=made.contacts)

    def _keep(self, made: MadeRun) -> None:
        self.spent_s += made.wall_s
        self._state = msgspec.structs.replace(self._state, runs=(*self._state.runs, made))
        states.write(self.runner.folder, self._state)


def _place(stage: str, number: int, trial: str, kept: Kept, *, switched: bool = False) -> str:
    """A run in words."""
    if not number:
        return "a look at what takes the time"
    name = trial or ("what is kept" if kept else "unchanged")
    name = f"{name}, switched on and off" if switched else name
    return f"{stage}, round {number}: {name}" if stage else f"round {number}: {name}"


def _in_words(measured: MeasuredRun, measure: Measure, *, switched: bool) -> str:
    if not measured.ns:
        return f"{'not possible within one run' if switched else 'not possible'}: {measured.why}"
    if switched:
        off_ns = geometric_mean([before for before, _ in measured.pairs])
        return f"{format_ns(measured.ns)} a {measure} with it, {format_ns(off_ns)} without"
    return f"{format_ns(measured.ns)} a {measure}"
