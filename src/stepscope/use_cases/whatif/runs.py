"""One run of a trial: the job under ``stepscope run``, with something changed, and what its report says."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from statistics import geometric_mean
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stepscope.agent.payload import PAYLOAD
from stepscope.collector.captures import budget as budgets
from stepscope.experiments import blocks, combine
from stepscope.experiments.plan import OTHER
from stepscope.experiments.schedule import MeasuredRun
from stepscope.launcher import launch
from stepscope.launcher.patience import Patience
from stepscope.launcher.trial import Trial
from stepscope.model.log.intervention import BlockEnded, InterventionEnded
from stepscope.model.report.remedies import C_LIBRARY, ENVIRONMENT_REMEDIES
from stepscope.model.report.report import Report
from stepscope.report.whatif.text import peers_text
from stepscope.store import open_session
from stepscope.tables import layout
from stepscope.tables.errors import CaptureError, TargetError
from stepscope.use_cases.record import REPORT_JSON, shown
from stepscope.use_cases.whatif import memory_sides
from stepscope.use_cases.whatif.network import failed_network
from stepscope.use_cases.whatif.printing import printing_to
from stepscope.wire import trials

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stepscope.launcher.peers import Contacts
    from stepscope.model.report.step_summary import Throughput
    from stepscope.model.report.whatif import Measure, WhatIfMemory
    from stepscope.sandbox.isolation import Isolation

AS_IT_IS, KEPT, SWITCHED = "as-it-is", "kept", "switched"
"""Parts of the names of runs."""
ALONE_JSON = "report-alone.json"
"""Name of the report of a run before an experiment has joined it (``in_session``)."""
OUT = ".out"
"""Suffix of the job's output, if it is apart from its errors."""
NO_CAPTURES = "0%"
STACKS_BUDGET = "20%"
"""Of a run that is made for its stacks, and not timed."""
REBUILD = "without -ljemalloc, -l:libjemalloc.a, -ltcmalloc or -lmimalloc"
"""What to leave out, by the way allocators are linked statically."""
MEMORY_LOOKS_NS = 3_000_000_000
"""A run has some seconds of steady steps: the newest look falls into them. One takes 55 ms of CPU time, in all runs
alike."""
OWN = frozenset({"--rounds", "--folder", "--time", "--whole", "--yes", "--resume", "--json"})
"""Options of ours that are the program's if they stand behind its name."""
USAGE = 2
"""Exit code of argparse for options that a program does not know."""
ENDED = 128 + signal.SIGTERM
"""Our exit code where we are asked to end: none of the job's, which was asked too."""
TO_GRAPH = frozenset({"graph", "graph-function"})
"""Trials that make the same steps other calls."""
_NOT_IN_EFFECT = "DX146"
_COUNTS = frozenset({"high", "medium", "low"})


