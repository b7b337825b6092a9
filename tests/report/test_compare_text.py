"""A comparison as people read it."""

from __future__ import annotations

import re
from typing import Literal

import msgspec
import pytest

from stepscope.model.report.compare import ComparedSession, CompareReport, Difference, FindingChange, Gate
from stepscope.report import compare_text
from stepscope.tables.place import Place

BASE = ComparedSession(
    path="base/1.stepscope",
    id="x",
    command=("python", "train.py"),
    host="near",
    cpus=2,
    framework="tensorflow 2.21.0",
    steps=400,
    step="Keras fit",
)
MAIN = Difference(
    section="steps", name="mean", unit="ns", before=40e6, after=43.2e6, ratio=1.08, low=1.055, high=1.106,
    smallest=0.024, runs=5, verdict="slower",
)  # fmt: skip
RATE = Difference(
    section="throughput", name="samples_per_s", unit="1/s", before=800.0, after=741.0, ratio=0.926, low=0.904,
    high=0.948, smallest=0.024, runs=5, verdict="slower",
)  # fmt: skip
LINE = Difference(
    section="ops", name="MatMul", unit="ns", basis="ops", where=Place(file="train.py", line=12, function="Model.call"),
    before=9e6, after=33e6, ratio=3.667, low=3.1, high=4.3, smallest=0.05, runs=5, verdict="slower",
)  # fmt: skip
SHARE = Difference(
    section="python", name="a|b = load(*x)", unit="ratio", basis="samples", after=0.031, runs=5, verdict="new",
)  # fmt: skip
MEMORY = Difference(
    section="run",
    name="memory_peak",
    unit="bytes",
    basis="run",
    before=2 << 30,
    after=1 << 30,
    ratio=0.5,
    runs=1,
    verdict="undecided",
)
REPORT = CompareReport(
    version="0.1.0",
    before=(BASE, BASE),
    after=(msgspec.structs.replace(BASE, path="new/1.stepscope", steps=0),),
    design="unpaired",
    basis="step",
    level=0.99,
    main=MAIN,
    differences=(RATE, MEMORY, LINE, SHARE),
    findings=(FindingChange(change="new", code="INP003", title="the <generator> waits", severity="high"),),
    notes=("hosts differ: A near; B far\x1b[2J",),
    stacks="stepscope flame diff a b",
    gate=Gate(limit_ratio=0.05, outcome="slower", exit_code=1, text="slower: +8.0 % (+5.5 % to +10.6 %), limit 5 %"),
)

VERDICT = (
    "verdict B is slower: +8.0 % time (+5.5 % to +10.6 %), 40 ms to 43.2 ms a step; groups of runs, 5 runs a side, "
    "99 % interval; noise hides changes below 2.4 %"
)


def test_text_of_everything() -> None:
    """The verdict first, then the gate and the notes, then a table for each section, in columns."""
    assert compare_text.text(REPORT).splitlines()[:6] == [
        "A  base/1.stepscope and 1 more · 800 steps · Keras fit · tensorflow 2.21.0",
        "B  new/1.stepscope · no steps seen · Keras fit · tensorflow 2.21.0",
        "",
        VERDICT,
        "gate    slower: +8.0 % (+5.5 % to +10.6 %), limit 5 %",
        "note    hosts differ: A near; B far\ufffd[2J",
    ]
    rows = [re.split(r"\s{2,}", line) for line in compare_text.text(REPORT).splitlines()[6:]]
    assert ["samples/s", "800", "741", "-7.4 %", "timed", "-9.6 % to -5.2 %", "below 2.4 %", "slower"] in rows
    assert ["mean", "40 ms", "43.2 ms", "+8.0 %", "timed", "+5.5 % to +10.6 %", "below 2.4 %", "slower"] in rows
    assert ["memory of all processes, peak", "2 GiB", "1 GiB", "-50.0 %", "whole run", "undecided"] in rows
    assert [
        "train.py:12 call",
        "MatMul",
        "9 ms",
        "33 ms",
        "3.67 x",
        "ops",
        "3.1 x to 4.3 x",
        "below 5.0 %",
        "slower",
    ] in rows
    assert ["a|b = load(*x)", "-", "3.1 %", "samples", "new"] in rows
    assert "new   INP003 the <generator> waits (high)" in compare_text.text(REPORT)
    assert compare_text.text(REPORT).splitlines()[-1] == "stacks  stepscope flame diff a b"


def test_steps_of_a_killed_run_are_a_bound() -> None:
    """Those that were only counted last were lost with the process."""
    killed = msgspec.structs.replace(BASE, steps_at_least=True)
    assert "· at least 800 steps ·" in compare_text.text(msgspec.structs.replace(REPORT, before=(BASE, killed)))
    assert "at least" not in compare_text.text(REPORT)


def test_columns_stand_below_each_other() -> None:
    """The verdicts of all tables begin in one column."""
    lines = compare_text.text(REPORT).splitlines()
    heads = {line.index("verdict") for line in lines if line.endswith("verdict")}
    ends = {line.index(line.split()[-1], 60) for line in lines if re.search(r"(slower|undecided|new)$", line)}
    assert len(heads) == 1
    assert ends == heads


