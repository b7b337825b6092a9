"""Curves, as people read them."""

import msgspec

from stepscope.model.report.whatif import WhatIfCurve, WhatIfPoint
from stepscope.reports import whatif_curve_text


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


def test_a_row_for_each_size_and_the_knee() -> None:
    assert whatif_curve_text.lines(BATCH, "sample", 120) == [
        "",
        "batch size, times      samples/s      memory  change",
        "x1/2                         600       1 GiB  -40 % (-41 to -39)        ██████",
        "x1 (unchanged)             1,000       1 GiB                            ██████████",
        "x2                         2,000       1 GiB  +100 % (+98 to +102)      ████████████████████  <- knee",
        "                    round 2 failed: it died",
        "x4                  not possible: the run 1-batch-4 ended with signal 9",
        "To set the knee, the smallest within 5 % of the best: batch_size=64. No larger one: x4 is not possible.",
    ]


def test_threads_have_no_factor_and_the_unchanged_job_no_number() -> None:
    threads = msgspec.structs.replace(
        BATCH,
        name="threads",
        points=(point("", 0.0, 1000.0), point("threads:1", 1.0, 500.0, peak_bytes=0, low=0.0, high=0.0)),
        knee="threads:1",
        stopped="",
    )
    rows = whatif_curve_text.lines(threads, "step", 120)[1:]
    assert rows[0].split() == ["threads", "steps/s", "memory", "change"]
    assert rows[1].split()[:2] == ["unchanged", "1,000"]
    assert rows[2].split()[:5] == ["1", "500", "unknown", "-50", "%"]


def test_no_knee_is_said() -> None:
    stays = msgspec.structs.replace(BATCH, knee="", stopped="")
    assert whatif_curve_text.lines(stays, "sample", 120)[-1] == (
        "No size is more than 5 % faster than the unchanged one."
    )
    none = msgspec.structs.replace(BATCH, knee=None)
    assert whatif_curve_text.lines(none, "sample", 120)[-1].startswith("No size of batch could be measured.")
