"""Curves, as people read them."""

import msgspec
from tests.report.whatif_samples import BATCH, point

from stepscope.report.whatif import curve_text as whatif_curve_text


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
    as_fast = msgspec.structs.replace(threads, lasting="")
    assert whatif_curve_text.lines(as_fast, "step", 120)[-1] == (
        "None is more than 5 % faster than the unchanged job; the smallest that is as fast: 1."
    )


def test_no_knee_is_said() -> None:
    stays = msgspec.structs.replace(BATCH, knee="", stopped="")
    assert whatif_curve_text.lines(stays, "sample", 120)[-1] == (
        "No size is more than 5 % faster than the unchanged one."
    )
    none = msgspec.structs.replace(BATCH, knee=None)
    assert whatif_curve_text.lines(none, "sample", 120)[-1].startswith("No size of batch could be measured.")
