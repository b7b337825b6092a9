"""What remedies brought, as people read it."""

import msgspec
import pytest
from tests.report.whatif_samples import CLAIM, REPORT, RESULT

from stepscope.model.report.whatif import (
    Choice,
    Verdict,
    WhatIfClaim,
    WhatIfNoise,
    WhatIfPart,
    WhatIfPeer,
    WhatIfResult,
    WhatIfValues,
)
from stepscope.report.whatif import text as whatif_text


def test_a_line_for_each() -> None:
    assert whatif_text.render(REPORT).splitlines() == [
        "python 'my score.py' · 5 interleaved rounds · time of a step (tf.function score)",
        "",
        "unchanged      12.4 ms",
        "",
        "gains:",
        "jemalloc-keep  11.3 ms   -9.0 % (-10.3 to -7.5)  faster",
        "               gone: MEM002",
        "               let jemalloc keep what is freed",
        "glibc-keep     12.5 ms   +1.0 % (-5.0 to +7.0)  undecided",
        "               --apply glibc-keep is not in effect",
        "               let malloc keep what is freed",
        "",
        "best: jemalloc-keep makes a step 1.1 times as fast",
        "page: score-1122-1530.whatif/whatif.html",
        "the job wrote where it writes",
    ]


def _tried(name: str, ratio: float, verdict: Verdict, **fields: object) -> WhatIfResult:
    half = 0.01 * ratio
    made = WhatIfResult(
        remedy=name, text="what it does", ns=1, ratio=ratio, low=ratio - half, high=ratio + half, verdict=verdict
    )
    return msgspec.structs.replace(made, **fields)


def test_time_and_change_are_of_the_same_pairs() -> None:
    """The unchanged runs are others than the blocks of a trial that is switched."""
    one = _tried("stub:t2.py:11", 0.332, "faster", ns=8_610_000, before_ns=25_900_000, pairs=12)
    lines = whatif_text.render(msgspec.structs.replace(REPORT, rounds=1, ns=10_500_000, results=(one,))).splitlines()
    assert lines[0] == "python 'my score.py' · 1 interleaved round · time of a step (tf.function score)"
    assert "stub:t2.py:11  25.9 ms to 8.61 ms  -66.8 % (-67.1 to -66.5)  faster" in lines


def test_a_line_to_paste_is_not_wrapped() -> None:
    """That of a setting of the environment, on however narrow a terminal; an edit of the code is."""
    line = f"export MALLOC_CONF={'dirty_decay_ms:10000,' * 8}"
    setting = msgspec.structs.replace(RESULT, lasting=line, peak_before_bytes=1 << 30, peak_after_bytes=1 << 29)
    lines = whatif_text.render(msgspec.structs.replace(REPORT, results=(setting,)), width=60).splitlines()
    assert f"               {line}" in lines
    assert "               peak memory: 1 GiB to 512 MiB" in lines


def test_a_gain_that_is_sure_in_cpu_time_alone_is_told() -> None:
    """With the line that keeps it: on a machine that others use as well, the time on the wall says nothing."""
    cpu = {"cpu_ratio": 0.91, "cpu_low": 0.88, "cpu_high": 0.94}
    one = _tried("jemalloc-keep", 0.73, "undecided", lasting="export A=1", **cpu)
    lines = whatif_text.render(msgspec.structs.replace(REPORT, results=(one,)), width=200).splitlines()
    assert "               CPU time of a step: -9.0 % (-12.0 to -6.0)" in lines
    assert "               export A=1" in lines
    assert any(line.endswith("sure in CPU time, whatever else the machine does: jemalloc-keep -9 %") for line in lines)
    unsure = msgspec.structs.replace(one, cpu_high=1.01)
    assert "export" not in whatif_text.render(msgspec.structs.replace(REPORT, results=(unsure,)))


def test_ceilings_stand_apart_and_what_was_not_measured_last() -> None:
    ceiling = _tried("compute-only", 0.2, "faster", kind="ceiling", lasting="the input pipeline", keeps_results=False)
    left = _tried("xla-on", 1.0, "not-tried", note="there was no time for it")
    none = _tried("graph", 1.0, "not-possible", note="no fit is run eagerly")
    lines = whatif_text.render(msgspec.structs.replace(REPORT, results=(RESULT, ceiling, left, none))).splitlines()
    heads = ("gains:", "ceilings: the most that any change of this part can bring")
    last = "xla-on         not tried: there was no time for it"
    assert lines.index(heads[0]) < lines.index(heads[1]) < lines.index(last)
    assert "               look at: the input pipeline" in lines
    assert "               what it does (changes the results)" in lines
    assert "graph          not possible: no fit is run eagerly" in lines


