"""Claims of the value trial and their times in one report."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.report.samples import clean

from stepscope.experiments.plan import Candidate
from stepscope.model.report.report import Component
from stepscope.model.report.whatif import Verdict, WhatIfClaim, WhatIfReport, WhatIfResult, WhatIfValues
from stepscope.use_cases.whatif.runs import Runner
from stepscope.use_cases.whatif.values import UNDECIDED, ValueLook, is_worth, others

RUNNER = Runner(argv=("python", "train.py"), other=(), folder=Path("tried"), seconds=5.0, isolation=None)
TIMED = WhatIfClaim(kind="constant", ratio=0.3, text="", remedy="", trial="without-ops:Solve")
UNTIMED = WhatIfClaim(kind="padding", ratio=0.2, text="", remedy="", note="cannot be left out")
LOOKED = ValueLook(runner=RUNNER, ran=None, values=WhatIfValues(claims=(TIMED, UNTIMED)))


def joined(verdict: Verdict, note: str = "") -> tuple[WhatIfClaim, ...]:
    """The claims after the rounds."""
    result = WhatIfResult(
        remedy="without-ops:Solve",
        text="",
        ns=1,
        ratio=0.6,
        low=0.5,
        high=0.7,
        verdict=verdict,
        kind="ceiling",
        note=note,
    )
    report = msgspec.structs.replace(LOOKED.alone(), rounds=3, results=(result,))
    values = LOOKED.joined(report).values
    assert values is not None
    return values.claims


def test_the_trials_are_those_of_claims_that_can_be_timed() -> None:
    """What is tried in rounds is what was asked for but the look, and what times a claim."""
    assert others(["values", "batch:4"]) == ["batch:4"]
    assert LOOKED.trials == ("without-ops:Solve",)


def test_a_claim_has_the_time_of_its_trial() -> None:
    """A decided trial gives its ratio and interval to its claim alone."""
    timed, untimed = joined("faster")
    assert (timed.time_ratio, timed.time_low, timed.time_high) == (0.6, 0.5, 0.7)
    assert untimed == UNTIMED


@pytest.mark.parametrize(
    ("verdict", "note", "said"),
    [("undecided", "", UNDECIDED), ("not-possible", "its loss has no gradient", "its loss has no gradient")],
)
def test_no_time_without_an_answer(verdict: Verdict, note: str, said: str) -> None:
    """A trial that decided nothing, or was not possible, gives no time, and the claim says why."""
    timed, _ = joined(verdict, note)
    assert (timed.time_ratio, timed.note) == (0.0, said)


def test_a_report_without_rounds() -> None:
    """Where nothing is timed the report holds the claims, and nothing that looks like a measurement."""
    report: WhatIfReport = LOOKED.alone()
    assert (report.rounds, report.ns, report.results, report.values) == (0, 0, (), LOOKED.values)


def test_values_are_looked_at_where_compute_is_not_explained() -> None:
    """Steps that compute, a weak suggestion and enough time; not where one of the three is missing."""
    part = Component(component="call", pipeline_stage="forward-backward", ratio=0.9, ns_per_step=1)
    computing = msgspec.structs.replace(clean(), anatomy=(part,))
    waiting = msgspec.structs.replace(clean(), anatomy=(msgspec.structs.replace(part, component="input-wait"),))
    weak, strong = (
        Candidate(trial="xla-on", kind="gain", expected_ratio=ratio, reason="compute") for ratio in (0.2, 0.6)
    )
    assert is_worth(computing, (weak,), 150.0)
    assert is_worth(computing, (), 150.0)
    assert not is_worth(computing, (weak, strong), 150.0)
    assert not is_worth(computing, (weak,), 60.0)
    assert not is_worth(waiting, (weak,), 150.0)
    assert computing.session.step_times is not None
    slow = msgspec.structs.replace(computing.session.step_times, warmup_ns=30_000_000_000)
    session = msgspec.structs.replace(computing.session, step_times=slow)
    assert not is_worth(msgspec.structs.replace(computing, session=session), (weak,), 150.0), "a long trace"


def test_a_claim_is_tried_by_its_share() -> None:
    """What times a claim is expected to save the share of its work, and says why it is tried."""
    (candidate,) = LOOKED.candidates
    assert (candidate.trial, candidate.kind) == ("without-ops:Solve", "ceiling")
    assert (candidate.expected_ratio, candidate.reason) == (0.3, "values: constant")
