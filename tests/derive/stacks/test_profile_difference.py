"""What differs beyond the noise of sampling: found where it is, silent where it is not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from tests.derive.stack_profiles import of_samples, of_text

from stepscope.derive.stacks import profile_difference
from stepscope.derive.stacks.merge_profiles import function_of, paired
from stepscope.derive.stacks.profile_difference import Basis, Difference, difference, sample_weight
from stepscope.readers.stacks import detect, folded
from stepscope.tables.stacks import Frame, FrameKind, StackProfile

DATA = Path(__file__).resolve().parents[4] / "shared" / "data" / "stacks"
shared = pytest.mark.skipif(not DATA.is_dir(), reason="the shared data is not beside this checkout")


def compared(
    before: StackProfile, after: StackProfile, *, basis: Basis = "work", work: tuple[float, float] = (1.0, 1.0)
) -> Difference:
    return difference(paired(before, after, same=function_of), basis=basis, work=work)


def changed(found: Difference) -> dict[str, bool]:
    """Functions whose own weight changed, and whether it is more."""
    return {c.function.function: c.own.delta > 0 for c in found.functions if c.own.significant}


def random_profile(rng: np.random.Generator, rates: dict[str, float], **how: str) -> StackProfile:
    """Samples of a program whose functions are hit at these rates."""
    return of_text({stack: int(rng.poisson(rate)) for stack, rate in rates.items()}, **how)


RATES = {"main;step;matmul": 400.0, "main;step;relu": 120.0, "main;input;decode": 200.0} | {
    f"main;other{i}": 8.0 for i in range(30)
}


# ---- the pairs of the shared data


@shared
def test_the_pair_of_page_faults_differs() -> None:
    """The leaf without a name and memmove, by what the data's README states; memset and malloc are as they were."""
    pair = [detect.read_file(DATA / f"ort-page-faults-arena-{which}.folded")[0] for which in ("on", "off")]
    found = compared(*(replace(one, event="page-faults", unit="page-faults") for one in pair))
    assert found.significant
    assert (found.whole.before, found.whole.after, found.whole.significant) == (122_048, 192_592, True)
    assert changed(found) == {
        "[onnxruntime_pybind11_state.cpython-312-x86_64-linux-gnu.so]": True,
        "__memmove_avx512_unaligned_erms": True,
    }
    first = found.functions[0].own
    assert (first.before, first.after) == (15_296, 72_656)


@shared
@pytest.mark.parametrize("basis", ["work", "share"])
def test_the_pair_of_cpu_time_does_not_differ(basis: Basis) -> None:
    """No significant CPU change, although clear_page_erms was hit 22 times and then 4."""
    pair = [detect.read_file(DATA / f"ort-cpu-arena-{which}.folded")[0] for which in ("on", "off")]
    found = compared(*pair, basis=basis)
    assert not found.significant
    assert found.functions == ()
    assert found.tested > 5
    assert found.samples == (340, 353)


# ---- made pairs


def test_equal_programs_differ_once_in_twenty_at_most() -> None:
    """Two hundred pairs of one program, independent samples: hardly any shows a difference (the test is stricter)."""
    rng = np.random.default_rng(1)
    alarms = sum(compared(random_profile(rng, RATES), random_profile(rng, RATES)).significant for _ in range(200))
    assert alarms <= 10


def test_counts_that_vary_twice_as_much_give_no_alarm_either() -> None:
    """Samples that come in pairs are half as many: the dispersion that was measured is allowed for."""
    rng = np.random.default_rng(2)
    alarms = 0
    for _ in range(200):
        pair = [
            of_text({stack: 2 * int(rng.poisson(rate / 2)) for stack, rate in RATES.items()} | {"main;one": 1})
            for _ in range(2)
        ]
        alarms += compared(*pair).significant
    assert alarms <= 10


def test_a_function_that_doubled_is_found_alone() -> None:
    """What it calls and what calls it not, its neighbours not."""
    rng = np.random.default_rng(3)
    found = compared(random_profile(rng, RATES), random_profile(rng, RATES | {"main;input;decode": 400.0}))
    assert changed(found) == {"decode": True}


def test_a_tower_that_is_gone_is_found_and_makes_nothing_else_grow() -> None:
    """With a third of the time gone, the shares of all others rise; their work has not."""
    rng = np.random.default_rng(4)
    before = random_profile(rng, RATES | {"main;step;asm_exc_page_fault;clear_page": 300.0})
    found = compared(before, random_profile(rng, RATES))
    assert changed(found) == {"clear_page": False}
    totals = {c.function.function for c in found.functions if c.total.significant}
    assert totals >= {"asm_exc_page_fault", "clear_page"}
    assert not totals & {"matmul", "relu", "decode"}