class TrialRun(Struct, frozen=True, kw_only=True):
    """One run and its report."""

    round: int
    trial: str
    session: str
    report: Report
    wall_s: float
    note: str = ""
    """Why its change was not in effect; "" if it was."""
    contacts: Contacts | None = None
    """What it wanted to reach; None: unknown."""
    kept: tuple[str, ...] = ()
    """What was in effect before the trial was added."""
    stage: str = ""
    """Part of the experiment that it belongs to (``experiments.climb``); "" if there is one only."""
    judged: blocks.BlockVerdict | None = None
    """What its blocks say, if the trial was switched on and off in it."""
    memory: WhatIfMemory | None = None
    """Its memory, if it was looked at."""
    alike: Throughput | None = None
    """How fast it was by the steps of the unchanged job, if its report chose others that tie with them."""

    @property
    def throughput(self) -> Throughput:
        """How fast it was, by the steps that are compared."""
        return self.alike or self.report.session.throughput

    @property
    def codes(self) -> frozenset[str]:
        """Codes of the findings of severity low or higher."""
        return frozenset(finding.code for finding in self.report.findings if finding.severity in _COUNTS)

    def ns(self, measure: Measure) -> float:
        """The measured time that is compared, of a switched trial that with it; 0: unknown."""
        if self.judged is not None:
            found = self._judged(measure).pairs
            return geometric_mean([after for _, after in found]) if found else 0.0
        throughput = self.throughput
        if measure == "run":
            return float(self.report.session.wall_ns)
        rate = throughput.samples_per_s if measure == "sample" else throughput.steps_per_s
        return 1e9 / rate if rate else 0.0

    @property
    def peak_bytes(self) -> int:
        """Most memory that the job held; 0: unknown."""
        return round(1e6 * max(self.report.series.get("res:rss_mb", ()), default=0.0))

    @property
    def steps(self) -> str:
        """The calls that are its steps, in words; "" if there are none."""
        times = self.report.session.step_times
        return times.source if times is not None else ""

    def _judged(self, measure: Measure) -> blocks.BlockVerdict:
        """What its blocks say, in the time that is compared: their times are of steps."""
        judged, rates = self.judged or blocks.BlockVerdict(), self.throughput
        if measure == "run":
            return blocks.BlockVerdict(why="the unchanged job shows no steady steps")
        if measure == "step":
            return judged
        if not (rates.samples_per_s and rates.steps_per_s):
            return blocks.BlockVerdict(why="how many samples a step has is not known")
        return judged.times(rates.steps_per_s / rates.samples_per_s)

    def measured(self, measure: Measure, unchanged: TrialRun) -> MeasuredRun:
        """For the schedule. ``unchanged``: the first run with the same changes kept."""
        if self.note:
            return MeasuredRun(ns=0.0, why=self.note, wall_s=self.wall_s)
        renamed = self.trial == OTHER or trials.split(self.trial)[0] in TO_GRAPH
        if measure != "run" and not renamed and self.alike is None and self.steps != unchanged.steps:
            said = f"its steps are {self.steps or 'not seen'}, those of the unchanged job {unchanged.steps}"
            return MeasuredRun(ns=0.0, why=said, wall_s=self.wall_s)
        if measure == "step" and trials.split(self.trial)[0] == "batch":
            said = "how many samples a step has is not known, and steps with more of them cannot be compared"
            return MeasuredRun(ns=0.0, why=said, wall_s=self.wall_s)
        ns = self.ns(measure)
        if self.judged is not None:
            found = self._judged(measure)
            return MeasuredRun(ns=ns, why=found.why, wall_s=self.wall_s, pairs=found.pairs, unchanged=found.unchanged)
        return MeasuredRun(ns=ns, why="" if ns else "the run shows no steady steps", wall_s=self.wall_s)