@pytest.mark.parametrize(
    ("results", "answer"),
    [
        ((_tried("a", 0.5, "faster"),), "best: a makes a step 2 times as fast"),
        ((_tried("a", 0.5, "faster", keeps_results=False),), "best: a makes a step 2 times as fast, but changes the"),
        (
            (_tried("a", 0.4, "faster", kind="ceiling"), _tried("b", 1.0, "same")),
            "no gain that lasts is sure; the time",
        ),
        ((_tried("a", 0.4, "faster", kind="ceiling"),), "the time is in the work that is left out here: a saves 60 %"),
        ((_tried("a", 1.0, "same", kind="ceiling"), _tried("b", 1.1, "slower")), "nothing worth changing; the ceil"),
        ((_tried("b", 1.0, "same"),), "nothing worth changing"),
        ((_tried("b", 0.9, "undecided"),), "nothing is decided"),
        ((_tried("b", 1.0, "not-possible"),), "nothing that was tried is possible"),
        ((_tried("a", 1.0, "same"), _tried("b", 0.9, "undecided")), "nothing worth changing among what is decided"),
    ],
)
def test_the_answer_is_one_sentence(results: tuple[WhatIfResult, ...], answer: str) -> None:
    text = whatif_text.render(msgspec.structs.replace(REPORT, results=results))
    assert text.splitlines()[-3].startswith(answer)


def test_only_what_saves_time_is_where_the_time_is() -> None:
    """A ceiling that brings nothing says that the time is elsewhere."""
    results = (_tried("a", 0.4, "faster", kind="ceiling"), _tried("b", 1.0, "same", kind="ceiling"))
    told = whatif_text.conclusion(msgspec.structs.replace(REPORT, results=results))
    assert told.endswith("left out here: a saves 60 %")


def test_a_long_name_has_a_line_of_its_own() -> None:
    long = _tried("stub:examples/in_a_folder/train.py:33", 0.5, "faster", kind="ceiling")
    lines = whatif_text.render(msgspec.structs.replace(REPORT, results=(RESULT, long))).splitlines()
    at = lines.index("stub:examples/in_a_folder/train.py:33")
    assert lines[at + 1].startswith(" " * 26 + "1 ns")
    assert lines[2].startswith("unchanged".ljust(26))


def test_once_is_no_interval() -> None:
    once = _tried("a", 0.5, "undecided", rounds=1)
    assert whatif_text.change_text(msgspec.structs.replace(once, low=0.0, high=0.0)) == "-50.0 % (seen once)"


def test_what_can_be_tried_is_listed_by_kind() -> None:
    choices = [
        Choice(name="compute-only", kind="ceiling", text="Batches again.", limits=""),
        Choice(name="batch:K", kind="gain", text="Larger batches.", limits="a size in the program."),
    ]
    lines = whatif_text.catalogue(choices).splitlines()
    assert lines[1:3] == ["  batch:K", "      Larger batches. Limits: a size in the program."]
    assert lines[-2:] == ["  compute-only", "      Batches again."]


def test_colors() -> None:
    assert "\x1b[1;32mfaster\x1b[0m" in whatif_text.render(REPORT, color=True)


def test_narrow_terminals() -> None:
    long = msgspec.structs.replace(RESULT, text="let jemalloc keep what is freed, " * 4)
    text = whatif_text.render(msgspec.structs.replace(REPORT, results=(long,)), width=20)
    assert text.count("let jemalloc") == 4
    assert max(len(line) for line in text.splitlines()[1:]) <= 60


def test_what_the_job_wanted_to_reach_is_said() -> None:
    """Peers with their attempts, what is not Python's, and what follows from it; with the network only who they are."""
    peers = (WhatIfPeer(peer="s3.example.com:443", attempts=3), WhatIfPeer(peer="", attempts=1))
    quiet = msgspec.structs.replace(REPORT, peers=peers, isolated=True, network=False, trackers=("MLflow", "W&B"))
    *_, network, offline, reached = whatif_text.render(quiet, width=200).splitlines()
    assert network == "what the job wrote was thrown away, and it had no network"
    assert offline == "set offline: MLflow, W&B"
    assert reached == (
        "the job wanted to reach: s3.example.com:443 (3 times), something outside, by code that is not Python "
        "(1 time); without network this may change its time: --allow-network"
    )
    last = whatif_text.render(msgspec.structs.replace(quiet, network=True), width=200).splitlines()[-1]
    assert last.startswith("the job wants to reach: s3.example.com:443 (3 times), something")
    assert "--allow-network" not in last


def test_many_peers_are_counted() -> None:
    """Six are named, the others are counted."""
    assert whatif_text.peers_text((f"host-{number}", 9 - number) for number in range(8)).endswith(
        "host-5 (4 times), and 2 more"
    )


