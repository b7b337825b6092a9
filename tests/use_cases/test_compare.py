"""``stepscope compare``: what is compared with what, and what is said of it."""

from __future__ import annotations

import json

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace
from tests.derive.sessions import MS, S
from tests.use_cases.compared_sessions import NOISE, OTHER, group, named, run

from stepscope.derive.steps.totals import Total
from stepscope.model.report.compare import CompareReport, Difference
from stepscope.model.session.session import HostInfo
from stepscope.report import compare_text
from stepscope.tables.errors import UsageError
from stepscope.tables.place import Place
from stepscope.use_cases import compare
from stepscope.use_cases.comparing import design
from stepscope.use_cases.comparing.numbers import Line, LineNumber, SessionNumbers, file_key


def main_of(report: CompareReport) -> Difference:
    """The time that decides, which there must be."""
    assert report.main is not None
    return report.main


def test_planted_slow_down_of_groups_is_claimed() -> None:
    """8 % more time in each of five runs of B: slower, with the interval around it, and the gate fails."""
    report = compare.of_numbers(group(NOISE[:5]), group(NOISE[5:], factor=1.08, begin_s=1), 0.05)
    found = main_of(report)
    assert (report.design, report.basis, found.verdict, found.runs) == ("unpaired", "step", "slower", 5)
    assert found.low is not None
    assert found.high is not None
    assert 1.0 < found.low < 1.08 < found.high < 1.16
    assert report.gate is not None
    assert (report.gate.outcome, report.gate.exit_code) == ("slower", 1)
    assert named(report, "throughput", "steps_per_s").verdict == "slower"
    assert named(report, "throughput", "steps_per_s").ratio == pytest.approx(1 / 1.08, rel=0.02)
    assert named(report, "anatomy", "call").verdict == "slower"
    assert named(report, "anatomy", "input-wait").ratio == pytest.approx(1.0, rel=0.001)


def test_equal_groups_pass() -> None:
    """Two groups of one program: nothing is claimed of any number, and the gate passes."""
    report = compare.of_numbers(group(NOISE), group(OTHER, begin_s=1), 0.05)
    assert {one.verdict for one in (main_of(report), *report.differences)} <= {"undecided", "same"}
    assert report.gate is not None
    assert (report.gate.outcome, report.gate.exit_code) == ("pass", 0)
    assert report.findings == ()


def test_runs_that_vary_too_much_cannot_tell() -> None:
    """Three runs a side that vary by 3 %: exit code 3, with the number of runs that would tell."""
    wide = [2.5 * log for log in NOISE]
    report = compare.of_numbers(group(wide[:3]), group(wide[3:6], begin_s=1), 0.05)
    assert report.gate is not None
    assert (report.gate.outcome, report.gate.exit_code) == ("cannot-tell", 3)
    assert "runs a side would tell" in report.gate.text


@pytest.mark.parametrize(
    ("low", "ratio", "high", "outcome"),
    [
        (1.051, 1.08, 1.11, "slower"),
        (1.02, 1.06, 1.10, "slower"),
        (0.99, 1.06, 1.13, "cannot-tell"),
        (1.02, 1.045, 1.07, "cannot-tell"),
        (1.01, 1.03, 1.05, "pass"),
        (0.98, 1.01, 1.04, "pass"),
        (0.80, 0.85, 0.90, "pass"),
        (0.85, 1.00, 1.18, "cannot-tell"),
    ],
)
def test_rule_of_the_gate(low: float, ratio: float, high: float, outcome: str) -> None:
    """Fails if surely slower and the estimate is over the limit; passes if surely not over it."""
    found = Difference(
        section="steps",
        name="mean",
        unit="ns",
        ratio=ratio,
        low=low,
        high=high,
        smallest=0.03,
        runs=5,
        verdict="slower",
    )
    assert compare.judge(found, "unpaired", 0.05).outcome == outcome


