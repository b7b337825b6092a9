"""The value trial of ``whatif``: one run, what it claims, and the trials that time the claims."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from stepscope._version import __version__
from stepscope.experiments import interventions
from stepscope.experiments.plan import Candidate
from stepscope.experiments.values import measured
from stepscope.experiments.values.claims import MIN_RATIO, derive
from stepscope.launcher import mask
from stepscope.model.frameworks import parts_of
from stepscope.model.log.values import FunctionWatched, ValueSeen
from stepscope.model.report.whatif import WhatIfClaim, WhatIfPlace, WhatIfReport, WhatIfRun, WhatIfValues
from stepscope.store import open_session
from stepscope.tables.errors import TargetError
from stepscope.use_cases.record import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.experiments.values.claims import Claim, LineOps
    from stepscope.model.report.op_table import OpTable
    from stepscope.model.report.report import Report
    from stepscope.model.report.whatif import WhatIfResult
    from stepscope.use_cases.whatif.recorded import RecordedRuns
    from stepscope.use_cases.whatif.runs import Runner, TrialRun

NAME = "values"
COMPUTES, EXPLAINED = 0.5, 0.3
"""Share of compute in the step from which values are looked at without being asked, and share of the step from which a
suggested trial explains enough. Guesses about compute (XLA, other types) are expected to save 0.2 at most."""
MAX_FIRST_NS = 10_000_000_000
"""Time of the first steps up to which it is done: a graph that is traced for longer is traced for minutes with a look
at each tensor (cases 57 and 62 of docs/benchmarks/whatif-values.md)."""
LEAST_S = 100.0
"""Time that must be left: a look takes 20 to 60 s (docs/benchmarks/whatif-values.md), three rounds of its trial as
long."""
TIMED = 3
"""Claims that are timed, the largest: each costs a run in each round."""
MAX_ARGUMENT = 2_000
"""Characters of op names that a trial is given."""
NO_OPS = "no op of a step was seen"
TOO_MANY = "other claims are larger"
NO_TRIAL = "leaving out these ops would not leave out the needless part alone"
UNDECIDED = "its trial decided nothing: more rounds or a quieter machine are needed"
NO_NAMES = "too many ops to leave out by name"


class ValueLook(Struct, frozen=True, kw_only=True):
    """The value trial's run and what it claims."""

    runner: Runner
    ran: TrialRun | None
    """None: the run failed."""
    values: WhatIfValues

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The same, with what each may save: a share of the work by shapes, at most."""
        return tuple(
            Candidate(trial=claim.trial, kind="ceiling", expected_ratio=claim.ratio, reason=f"values: {claim.kind}")
            for claim in self.values.claims
            if claim.trial
        )

    @property
    def trials(self) -> tuple[str, ...]:
        """Trials that time the claims."""
        return tuple(claim.trial for claim in self.values.claims if claim.trial)

    def joined(self, report: WhatIfReport) -> WhatIfReport:
        """The report of the rounds with the claims in it, each with its time."""
        results = {one.remedy: one for one in report.results}
        claims = tuple(_timed(claim, results.get(claim.trial)) for claim in self.values.claims)
        values = msgspec.structs.replace(self.values, claims=claims)
        return msgspec.structs.replace(report, values=values, runs=(*self._runs(), *report.runs))

    def alone(self) -> WhatIfReport:
        """The report where nothing else was tried, and nothing is claimed that could be timed."""
        return WhatIfReport(
            version=__version__,
            command=tuple(mask.mask_command(self.runner.argv)),
            measure="run",
            rounds=0,
            ns=0,
            results=(),
            runs=self._runs(),
            folder=shown(self.runner.folder),
            isolated=self.runner.isolation is not None,
            network=self.runner.networked,
            values=self.values,
        )

    def _runs(self) -> tuple[WhatIfRun, ...]:
        if self.ran is None:
            return ()
        return (WhatIfRun(round=0, remedy=NAME, ns=0, findings=(), session=self.ran.session),)


def is_worth(report: Report, candidates: Sequence[Candidate], left_s: float) -> bool:
    """Whether to look without being asked: the steps compute, and nothing that is suggested explains much of it."""
    times = report.session.step_times
    traced_ns = times.warmup_ns if times is not None else 0
    compute = sum(part.ratio for part in report.anatomy if part.component == "call")
    best = max((one.expected_ratio for one in candidates), default=0.0)
    reached = interventions.reaches(NAME, parts_of(report.session.framework))
    return reached and compute >= COMPUTES and best < EXPLAINED and left_s >= LEAST_S and traced_ns <= MAX_FIRST_NS


def others(trials: Sequence[str]) -> list[str]:
    """The trials that take time."""
    return [trial for trial in trials if trial != NAME]


def look(recorded: RecordedRuns) -> ValueLook:
    """Run the value trial.

    Raises:
        CaptureError: nothing could be recorded.
    """
    runner, say = recorded.runner, recorded.say
    say("values: one run that looks at what the steps compute")
    try:
        ran = recorded.looked(NAME)
    except TargetError as error:
        return ValueLook(runner=runner, ran=None, values=WhatIfValues(note=str(error)))
    looked = ValueLook(runner=runner, ran=ran, values=seen(runner.folder / ran.session, ran, _table(recorded)))
    said = ", ".join(f"{claim.kind} {100 * claim.ratio:.0f} %" for claim in looked.values.claims)
    say(f"values: {looked.values.note or said or 'nothing that need not be computed'}")
    return looked


def _table(recorded: RecordedRuns) -> OpTable | None:
    """Op times of the run with captures, if there was one."""
    return next((ran.report.ops for ran in recorded.looks if not ran.kept), None)


def seen(session: Path, ran: TrialRun, table: OpTable | None = None) -> WhatIfValues:
    """What the process of a value trial that computes most has seen; ``table``: op times of the unchanged job."""
    found = [(list(one.all(FunctionWatched)), list(one.all(ValueSeen))) for one in open_session(session).workers]
    functions, values = max(found, key=lambda one: sum(function.spent_ns for function in one[0]), default=([], []))
    if not any(value.type for value in values):
        return WhatIfValues(note=ran.note or NO_OPS, session=ran.session, wall_ns=round(1e9 * ran.wall_s))
    return WhatIfValues(
        claims=tuple(_claim(claim, place) for place, claim in enumerate(_by_time(derive(values, functions), table))),
        tensors=sum(1 for value in values if value.type),
        left_out=max((one.left_out for one in functions), default=0),
        steps=max((value.steps for value in values), default=0),
        same_batch_steps=max((one.same_batch_calls for one in functions), default=0),
        wall_ns=round(1e9 * ran.wall_s),
        session=ran.session,
    )


def _by_time(claims: Sequence[Claim], table: OpTable | None) -> list[Claim]:
    """Claims by measured times where their ops were traced, the largest first; none that is too little by time."""
    shares = measured.times(table)
    timed = [measured.with_times(claim, shares) for claim in claims]
    return sorted((claim for claim in timed if claim.ratio >= MIN_RATIO), key=lambda claim: -claim.ratio)


def _claim(claim: Claim, place: int) -> WhatIfClaim:
    """A claim, with the trial that times it if there is one."""
    names = "+".join(claim.ends)
    why = NO_TRIAL if not names else NO_NAMES if len(names) > MAX_ARGUMENT else TOO_MANY if place >= TIMED else ""
    return WhatIfClaim(
        kind=claim.kind,
        ratio=round(claim.ratio, 4),
        text=claim.text,
        remedy=claim.remedy,
        places=tuple(_place(one) for one in claim.places),
        ops=claim.ops,
        trial="" if why else f"without-ops:{names}",
        note=why,
        basis=claim.basis,
    )


def _place(place: LineOps) -> WhatIfPlace:
    file = shown(Path(place.file)) if place.file else ""
    return WhatIfPlace(file=file, line=place.line, function=place.function, ratio=round(place.ratio, 4))


def _timed(claim: WhatIfClaim, result: WhatIfResult | None) -> WhatIfClaim:
    if result is None:
        return claim
    if result.verdict in {"not-possible", "not-tried"}:
        return msgspec.structs.replace(claim, note=result.note or "the trial was not possible")
    if result.verdict == "undecided":
        return msgspec.structs.replace(claim, note=UNDECIDED)
    return msgspec.structs.replace(claim, time_ratio=result.ratio, time_low=result.low, time_high=result.high)