def test_a_slower_host_is_no_difference() -> None:
    """Every function takes a fifth longer: the host's speed, where time is sampled; a real change where not."""
    rng = np.random.default_rng(5)
    slower = {stack: 1.2 * rate for stack, rate in RATES.items()}
    pair = random_profile(rng, RATES, unit="ns"), random_profile(rng, slower, unit="ns")
    found = compared(*pair)
    assert not found.significant
    assert found.speed == pytest.approx(1.2, abs=0.1)
    many = {stack: 30 * rate for stack, rate in RATES.items()}, {stack: 30 * rate for stack, rate in slower.items()}
    counted = compared(*(random_profile(rng, rates, unit="page-faults") for rates in many))
    assert counted.speed == 1
    assert counted.whole.significant


def test_a_host_cannot_explain_twice_the_time() -> None:
    """All functions twice as long is more than a host does: it is said of the whole."""
    rng = np.random.default_rng(6)
    doubled = {stack: 2 * rate for stack, rate in RATES.items()}
    found = compared(random_profile(rng, RATES), random_profile(rng, doubled))
    assert found.whole.significant
    assert found.speed == pytest.approx(1.3)


def test_work_and_shares() -> None:
    """Three times the work is no difference per work, and none in shares."""
    rng = np.random.default_rng(7)
    longer = {stack: 3 * rate for stack, rate in RATES.items()}
    pair = random_profile(rng, RATES), random_profile(rng, longer)
    assert compared(*pair).significant
    assert not compared(*pair, work=(100.0, 300.0)).significant
    assert not compared(*pair, basis="share").significant


def test_few_samples_show_nothing() -> None:
    """From nothing to five samples may be chance; from nothing to forty is not."""
    base = {"main;a": 500.0, "main;b": 301.0, "main;c": 99.0, "main;d": 70.0, "main;e": 3.0}
    assert not compared(of_text(base), of_text(base | {"main;new": 5})).functions
    assert changed(compared(of_text(base), of_text(base | {"main;new": 40}))) == {"new": True}


def test_small_changes_of_much_are_left_out() -> None:
    """With a million samples everything differs; below half a percent of the whole nobody cares."""
    base = {"main;a": 900_000.0, "main;b": 100_000.0, "main;c": 1_000.0, "main;d": 777.0, "main;e": 10.0}
    found = compared(of_text(base), of_text(base | {"main;c": 2_000}))
    assert "c" not in changed(found)
    assert compared(of_text(base), of_text(base | {"main;b": 140_000})).functions


def test_nothing_against_something() -> None:
    """An empty side is no division by zero; with enough on the other it is a difference."""
    nothing, little, much = of_text({"main;a": 0}), of_text({"main;a": 3, "main;b": 1}), of_text({"a": 500, "b": 3})
    assert not compared(nothing, nothing).significant
    assert compared(nothing, much).whole.significant
    assert compared(much, nothing).whole.significant
    assert not compared(nothing, little).whole.significant
    assert not compared(nothing, much, basis="share").significant


# ---- how many samples there are


def test_few_rows_share_their_divisor() -> None:
    """One stack of 500 has the divisor 500 by itself; beside the other profile it is 500 samples."""
    assert compared(of_text({"a": 500}), of_text({"a": 503})).samples == (500, 503)


def test_samples_behind_weights() -> None:
    """A common divisor is one sample's weight; counts that are known are taken; times are not counted."""
    assert sample_weight(of_text({"a": 32, "b": 48})) == 16
    assert sample_weight(of_text({"a": 3, "b": 4})) == 1
    times = of_text({"a": 123_456_789, "b": 987_654_321})
    assert sample_weight(times) == pytest.approx((123_456_789**2 + 987_654_321**2) / (123_456_789 + 987_654_321))
    known = of_text({"a": 30.0, "b": 10.0})
    known = replace(known, samples=replace(known.samples, count=np.array([3, 1])))
    assert sample_weight(known) == 10
    assert sample_weight(of_text({"a": 0})) == 1


def _jittered(rng: np.random.Generator, unit: int, leaves: Mapping[str, int]) -> StackProfile:
    """Rows of 10 ms each, with a jitter of some per cent, in ``unit`` to the second."""
    names, shares = list(leaves), np.array(list(leaves.values()), float)
    hit = rng.choice(names, 300, p=shares / shares.sum())
    rows = [f"main;{leaf} {round(unit * rng.uniform(0.0099, 0.0104))}" for leaf in hit]
    return folded.read("\n".join(rows).encode(), where="test")