class Runner(Struct, frozen=True, kw_only=True):
    """Runs the job."""

    argv: tuple[str, ...]
    other: tuple[str, ...]
    """Command line of the trial ``plan.OTHER``; () if there is none."""
    other_text: str = ""
    """What it is, for people."""
    folder: Path
    """Holds the sessions and the job's output."""
    seconds: float
    """Seconds of steady steps after which a run ends; 0: the job's own end."""
    isolation: Isolation | None
    memory: bool = False
    """Whether the job's memory is looked at: a trial changes it."""
    stacks: bool = False
    """Whether runs with captures are made for a window of native stacks."""
    delayed_s: float = 0.0
    """Seconds for the blocks of a trial that delays calls (``slopes``)."""
    split: bool = False
    """Whether the job's output goes to a file apart from its errors (``OUT``)."""

    @property
    def networked(self) -> bool:
        """Whether the job can reach the network."""
        return self.isolation is None or self.isolation.network

    def run(
        self,
        number: int,
        trial: str,
        *,
        kept: tuple[str, ...] = (),
        stage: str = "",
        budget: str = NO_CAPTURES,
        seconds: float | None = None,
        switched: bool = False,
        most_s: float = 0.0,
    ) -> TrialRun:
        """One run of a trial ("": unchanged) with ``kept`` in effect, which may take ``most_s`` (0: any time).

        ``switched``: the trial is on and off in turn.

        Raises:
            TargetError: the program cannot be started, or the run failed.
            CaptureError: nothing could be recorded.
        """
        name = _file_name(trial) or (KEPT if kept else AS_IT_IS)
        name = f"{name}-{SWITCHED}" if switched else name
        label = self._label(f"{stage}-{number}-{name}" if stage else f"{number}-{name}")
        changes = () if trial == OTHER else combine.merged(kept, trial)
        session, log = self.folder / f"{label}{layout.SUFFIX}", self.folder / f"{label}.log"
        stacks = self.stacks and budget != NO_CAPTURES
        budget = STACKS_BUDGET if stacks else budget
        wanted = launch.LaunchOptions(
            argv=self.other if trial == OTHER else self.argv,
            payload=PAYLOAD,
            session=session,
            budget=budget,
            first_look_ns=budgets.first_look_ns(budgets.parse(budget or budgets.DEFAULT)),
            apply=combine.settings(changes),
            trial=_trial(
                combine.interventions(changes),
                self.seconds if seconds is None else seconds,
                trial if switched else "",
                self.delayed_s,
            ),
            isolation=self.isolation,
            patience=Patience(seconds=most_s) if changes or most_s else None,
            offline=True,
            memory_looks_ns=MEMORY_LOOKS_NS if self.memory else 0,
            stacks=stacks,
        )
        began = time.monotonic()
        with printing_to(log, self.folder / f"{label}{OUT}" if self.split else log):
            outcome = launch.run(wanted)
        hint = "" if self.networked else _without_network(outcome.contacts, log)
        _check(outcome, label, log, hint + _misplaced(outcome.exit_code, wanted.argv))
        wall_s = time.monotonic() - began
        ran = self.read(number, trial, session.name, wall_s, kept=kept, stage=stage, switched=switched)
        return replace(ran, contacts=outcome.contacts)

    def read(
        self,
        number: int,
        trial: str,
        session: str,
        wall_s: float,
        *,
        kept: tuple[str, ...] = (),
        stage: str = "",
        switched: bool = False,
    ) -> TrialRun:
        """A run that is in the folder.

        Raises:
            CaptureError: its session has no report.
        """
        path = self.folder / session
        report = _report(path, session.removesuffix(layout.SUFFIX))
        note = _note(path, report, trial)
        if not note and trial:
            note = _lost(path, report, combine.merged(kept, trial)[:-1])
        return TrialRun(
            round=number,
            trial=trial,
            session=session,
            report=report,
            wall_s=wall_s,
            note=note,
            kept=kept,
            stage=stage,
            judged=_judged(path) if switched else None,
            memory=memory_sides.of_run(path, report.session.throughput.steps_per_s or 0.0) if self.memory else None,
        )

    def _label(self, stem: str) -> str:
        """Name of a run: that of its trial in its round, numbered if a round has several."""
        labels = (stem, *(f"{stem}-{again}" for again in range(2, 1000)))
        return next(label for label in labels if not (self.folder / f"{label}{layout.SUFFIX}").exists())


def _trial(changed: tuple[str, ...], seconds: float, switched: str, delayed_s: float) -> Trial | None:
    if not (changed or seconds):
        return None
    return Trial(interventions=changed, seconds=seconds, switched=switched, most_s=delayed_s)


def _judged(session: Path) -> blocks.BlockVerdict:
    """What the blocks of the process say that has most of them."""
    found = (list(worker.all(BlockEnded)) for worker in open_session(session).workers)
    most: list[BlockEnded] = max(found, key=len, default=[])
    return blocks.judge(blocks_of(most))


def blocks_of(lines: Iterable[BlockEnded]) -> list[blocks.Block]:
    """The blocks of the lines of one process."""
    return [_block(line) for line in lines]


def _block(line: BlockEnded) -> blocks.Block:
    return blocks.Block(
        on=line.on,
        long=line.long,
        count=line.count,
        steps=line.steps,
        steps_ns=line.steps_ns,
        late_steps=line.late_steps,
        late_ns=line.late_ns,
        ends=line.ends,
        ends_ns=line.ends_ns,
        lumps=line.lumps,
        lumps_ns=line.lumps_ns,
    )


