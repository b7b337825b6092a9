"""``whatif --until-done``, as people read it."""

import msgspec
import pytest
from tests.reports.test_whatif_text import REPORT

from stepscope.model.report.whatif import Verdict, WhatIfNoise, WhatIfReport, WhatIfResult, WhatIfStep, WhatIfWay
from stepscope.reports import whatif_way_text


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


def render(way: WhatIfWay = WAY, **fields: object) -> list[str]:
    """The lines of a report with a way."""
    report = msgspec.structs.replace(UNTIL_DONE, way=way, **fields)
    return whatif_way_text.render(report, way).splitlines()


def test_steps_total_lines_and_what_is_left_in_this_order() -> None:
    lines = render()
    heads = [
        "step 1: graph is kept",
        "also tried: xla-on -20.0 % (-21.6 to -18.4)",
        "step 2: xla-on is kept",
        "step 3: nothing is kept",
        "tried: prefetch +0.0 % (-2.0 to +2.0)",
        "all together, measured against the unchanged job in the same rounds:",
        "to keep all of it:",
        "  leave run_eagerly=True out",
        "  model.compile(..., jit_compile=True)",
        "not kept, because they change the results (--allow-changed-results keeps them):",
        "ceilings that are left: the most that any further change of this part can bring",
        "xla-off       not possible: nothing turns it on",
        "no-callbacks  not tried: there was no time for it",
    ]
    assert [line for line in lines if line in heads] == heads
    assert lines[2] == "unchanged     1 ms    (against itself +0.0 %, -1.0 to +1.0)"
    assert "              400 us    -60.0 % (-60.8 to -59.2)  faster" in lines


@pytest.mark.parametrize(
    ("way", "answer"),
    [
        (
            WAY,
            "together graph, xla-on make a step 2.5 times as fast; it ended because no trial is a sure gain over 3 %",
        ),
        (
            msgspec.structs.replace(WAY, left=(), total=tried("", 0.4, "undecided"), stop="time"),
            "together graph, xla-on seem to make a step 2.5 times as fast; it ended because the time is over: raise",
        ),
        (
            msgspec.structs.replace(WAY, left=(), total=tried("", 0.4, "faster", keeps_results=False)),
            "together graph, xla-on make a step 2.5 times as fast, but change the results; it ended",
        ),
        (
            msgspec.structs.replace(WAY, left=(), total=None, stop="interrupted"),
            "kept: graph, xla-on; it ended because",
        ),
        (
            msgspec.structs.replace(WAY, kept=(), lasting=(), total=None),
            "nothing is kept: no trial is a sure gain over 3 % any more; the ceilings that are left: compute-only -10",
        ),
    ],
)
def test_the_answer_is_one_sentence(way: WhatIfWay, answer: str) -> None:
    text = " ".join(render(way)).replace("  ", " ")
    assert answer in text


def test_a_combination_that_fails_is_said() -> None:
    failed = tried("graph + xla-on", 1.0, "not-possible", ns=0, note="no steady steps")
    assert "all together: not possible: no steady steps" in render(msgspec.structs.replace(WAY, total=failed))


def test_an_early_end_says_how_to_resume() -> None:
    way = msgspec.structs.replace(WAY, stop="interrupted")
    lines = render(way, interrupted=True, resume="stepscope whatif --resume a.whatif")
    assert lines[-1] == "ended early; to resume: stepscope whatif --resume a.whatif"