@pytest.mark.parametrize("unit", [1_000_000, 10_000_000])
def test_times_with_jitter_are_no_counts(unit: int) -> None:
    """300 rows are 300 samples, whatever the clock's resolution: a program compared with itself does not differ."""
    rng = np.random.default_rng(7)
    leaves = {"a": 4, "b": 3, "c": 2, "d": 1}
    for _ in range(10):
        found = compared(_jittered(rng, unit, leaves), _jittered(rng, unit, leaves))
        assert not found.significant
        assert list(found.samples) == pytest.approx([300, 300], rel=0.03)
    other = compared(_jittered(rng, unit, leaves), _jittered(rng, unit, leaves | {"d": 10}))
    assert changed(other)["d"]


def test_times_with_a_unit_are_counted_by_period_only() -> None:
    """Rows of whole periods are so many samples; others one each. Sizes are never counted."""
    whole = of_text({"a": 30e6, "b": 50e6, "c": 10e6}, unit="ns")
    assert (sample_weight(whole), profile_difference.samples_known(whole)) == (10e6, True)
    for amounts in ({"a": 30_001_000, "b": 50_007_000, "c": 9_000}, {"a": 7, "b": 9, "c": 11}):
        times = of_text(amounts, unit="ns")
        assert not profile_difference.samples_known(times)
        assert times.total / sample_weight(times) < 3
    assert not profile_difference.samples_known(of_text({"a": 1024, "b": 2048}, unit="bytes"))
    assert profile_difference.samples_known(of_text({f"f{i}": 1 + i for i in range(9)}))


def test_binomial() -> None:
    """Twice the smaller tail; the normal distribution takes over where both agree."""
    assert profile_difference._binomial(0, 10, 0.5) == pytest.approx(2 / 1024)
    assert profile_difference._binomial(5, 10, 0.5) == 1
    assert profile_difference._binomial(10, 10, 0.5) == pytest.approx(2 / 1024)
    assert profile_difference._binomial(1, 10, 0.25) == pytest.approx(2 * (0.75**10 + 10 * 0.25 * 0.75**9))


# ---- two programs


def program(script: str, rates: dict[str, int], *, imported: str = "") -> StackProfile:
    """Samples of functions that a script calls in its own code, perhaps behind another file's."""
    outer = [Frame("<module>", f"/job/{script}", 90, kind=FrameKind.PYTHON)]
    if imported:
        outer.append(Frame("<module>", f"/job/{imported}", 3, kind=FrameKind.PYTHON))
    return of_samples(
        [
            (0, [*outer, Frame(name, f"/job/{imported or script}", 5, kind=FrameKind.PYTHON)])
            for name, count in rates.items()
            for _ in range(count)
        ]
    )


def test_functions_of_two_scripts_are_compared() -> None:
    """A program under another name: its own code and functions are neither gone nor new, only what changed is."""
    pair = paired(
        program("slow.py", {"load": 300, "step": 300}),
        program("fast.py", {"load": 30, "step": 300}),
        same=function_of,
    )
    assert pair.scripts == ("slow.py", "fast.py")
    found = difference(pair)
    changes = {change.function.function: change for change in found.functions}
    assert (changes["load"].own.before, changes["load"].own.after) == (300, 30)
    assert (changes["<module>"].total.before, changes["<module>"].total.after) == (600, 330)
    assert "step" not in changes
    assert {frame.file for frame in pair.before.frames} == {"fast.py"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (program("a.py", {"f": 30}), program("a.py", {"f": 30})),
        (program("a.py", {"f": 30}), program("main.py", {"f": 30}, imported="a.py")),
        (program("main.py", {"f": 30}, imported="b.py"), program("b.py", {"f": 30})),
        (of_text({"main;f": 30.0}), program("b.py", {"f": 30})),
    ],
    ids=["one program", "the first is a module of the second", "the second is one of the first", "not Python"],
)
def test_other_files_keep_their_names(before: StackProfile, after: StackProfile) -> None:
    """Only a program that the other side does not know is compared under another name."""
    pair = paired(before, after, same=function_of)
    assert pair.scripts == ("", "")
    assert {frame.file for frame in before.frames} == {"/job/" * bool(f.file) + f.file for f in _own(pair.before)}


def _own(profile: StackProfile) -> list[Frame]:
    """The frames that samples of a profile have."""
    return [frame for stack in set(profile.samples.stack.tolist()) for frame in profile.frames_of(stack)]
