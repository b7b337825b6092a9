"""Jobs with an experiment: what its trials and claims say is chosen here."""

from __future__ import annotations

import msgspec
from tests.derive.sessions import MS, SCRIPT, Job
from tests.detectors.jobs import CALL, train_loop

from stepscope.model.report.whatif import ClaimKind, WhatIfClaim, WhatIfPlace, WhatIfResult
from stepscope.model.session.experiment import Experiment

EXPERIMENT = "experiment"


def tried(*results: WhatIfResult, claims: tuple[WhatIfClaim, ...] = ()) -> Job:
    """A loop of compute that was the unchanged job of an experiment."""
    job = train_loop(90 * MS)
    job.resources["experiment"] = Experiment(measure="step", rounds=3, results=results, claims=claims)
    return job


def result(ratio: float, remedy: str = "parallel-map", *, width: float = 0.02, **fields: object) -> WhatIfResult:
    """A gain that is faster, with its interval; other fields may be given."""
    made = WhatIfResult(
        remedy=remedy,
        text="maps run in parallel",
        ns=1,
        ratio=ratio,
        low=ratio - width,
        high=ratio + width,
        verdict="faster",
        rounds=3,
        lasting="num_parallel_calls=tf.data.AUTOTUNE",
    )
    return msgspec.structs.replace(made, **fields)


def claim(ratio: float, kind: ClaimKind = "zeros", *, width: float = 0.02, line: int = CALL) -> WhatIfClaim:
    """A claim with the time without its ops; 0: it was not timed."""
    return WhatIfClaim(
        kind=kind,
        ratio=0.8,
        text="computes with zeros: 99.99 % of the numbers",
        remedy="a lookup",
        places=(WhatIfPlace(file=SCRIPT, line=line, function="main", ratio=0.8),),
        ops=("MatMul",),
        time_ratio=ratio,
        time_low=ratio - width if ratio else 0.0,
        time_high=ratio + width if ratio else 0.0,
        note="" if ratio else "its trial failed",
    )