def test_rounds_are_compared_in_pairs() -> None:
    """Ten runs a side, in turn on one machine, on a host whose speed wanders: pairs see 4 % that groups do not."""
    drift = np.cumsum(np.full(10, 0.02))
    before = group(list(drift + np.array(NOISE) / 4), every_s=2000)
    after = group(list(drift + np.array(OTHER) / 4), factor=1.04, begin_s=1000, every_s=2000)
    report = compare.of_numbers(before[::-1], after)
    assert report.design == "paired"
    assert main_of(report).verdict == "slower"
    apart = compare.of_numbers(before, [_later(one) for one in after])
    assert (apart.design, main_of(apart).verdict) == ("unpaired", "undecided")


def _later(one: SessionNumbers) -> SessionNumbers:
    manifest = msgspec.structs.replace(one.manifest, started_unix_ns=one.manifest.started_unix_ns + 100_000 * S)
    return replace(one, manifest=manifest)


def test_few_rounds_are_compared_as_groups() -> None:
    """Below eight rounds the degrees of freedom that pairs lose cost more than they gain."""
    before, after = group(NOISE[:7], every_s=2000), group(NOISE[:7], begin_s=1000, every_s=2000)
    assert not design.in_rounds(before, after)
    before, after = group(NOISE[:8], every_s=2000), group(NOISE[:8], begin_s=1000, every_s=2000)
    assert design.in_rounds(before, after)


def test_median_step_decides_where_long_steps_move_the_mean() -> None:
    """Stalls of the host make the mean undecided: the median step fails the gate, and passes none."""
    before, after = group(NOISE[:5]), group(NOISE[5:], factor=1.08, begin_s=1)
    report = compare.of_numbers(before, [_stalled(one, 10 * i * S) for i, one in enumerate(after)], 0.05)
    assert (main_of(report).verdict, report.typical is not None and report.typical.verdict) == ("undecided", "slower")
    assert report.gate is not None
    assert report.gate.exit_code == 1
    assert "median step" in report.gate.text
    assert "a step in the median" in compare.render(report, "text")
    assert "the verdict is that of the median step; the mean step and the rates" in report.notes[0]
    equal = compare.of_numbers(before, [_stalled(one, 10 * i * S) for i, one in enumerate(group(NOISE[5:]))], 0.05)
    assert equal.gate is not None
    assert equal.gate.exit_code == 3


def _stalled(one: SessionNumbers, stall_ns: int) -> SessionNumbers:
    """The same run with one step that is longer by ``stall_ns``."""
    assert one.durations is not None
    durations = one.durations.copy()
    durations[20] += stall_ns
    summary = one.report.session
    rates = msgspec.structs.replace(summary.throughput, steps_per_s=1e9 / float(durations.mean()))
    report = msgspec.structs.replace(one.report, session=msgspec.structs.replace(summary, throughput=rates))
    assert one.total is not None
    total = replace(one.total, ns=float(durations.sum()))
    return replace(one, durations=durations, report=report, total=total)


def test_one_run_a_side_is_compared_within() -> None:
    """8 % more is what two runs of one program differ by: it is undecided, and how many runs would decide is said."""
    report = compare.of_numbers([run(seed=1)], [run("b", step_ns=108 * MS, seed=2)], 0.05)
    found = main_of(report)
    assert (report.design, found.verdict, found.runs) == ("within", "undecided", 1)
    assert "does not show how runs of one program differ" in report.notes[0]
    assert report.gate is not None
    assert report.gate.exit_code == 3
    assert found.runs_needed is not None
    said = compare_text.verdict(report)
    assert said.startswith("undecided: +8")
    assert f"it is not known how much runs vary; about {found.runs_needed} a side would decide it" in said