def _file_name(trial: str) -> str:
    """A trial as a part of a file's name."""
    return "".join(letter if letter.isalnum() or letter in "-._" else "-" for letter in trial)[-80:]


def _without_network(contacts: Contacts | None, log: Path) -> str:
    """What to say about the network if a run fails that had none: nothing unless the end of its output speaks of it."""
    if not failed_network(log):
        return ""
    reached = peers_text((peer.name, peer.attempts) for peer in contacts.peers) if contacts is not None else ""
    return f"; it had no network{f' and wanted to reach {reached}' if reached else ''}: see --allow-network"


def _misplaced(exit_code: int, argv: Sequence[str]) -> str:
    """What to say if a program refuses an option that was meant for us."""
    given = next((word for word in argv if word.partition("=")[0] in OWN), "")
    refused = exit_code == USAGE and given
    return f"; {given} went to the program; put options of whatif before the script" if refused else ""


def _check(outcome: launch.Outcome, label: str, log: Path, hint: str) -> None:
    if outcome.given_up:
        raise TargetError(f"the run {label}: {outcome.given_up}; its output: {shown(log)}")
    # A program may end in its own way, and Python exits with 1 where it is interrupted as it starts.
    if outcome.exit_code and signal.SIGINT in {-outcome.exit_code, outcome.asked_to_end}:
        raise KeyboardInterrupt
    if outcome.exit_code and outcome.asked_to_end == signal.SIGTERM:
        raise SystemExit(ENDED)
    if outcome.exit_code:
        how = f"signal {-outcome.exit_code}" if outcome.exit_code < 0 else f"exit code {outcome.exit_code}"
        raise TargetError(f"the run {label} ended with {how}; its output: {shown(log)}{hint}")
    if outcome.session is None:
        raise CaptureError(f"the run {label}: {'; '.join(outcome.messages) or 'nothing was recorded'}")


def _report(session: Path, label: str) -> Report:
    alone = session / ALONE_JSON
    try:
        return msgspec.json.decode((alone if alone.exists() else session / REPORT_JSON).read_bytes(), type=Report)
    except (OSError, msgspec.DecodeError) as error:
        raise CaptureError(f"the run {label} has no report: {error}; see: stepscope report {shown(session)}") from error


def _note(session: Path, report: Report, trial: str) -> str:
    """Why a trial was not in effect; "" if it was."""
    if trial in {"", OTHER}:
        return ""
    if trial == C_LIBRARY and (static := _static(session)):
        return f"{static} is linked into the program itself, before any library: link it again {REBUILD}"
    if trial in ENVIRONMENT_REMEDIES:
        return next((d.text for d in report.diagnostics if d.code == _NOT_IN_EFFECT), "")
    lines = [line for worker in open_session(session).workers for line in worker.all(InterventionEnded)]
    said = [line for line in lines if (line.name, line.argument) == trials.split(trial)]
    if not said:
        return "no process of the job imported TensorFlow or Keras"
    if any(line.outcome == "in-effect" for line in said):
        return ""
    return next((line.text for line in said if line.text), "it did not take hold")


def _static(session: Path) -> str:
    """The allocator that is a part of the program; "" if none is."""
    known = (worker.info.allocator for worker in open_session(session).workers)
    return next((one.name for one in known if one is not None and one.how == "static"), "")


def _lost(session: Path, report: Report, kept: tuple[str, ...]) -> str:
    """Which kept change the trial has put out of effect, and why; "" if none."""
    whys = ((one, _note(session, report, one)) for one in kept)
    return next((f"with it, {one} is not in effect: {why}" for one, why in whys if why), "")


def measure_of(ran: Sequence[TrialRun]) -> Measure:
    """What all of some runs have."""
    for measure in ("sample", "step"):
        if all(one.ns(measure) for one in ran):
            return measure
    return "run"
