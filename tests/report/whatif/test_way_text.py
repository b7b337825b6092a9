"""``whatif --until-done``, as people read it."""

import msgspec
import pytest
from tests.report.whatif_samples import UNTIL_DONE, WAY, tried

from stepscope.model.report.whatif import WhatIfWay
from stepscope.report.whatif import way_text as whatif_way_text


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


def test_one_change_is_said_in_the_singular() -> None:
    """A way that kept one change does not say that several make it faster together."""
    alone = msgspec.structs.replace(WAY, kept=("graph",))
    assert any(line.startswith("graph makes a step 2.5 times as fast; it ended") for line in render(alone))