def test_times_per_sample_are_named_so() -> None:
    """Where batches differ, the tables of times say that they are per sample."""
    shown = compare_text.text(msgspec.structs.replace(REPORT, basis="sample"))
    assert "op time by line, a sample" in shown
    assert "43.2 ms a sample" in shown


def test_verdict_without_an_interval() -> None:
    """A single run without steps has a ratio, and it is said that nothing bounds it."""
    main = msgspec.structs.replace(MEMORY, name="wall", unit="ns", before=1e9, after=2e9, ratio=2.0)
    shown = compare_text.text(msgspec.structs.replace(REPORT, main=main, basis="run", gate=None))
    assert "verdict +100.0 % (1 s to 2 s the run), without an interval" in shown
    none = compare_text.text(msgspec.structs.replace(REPORT, main=None))
    assert "verdict no time can be compared" in none


def test_markdown_tables_are_whole() -> None:
    """Every row has as many cells as its head, whatever lines of code hold, and nothing of a session is markup."""
    shown = compare_text.render_markdown(REPORT)
    assert shown.startswith("## stepscope: B is slower: +8.0 % time")
    for block in shown.split("\n\n"):
        rows = [line for line in block.splitlines() if line.startswith("|")]
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) <= 1
    assert "`a\\|b = load(*x)`" in shown
    assert "the \\<generator\\> waits" in shown
    assert "\x1b" not in shown


def test_numbers_that_say_nothing_more_are_cut() -> None:
    """An end at a million times, and a smallest change of a thousand times."""
    wide = msgspec.structs.replace(LINE, high=1e6, smallest=1e3)
    shown = compare_text.text(msgspec.structs.replace(REPORT, differences=(wide,)))
    assert "3.1 x to over 100 x  below 1000 %" in re.sub(r"\s{3,}", "  ", shown)


def test_sentences_are_wrapped_beyond_their_label() -> None:
    """On a terminal of 80 columns."""
    lines = compare_text.text(REPORT, width=80).splitlines()
    assert lines[3] == "verdict B is slower: +8.0 % time (+5.5 % to +10.6 %), 40 ms to 43.2 ms a step;"
    assert lines[4].startswith(" " * 8 + "groups of runs")


def test_colors() -> None:
    """Slower is red, and only on a terminal."""
    assert "\x1b[1;31mgate" in compare_text.text(REPORT, color=True)
    assert "\x1b" not in compare_text.text(REPORT)


def test_the_part_that_changed_most_stands_in_the_verdict() -> None:
    """A component with most of a decided difference is named at once; not one that changed little, or may not have."""
    wait = msgspec.structs.replace(MAIN, section="anatomy", name="input-wait", before=5e6, after=8e6)
    more = msgspec.structs.replace(REPORT, differences=(wait, *REPORT.differences))
    assert compare_text.verdict(more).startswith("B is slower, mostly in input wait (5 ms to 8 ms): +8.0 % time")
    for other in ({"after": 6e6}, {"verdict": "undecided"}, {"before": 8e6, "after": 5e6, "verdict": "faster"}):
        rows = (msgspec.structs.replace(wait, **other), *REPORT.differences)
        assert compare_text.verdict(msgspec.structs.replace(REPORT, differences=rows)).startswith("B is slower: ")


def test_components_are_parts_of_the_timed_steps() -> None:
    """Where others were only counted, what makes most is judged by the mean of the timed ones, and said so."""
    wait = msgspec.structs.replace(MAIN, section="anatomy", name="input-wait", before=5e6, after=8e6)
    timed = msgspec.structs.replace(MAIN, name="mean-timed", before=30e6, after=34e6)
    shown = msgspec.structs.replace(REPORT, differences=(timed, wait, *REPORT.differences))
    assert "mostly in input wait (5 ms to 8 ms of a timed step): +8.0 %" in compare_text.verdict(shown)
    assert "components, a timed step" in compare_text.text(shown)
    much = msgspec.structs.replace(timed, after=44e6)
    shown = msgspec.structs.replace(REPORT, differences=(much, wait, *REPORT.differences))
    assert "mostly" not in compare_text.verdict(shown)


@pytest.mark.parametrize(
    ("ratio", "verdict", "said"),
    [
        (0.966, "faster", "B is faster: -3.4 % time (-4.4 % to -2.4 %)"),
        (1.034, "slower", "B is slower: +3.4 % time (+2.4 % to +4.4 %)"),
    ],
)
def test_sign_and_word_agree(ratio: float, verdict: Literal["faster", "slower"], said: str) -> None:
    """Less time is faster, more is slower: nothing is -3.4 % slower."""
    main = msgspec.structs.replace(
        MAIN, after=MAIN.before * ratio if MAIN.before else None, ratio=ratio, low=ratio - 0.01, high=ratio + 0.01,
        verdict=verdict,
    )  # fmt: skip
    assert compare_text.verdict(msgspec.structs.replace(REPORT, main=main)).startswith(said)
