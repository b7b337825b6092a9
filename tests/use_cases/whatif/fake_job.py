"""A job that runs in no time, for experiments: its reports say how fast it was."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace
from tests.report.samples import clean

from stepscope.experiments import combine
from stepscope.experiments.blocks import BlockVerdict
from stepscope.launcher.peers import Contacts, Peer
from stepscope.model.report.step_summary import Throughput
from stepscope.tables.errors import CaptureError, TargetError
from stepscope.use_cases.whatif import options, state
from stepscope.use_cases.whatif.options import WhatIfOptions
from stepscope.use_cases.whatif.recorded import RecordedRuns
from stepscope.use_cases.whatif.runs import NO_CAPTURES, Runner, TrialRun

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

RUN_S = 10.0
BATCH = 32


@dataclass(slots=True)
class Made:
    """What was run, and what it said."""

    changes: list[tuple[str, ...]] = field(default_factory=list)
    """What was in effect in each run that was made."""
    lines: list[str] = field(default_factory=list)
    reports: dict[str, TrialRun] = field(default_factory=dict)
    """Runs by session."""


class FakeRunner(Runner, frozen=True, kw_only=True):
    """Runs that say 1000 samples/s times the factors of what is in effect."""

    factors: dict[str, float]
    made: Made
    fails: frozenset[str] = frozenset()
    """Trials whose runs fail."""
    silent: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Trials whose blocks say nothing, and why."""
    interrupted_at: int = 1_000_000
    """Number of the run in which the user presses Ctrl-C."""

    def run(
        self,
        number: int,
        trial: str,
        *,
        kept: tuple[str, ...] = (),
        stage: str = "",
        budget: str = NO_CAPTURES,
        seconds: float | None = None,
        most_s: float = 0.0,
        switched: bool = False,
    ) -> TrialRun:
        """A run."""
        del budget, seconds, most_s
        changes = combine.merged(kept, trial)
        if len(self.made.changes) + 1 == self.interrupted_at:
            raise KeyboardInterrupt
        self.made.changes.append(changes)
        if trial in self.fails:
            raise TargetError(f"the run {trial} ended with signal 9")
        rate = 1000.0 * (1 + 0.001 * (len(self.made.changes) % 3))
        for change in changes:
            rate *= self.factors.get(change, 1.0)
        session = f"{len(self.made.reports)}.stepscope"
        ran = _ran(number, trial, session, rate, kept, stage)
        if switched:
            ran = replace(ran, judged=_blocks(self.factors.get(trial, 1.0), self.silent.get(trial, "")))
        self.made.reports[session] = ran
        return ran

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
        """A run that was made."""
        ran = self.made.reports.get(session)
        if ran is None:
            raise CaptureError(f"{session} has no report")
        assert (ran.judged is not None) == switched
        assert (ran.round, ran.trial, ran.kept, ran.stage, ran.wall_s) == (number, trial, kept, stage, wall_s)
        return replace(ran, contacts=None)  # those are in the state alone


def _blocks(factor: float, why: str) -> BlockVerdict:
    """Four pairs of blocks, with steps of 32 ms, and of as much less with the trial."""
    times = [32e6 * (1 + 0.001 * number) for number in range(4)]
    return BlockVerdict(why=why) if why else BlockVerdict(pairs=tuple((ns, ns / factor) for ns in times))


def _ran(number: int, trial: str, session: str, rate: float, kept: tuple[str, ...], stage: str) -> TrialRun:
    sample = clean()
    throughput = Throughput(samples_per_s=rate, steps_per_s=rate / BATCH)
    report = msgspec.structs.replace(
        sample,
        session=msgspec.structs.replace(sample.session, throughput=throughput),
        series={"res:rss_mb": (100.0, 300.0, 200.0)},
    )
    contacts = Contacts(peers=(Peer(name="example.org:443", attempts=3),))
    return TrialRun(
        round=number,
        trial=trial,
        session=session,
        report=report,
        wall_s=RUN_S,
        kept=kept,
        stage=stage,
        contacts=contacts,
    )


def recorded(
    folder: Path,
    factors: dict[str, float],
    *,
    made: Made | None = None,
    fails: frozenset[str] = frozenset(),
    silent: Mapping[str, str] | None = None,
    interrupted_at: int = 1_000_000,
) -> tuple[RecordedRuns, Made]:
    """The runs of an experiment in a folder: a new one, or, if it holds one, that one resumed."""
    made = made or Made()
    wanted = WhatIfOptions(argv=("python", "train.py"))
    runner = FakeRunner(
        argv=wanted.argv,
        other=(),
        folder=folder,
        seconds=5.0,
        isolation=None,
        factors=factors,
        made=made,
        fails=fails,
        silent=silent or {},
        interrupted_at=interrupted_at,
    )
    known = (folder / state.NAME).is_file()
    before = state.read(folder) if known else state.State(asked=options.asked(wanted, ""), rounds=5, seconds=180.0)
    return RecordedRuns(runner, before, made.lines.append, lambda recorded: None), made
