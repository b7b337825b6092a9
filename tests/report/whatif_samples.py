"""Reports of experiments for the tests of what shows them."""

from __future__ import annotations

import msgspec

from stepscope.model.report.whatif import (
    Verdict,
    WhatIfClaim,
    WhatIfCurve,
    WhatIfNoise,
    WhatIfPlace,
    WhatIfPoint,
    WhatIfReport,
    WhatIfResult,
    WhatIfStep,
    WhatIfWay,
)

RESULT = WhatIfResult(
    remedy="jemalloc-keep",
    text="let jemalloc keep what is freed",
    ns=11_300_000,
    ratio=0.91,
    low=0.897,
    high=0.925,
    verdict="faster",
    gone=("MEM002",),
)
SLOWER = WhatIfResult(
    remedy="glibc-keep",
    text="let malloc keep what is freed",
    ns=12_500_000,
    ratio=1.01,
    low=0.95,
    high=1.07,
    verdict="undecided",
    note="--apply glibc-keep is not in effect",
)
REPORT = WhatIfReport(
    version="0.1.0",
    command=("python", "my score.py"),
    measure="step",
    step="tf.function score",
    rounds=5,
    ns=12_400_000,
    results=(RESULT, SLOWER),
    runs=(),
    folder="score-1122-1530.whatif",
)


def tried(name: str, ratio: float, verdict: Verdict, **fields: object) -> WhatIfResult:
    """A trial of three rounds."""
    made = WhatIfResult(
        remedy=name,
        text="what it does",
        ns=round(1e6 * ratio),
        ratio=ratio,
        low=0.98 * ratio,
        high=1.02 * ratio,
        verdict=verdict,
        rounds=3,
    )
    return msgspec.structs.replace(made, **fields)


CLAIM = WhatIfClaim(
    kind="constant",
    ratio=0.37,
    text="gives the same value in all of 10 steps",
    remedy="compute it once",
    places=(WhatIfPlace(file="train.py", line=17, function="loss", ratio=0.32),),
    ops=("Cholesky", "Solve", "Mul", "Add"),
    trial="without-ops:Solve",
    time_ratio=0.6,
    time_low=0.55,
    time_high=0.65,
)
GRAPH = tried("graph", 0.5, "faster", lasting="leave run_eagerly=True out")
XLA = tried("xla-on", 0.8, "faster")
IMPOSSIBLE = tried("xla-off", 1.0, "not-possible", ns=0, note="nothing turns it on")
WAY = WhatIfWay(
    steps=(
        WhatIfStep(kept=(), ns=1_000_000, winner="graph", results=(GRAPH, XLA, IMPOSSIBLE), rounds=3),
        WhatIfStep(kept=("graph",), ns=500_000, winner="xla-on", results=(XLA,), rounds=3),
        WhatIfStep(
            kept=("graph", "xla-on"), ns=400_000, winner="", results=(tried("prefetch", 1.0, "same"),), rounds=3
        ),
    ),
    kept=("graph", "xla-on"),
    lasting=("leave run_eagerly=True out", "model.compile(..., jit_compile=True)"),
    total=tried("graph + xla-on", 0.4, "faster"),
    left=(
        tried("batch:4", 0.5, "faster", keeps_results=False),
        tried("compute-only", 0.9, "faster", kind="ceiling"),
        tried("no-callbacks", 1.0, "not-tried", kind="ceiling", ns=0, note="there was no time for it"),
    ),
    changed_results=False,
    stop="no-gain",
)
NOISE = WhatIfNoise(ratio=1.0, low=0.99, high=1.01)
UNTIL_DONE: WhatIfReport = msgspec.structs.replace(
    REPORT, ns=1_000_000, noise=NOISE, way=WAY, results=WAY.steps[0].results
)


def point(trial: str, size: float, rate: float, **fields: object) -> WhatIfPoint:
    """A size with its rate; the unchanged job makes 1000 samples/s."""
    ratio = 1000 / rate if rate else 1.0
    made = WhatIfPoint(
        trial=trial,
        size=size,
        ns=round(1e9 / rate) if rate else 0,
        rate=rate,
        ratio=ratio,
        low=0.99 * ratio,
        high=1.01 * ratio,
        rounds=3,
        peak_bytes=1 << 30,
    )
    return msgspec.structs.replace(made, **fields)


BATCH = WhatIfCurve(
    name="batch",
    points=(
        point("batch:1/2", 0.5, 600.0),
        point("", 1.0, 1000.0, low=0.0, high=0.0),
        point("batch:2", 2.0, 2000.0, note="round 2 failed: it died"),
        point("batch:4", 4.0, 0.0, note="the run 1-batch-4 ended with signal 9"),
    ),
    knee="batch:2",
    lasting="batch_size=64",
    stopped="x4 is not possible",
    limit_bytes=4 << 30,
)