def counted(name: str, *, steps: int, mean_ms: float, seed: int, timed: int = 60, every: int = 12) -> SessionNumbers:
    """A run that timed few of its steps, with one long step among every few, and counted the others."""
    made = run(name, seed=seed)
    assert made.durations is not None
    random = np.random.default_rng(seed)
    durations = np.full(timed, 0.2 * mean_ms * MS)
    durations[random.permutation(timed)[: random.integers(1, timed // every)]] = mean_ms * every * MS
    total = Total(count=steps - seed, ns=(steps - seed) * mean_ms * MS, made=steps, timed=timed)
    return replace(made, durations=durations, total=total)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("factor", "word", "code"), [(0.45, "faster", 0), (2.2, "slower", 1)])
def test_totals_of_the_same_work_decide_a_factor_of_two(seed: int, factor: float, word: str, code: int) -> None:
    """748 steps on both sides, of which 60 were timed: which long ones are among those says nothing."""
    one = counted("a", steps=748, mean_ms=44, seed=seed)
    other = counted("b", steps=748, mean_ms=44 * factor, seed=seed + 100)
    report = compare.of_numbers([one], [other], 0.05)
    found = main_of(report)
    assert found.ratio == pytest.approx(factor)
    assert (found.verdict, found.basis) == (word, "total")
    assert found.runs_needed == 3
    assert report.gate is not None
    assert report.gate.exit_code == code
    assert "all of the same work" in compare_text.verdict(report)
    assert named(report, "throughput", "steps_per_s").ratio == pytest.approx(1 / factor)
    assert named(report, "steps", "p90").basis == "timed"
    assert one.durations is not None
    assert named(report, "steps", "mean-timed").before == pytest.approx(one.durations.mean())


def test_other_work_is_not_called_the_same() -> None:
    """As many steps decide by their total; other numbers of steps by the mean of all that were counted."""
    one = counted("a", steps=748, mean_ms=44, seed=1)
    report = compare.of_numbers([one], [counted("b", steps=400, mean_ms=20, seed=2)])
    assert (main_of(report).basis, main_of(report).verdict) == ("counted", "faster")
    assert "all steps, those included that were only counted" in compare_text.verdict(report)


def test_calls_of_one_side_alone_are_no_row() -> None:
    """A side whose records were lost tells no counts: then nothing is new."""
    line = {Line("", "fit", "keras fit"): LineNumber(value=1.0, place=None, name="fit")}
    report = compare.of_numbers([replace(run(seed=1), calls={})], [replace(run("b", seed=2), calls=line)])
    assert not any(one.section == "tasks" for one in report.differences)


def test_what_a_run_pays_once_has_no_verdict_from_one_run_a_side() -> None:
    """Imports take nine times as long on a busy machine; the evaluations of the same work are another matter."""
    phases = {"steps": 7e9, "imports": 1e9, "evaluation": 2e9}
    slower = {**phases, "imports": 9e9, "evaluation": 18e9}
    sides = [replace(run(name, seed=1), phases=found) for name, found in (("a", phases), ("b", slower))]
    report = compare.of_numbers(sides[:1], sides[1:])
    assert {one.name: one.verdict for one in report.differences if one.section == "ledger"} == {
        "evaluation": "slower",
        "imports": "undecided",
        "steps": "undecided",
    }


def test_calls_are_decided_by_one_run_a_side() -> None:
    """76 calls and one are other numbers, whatever the noise; equal counts have no row."""
    line = Line("", "predict", "keras predict")
    same = Line("", "fit", "keras fit")
    sides = [
        replace(
            run(name, seed=seed),
            calls={key: LineNumber(value=n, place=None, name=key.text) for key, n in ((line, count), (same, 5.0))},
        )
        for name, seed, count in (("a", 1, 76.0), ("b", 2, 75.0))
    ]
    report = compare.of_numbers(sides[:1], sides[1:])
    (found,) = (one for one in report.differences if one.section == "tasks")
    assert (found.name, found.before, found.after, found.verdict, found.basis) == (
        "keras predict", 76.0, 75.0, "less", "counted",
    )  # fmt: skip


@pytest.mark.parametrize("spread", [0.001, 0.01, 0.05])
@pytest.mark.parametrize("uneven", [False, True])
def test_two_runs_a_side_decide_twenty_times_their_spread(spread: float, *, uneven: bool) -> None:
    """Also where the two of one side happen to agree, so that only the other side shows a spread."""
    one, other = (0.0, 2.0 * spread) if uneven else (spread * 2**0.5, spread * 2**0.5)
    before = [_taking(number, 100.0 * float(np.exp(log))) for number, log in enumerate((0.0, one))]
    shift = 20.0 * spread + (one - other) / 2.0
    after = [_taking(number, 100.0 * float(np.exp(shift + log))) for number, log in ((2, 0.0), (3, other))]
    assert main_of(compare.of_numbers(before, after)).verdict == "slower"


def _taking(number: int, mean_ms: float) -> SessionNumbers:
    """A run with this mean step."""
    return replace(run(f"{number}", seed=number), total=Total(count=60, ns=60 * mean_ms * MS, made=61, timed=60))


def test_one_run_a_side_fails_the_gate_where_runs_never_differ_so_much() -> None:
    """Twice the time is more than runs of one program differ on a busy host."""
    report = compare.of_numbers([run(seed=1)], [run("b", step_ns=200 * MS, seed=2)], 0.05)
    assert report.gate is not None
    assert report.gate.exit_code == 1


def test_one_run_against_a_group() -> None:
    """The group's variation stands for both, and a note says so."""
    report = compare.of_numbers(group(NOISE), [run("new", step_ns=120 * MS, seed=77)])
    assert (report.design, main_of(report).verdict) == ("unpaired", "slower")
    assert "one run against a group" in report.notes[0]


def test_batches_of_other_size_are_compared_per_sample() -> None:
    """Twice the batch in 1.5 times the step: a third more samples a second, and a note says what is compared."""
    report = compare.of_numbers([run(seed=1)], [run("b", batch=64, step_ns=150 * MS, seed=2)])
    assert report.basis == "sample"
    assert main_of(report).ratio == pytest.approx(0.75, rel=0.02)
    assert main_of(report).before == pytest.approx(100 * MS / 32, rel=0.02)
    assert "batches differ (32 and 64 samples a step): times are per sample" in report.notes
    assert named(report, "throughput", "samples_per_s").ratio == pytest.approx(1 / 0.75, rel=0.02)
    assert named(report, "throughput", "steps_per_s").low is None
    assert named(report, "anatomy", "input-wait").ratio == pytest.approx(0.5, rel=0.01)


def test_side_without_steps() -> None:
    """What is left is compared, and what is not is said; the gate cannot tell from one run a side."""
    report = compare.of_numbers([run(seed=1)], [replace(run("b", seed=2), durations=None)], 0.05)
    assert report.basis == "run"
    assert "no steps in B: only whole runs, op traces and findings are compared" in report.notes
    assert (main_of(report).section, main_of(report).name) == ("run", "wall")
    assert {one.section for one in report.differences} <= {"run", "ledger"}
    assert report.gate is not None
    assert report.gate.exit_code == 3


def test_session_without_steps_in_a_group_counts_for_the_run_alone() -> None:
    """Steps are compared in the others."""
    before = [*group(NOISE[:5]), replace(run("none", seed=9), durations=None)]
    report = compare.of_numbers(before, group(NOISE[5:], begin_s=1))
    assert (report.basis, main_of(report).runs) == ("step", 5)
    assert "no steps in 1 of 6 sessions of A: they count for wall time and memory only" in report.notes


def test_op_traces_without_steps() -> None:
    """Imported traces have lines and no steps of ours: their lines are compared."""
    line = {Line("train.py", "f", "f"): LineNumber(value=1e6, place=None, name="f")}
    sides = [replace(run(name, seed=seed), durations=None, ops=line) for name, seed in (("a", 1), ("b", 2))]
    report = compare.of_numbers(sides[:1], sides[1:])
    assert (report.basis, named(report, "ops", "f").ratio) == ("run", 1.0)


def test_lines_are_known_by_their_text() -> None:
    """A line that an edit moved is the same line; where it now stands is shown."""
    at = [Place(file="train.py", line=line, function="load") for line in (5, 9)]
    tables = [{Line("train.py", "load", "return read(path)"): LineNumber(value=1e6, place=p, name="Read")} for p in at]
    before, after = replace(run(seed=1), ops=tables[0]), replace(run("b", seed=2), ops=tables[1])
    report = compare.of_numbers([before], [after])
    found = named(report, "ops", "Read")
    assert (found.ratio, found.verdict) == (1.0, "undecided")
    assert found.where == at[1]


def test_programs_of_other_names_have_lines_in_common() -> None:
    """The program itself is one file to both sides; its modules are known by their names, wherever they lie."""
    manifest = run(seed=1).manifest
    other = msgspec.structs.replace(manifest, command=("python", "-u", "new/fast.py"))
    assert file_key(manifest, "/job/train.py") == file_key(other, "/elsewhere/new/fast.py") == ""
    assert file_key(manifest, "/job/data.py") == file_key(other, "/elsewhere/new/data.py") == "data.py"


def test_shares_of_samples_are_compared() -> None:
    """The line on which all samples lie has the same share on both sides; its text comes from the session's sources."""
    report = compare.of_numbers([run(seed=1)], [run("b", seed=2)])
    found = named(report, "python", "return read(path)")
    assert (found.before, found.after, found.verdict) == (1.0, 1.0, "same")
    assert found.where == Place(file="train.py", line=5, function="load")


def test_what_else_differs_is_noted() -> None:
    """Hosts, CPU counts, commands: one line each; what is equal has none."""
    other = run("b", host=HostInfo(name="far", cpus=8), seed=2)
    report = compare.of_numbers([run(seed=1)], [other])
    assert "hosts differ: A near; B far" in report.notes
    assert "CPU counts differ: A 2; B 8" in report.notes
    assert not any("commands" in note or "frameworks" in note for note in report.notes)


def test_failed_runs_are_noted() -> None:
    """The time of a job that failed may mean nothing."""
    report = compare.of_numbers([run(seed=1)], [run("b", exit_code=3, seed=2)])
    assert "exit code 3 in 1 of 1 runs of B" in report.notes


def test_claims_of_one_comparison_share_their_error() -> None:
    """Every number but the one that decides has a wider interval than it would have alone."""
    report = compare.of_numbers(group(NOISE[:5]), group(NOISE[5:], begin_s=1))
    found, decides = named(report, "steps", "p90"), main_of(report)
    assert found.smallest is not None
    assert decides.smallest is not None
    assert found.smallest > 1.3 * decides.smallest


def test_json_is_the_schema() -> None:
    """What is printed for programs is read back as the report."""
    report = compare.of_numbers([run(seed=1)], [run("b", seed=2)], 0.05)
    assert msgspec.json.decode(compare.to_json(report), type=CompareReport) == report
    assert json.loads(compare.to_json(report))["schema"] == "stepscope.compare/1"


@pytest.mark.parametrize(("text", "limit"), [("5%", 0.05), ("5 %", 0.05), ("0.05", 0.05), ("2.5%", 0.025), ("0", 0.0)])
def test_limits(text: str, limit: float) -> None:
    """With or without the sign of percent."""
    assert compare.parse_limit(text) == pytest.approx(limit)


@pytest.mark.parametrize("text", ["", "much", "-5%", "5%%"])
def test_bad_limits(text: str) -> None:
    """What is no share is refused."""
    with pytest.raises(UsageError, match="not a share of the time"):
        compare.parse_limit(text)