def test_the_step_falls_part_by_part() -> None:
    """Each component's bar begins where the one above ends; what a trial has saved stands next to it."""
    parts = (
        WhatIfPart(component="input-wait", ratio=0.7, ns=7, trial="compute-only", saved_ratio=0.68, low=0.6, high=0.7),
        WhatIfPart(component="call", ratio=0.295, ns=3),
        WhatIfPart(component="gc", ratio=0.005, ns=1),
    )
    lines = whatif_text.render(msgspec.structs.replace(REPORT, parts=parts)).splitlines()
    at = lines.index("the step of the unchanged job, part by part, and what leaving a part out has saved")
    assert lines[at + 1 : at + 4] == [
        f"input wait   70 %  {'█' * 21}{' ' * 9}  compute-only saves 68 % (60 to 70)",
        f"compute      30 %  {' ' * 21}{'█' * 9}",
        "",
    ]


def test_what_is_promising_is_named_where_nothing_is_decided() -> None:
    """The two trials with the largest effect so far, and none that shows no effect."""
    seen = [_tried(name, ratio, "undecided") for name, ratio in (("a", 0.9), ("b", 0.2), ("c", 0.5), ("d", 1.0))]
    report = msgspec.structs.replace(REPORT, results=tuple(seen))
    said = whatif_text.conclusion(report)
    assert said.startswith("nothing is decided: ")
    assert said.endswith("; so far: b -80 %, c -50 %")
    none = msgspec.structs.replace(REPORT, results=(_tried("d", 1.0, "undecided"),))
    assert whatif_text.conclusion(none).endswith("(--rounds, --time)")


def test_values_stand_below_the_rounds() -> None:
    """A claim has its lines, ops, remedy and time; without rounds there is no table."""
    values = WhatIfValues(claims=(CLAIM,), tensors=53, steps=10, same_batch_steps=4)
    text = whatif_text.render(msgspec.structs.replace(REPORT, values=values))
    assert text.index("glibc-keep") < text.index("values: 53 tensors") < text.index("best: jemalloc-keep")
    alone = whatif_text.render(msgspec.structs.replace(REPORT, rounds=0, results=(), values=values), width=80)
    assert alone.splitlines()[:11] == [
        "python 'my score.py'",
        "",
        "values: 53 tensors in 10 steps and 4 on the same batch",
        "  constant: 37 % of the work (by shapes, no share of time): gives the same value",
        "      in all of 10 steps",
        "      at train.py:17 loss (32 %)",
        "      ops: Cholesky, Solve, Mul ...",
        "      instead: compute it once",
        "      time without these ops: -40.0 % (-45.0 to -35.0), the most that a way",
        "      around them can bring",
        "",
    ]


@pytest.mark.parametrize(
    ("claim", "line"),
    [
        (msgspec.structs.replace(CLAIM, time_high=1.01), "time: leaving these ops out makes no step faster"),
        (msgspec.structs.replace(CLAIM, time_ratio=0.0, note="its trial failed"), "not timed: its trial failed"),
    ],
)
def test_no_time_is_claimed_that_was_not_measured(claim: WhatIfClaim, line: str) -> None:
    """A claim whose trial showed nothing says so."""
    report = msgspec.structs.replace(REPORT, values=WhatIfValues(claims=(claim,), tensors=1, steps=10))
    assert line in whatif_text.render(report)


def test_clean_values() -> None:
    """Nothing claimed, and nothing possible, are different lines."""
    clean = msgspec.structs.replace(REPORT, values=WhatIfValues(tensors=9, steps=10, left_out=3))
    assert "values: 9 tensors in 10 steps, 3 more left out\n  nothing that need not be computed" in whatif_text.render(
        clean
    )
    none = msgspec.structs.replace(REPORT, values=WhatIfValues(note="no step was seen"))
    assert "values: not possible: no step was seen\n\n" in whatif_text.render(none)


def test_how_a_trial_was_measured() -> None:
    """In one process, with its noise; in whole runs, and why; or in whole runs because nothing else is possible."""
    noise = WhatIfNoise(ratio=1.01, low=0.98, high=1.04)
    switched = msgspec.structs.replace(RESULT, rounds=1, pairs=12, noise=noise)
    said = "switched on and off in one process: 12 pairs of blocks; off against off +1.0 %, -2.0 to +4.0"
    assert whatif_text.how_text(switched) == said
    assert said in " ".join(whatif_text.render(msgspec.structs.replace(REPORT, results=(switched,))).split())
    assert "each of 2 processes" in whatif_text.how_text(msgspec.structs.replace(switched, rounds=2))
    whole = msgspec.structs.replace(RESULT, whole_why="too few steps")
    assert whatif_text.how_text(whole) == "compared in whole runs; within one run it could not be: too few steps"
    assert whatif_text.how_text(RESULT) == ""
