"""Curves of sizes: where they end, and their knee, with runs that take no time."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import pytest

from stepscope.experiments import curves
from stepscope.experiments.curves import Curve, CurveRun, size_of
from stepscope.experiments.schedule import MeasuredRun, NotMeasuredError

GIB = 1 << 30


def saturating(size: Fraction) -> float:
    """Time of a sample if a step has 100 ns for itself and 25 ns for each sample."""
    return 25 + 100 / float(size)


@dataclass(slots=True, kw_only=True)
class Machine:
    """Runs sizes: time by a law, memory 1 GiB and 1 GiB for each batch."""

    law: Callable[[Fraction], float] = saturating
    fails_from: Fraction = Fraction(1_000_000)
    fails_in_round: dict[int, str] = field(default_factory=dict)
    ran: list[tuple[int, str]] = field(default_factory=list)
    random: random.Random = field(default_factory=lambda: random.Random(1))
    ends_at: int = 1_000_000
    lucky: dict[tuple[int, str], float] = field(default_factory=dict)
    """Times of runs, by round and trial, that are not by the law."""

    def __call__(self, trial: str, number: int, /) -> CurveRun:
        """One run."""
        self.ran.append((number, trial))
        if len(self.ran) == self.ends_at:
            raise KeyboardInterrupt
        size = size_of(trial)
        if size >= self.fails_from or (trial and self.fails_in_round.get(number) == trial):
            return CurveRun(measured=MeasuredRun(ns=0.0, why="signal 9"))
        ns = self.lucky.get((number, trial)) or self.law(size) * self.random.lognormvariate(0, 0.003)
        return CurveRun(measured=MeasuredRun(ns=ns), peak_bytes=int(GIB * (1 + size)))

    def batch(self, *, limit_bytes: int = 0) -> Curve:
        """The curve of the batch size."""
        return curves.trace("batch", self, cores=4, limit_bytes=limit_bytes)


def sizes(curve: Curve) -> list[str]:
    """Sizes that were measured."""
    return [str(size_of(arm.candidate.trial)) for arm in curve.measured]


def test_the_knee_is_the_smallest_size_within_five_percent_of_the_best() -> None:
    curve = Machine(law=lambda size: 100.0 if size >= 4 else 400.0 / float(size)).batch()
    assert curve.knee == "batch:4"


def test_a_batch_that_is_large_enough_stays() -> None:
    """The unchanged job is the knee if nothing is more than 5 % faster."""
    curve = Machine(law=lambda size: 100.0 if size >= 1 else 200.0).batch()
    assert curve.knee == ""


def test_a_batch_that_is_too_large_is_halved() -> None:
    curve = Machine(law=lambda size: 100.0 * float(size)).batch()
    assert curve.knee == "batch:1/2"


def test_it_ends_where_two_sizes_bring_nothing() -> None:
    curve = Machine(law=lambda size: max(100.0, 400.0 / float(size))).batch()
    assert sizes(curve) == ["1/2", "2", "4", "8", "16"]
    assert curve.stopped == "larger ones bring nothing"


def test_a_size_that_was_lucky_once_does_not_end_it() -> None:
    """In the first round x2 looks as fast as x8; later rounds show that larger ones are faster, and it goes up."""
    machine = Machine(law=lambda size: 400.0 / float(size))
    machine.lucky = {(1, "batch:2"): 40.0}
    curve = machine.batch()
    assert [trial for number, trial in machine.ran if number == 1][-2] == "batch:8"
    assert len(curve.measured) > 4
    assert curve.measured[-1].candidate.trial == "batch:1024"
    assert {len(arm.pairs) for arm in curve.measured} == {3}


def test_it_ends_before_the_memory_does() -> None:
    """x8 needs 9 GiB: of 12 GiB it fits, and x16 is never run."""
    machine = Machine()
    curve = machine.batch(limit_bytes=12 * GIB)
    assert sizes(curve) == ["1/2", "2", "4", "8"]
    assert "batch:16" not in {trial for _, trial in machine.ran}
    assert curve.stopped.startswith("x16 would take about 17 GiB of 12 GiB")


def test_a_run_that_dies_is_the_end() -> None:
    curve = Machine(fails_from=Fraction(8)).batch()
    assert sizes(curve) == ["1/2", "2", "4"]
    assert curve.stopped == "x8 is not possible"
    assert curve.experiment.arms[-1].why == "signal 9"


def test_each_size_is_measured_three_times_against_the_unchanged_job_of_its_round() -> None:
    machine = Machine()
    curve = machine.batch()
    assert {len(arm.pairs) for arm in curve.measured} == {3}
    assert [trial for number, trial in machine.ran if number == 2] == ["", *reversed(_first(machine)[1:-1]), ""]
    assert _first(machine)[0] == _first(machine)[-1] == ""
    effect = curve.effect(curve.measured[-1])
    assert effect is not None
    assert effect.high < 1


def _first(machine: Machine) -> list[str]:
    return [trial for number, trial in machine.ran if number == 1]


def test_a_failure_in_a_later_round_keeps_what_was_measured_and_is_made_up_for() -> None:
    curve = Machine(fails_in_round={2: "batch:2"}).batch()
    (arm,) = (arm for arm in curve.measured if arm.candidate.trial == "batch:2")
    assert (arm.why, arm.failures, len(arm.pairs)) == ("", [(2, "signal 9")], 3)


@pytest.mark.parametrize(
    ("cores", "numbers"), [(1, [1]), (3, [1, 2, 3]), (8, [1, 2, 4, 8]), (12, [1, 2, 4, 8, 12]), (16, [1, 2, 4, 8, 16])]
)
def test_numbers_of_threads(cores: int, numbers: list[int]) -> None:
    assert curves.threads(cores) == numbers


def test_threads_are_all_tried_and_the_unchanged_job_has_no_size() -> None:
    """With contention two threads are best, and the job as it is is not on the curve."""
    machine = Machine(law=lambda size: 100.0 if size == 2 else 150.0)
    curve = curves.trace("threads", machine, cores=8, limit_bytes=GIB)
    assert sizes(curve) == ["1", "2", "4", "8"]
    assert curve.knee == "threads:2"
    assert curve.stopped == ""


def test_nothing_possible_has_no_knee() -> None:
    curve = Machine(fails_from=Fraction(1, 4), law=lambda size: 100.0)
    with pytest.raises(NotMeasuredError, match="signal 9"):
        curve.batch()
    nothing = curves.trace("threads", _only_unchanged, cores=2, limit_bytes=0)
    assert nothing.knee is None
    assert nothing.experiment.rounds == 1


def _only_unchanged(trial: str, _round: int, /) -> CurveRun:
    return CurveRun(measured=MeasuredRun(ns=0.0 if trial else 100.0, why="no threads" if trial else ""))


def test_interrupted_after_a_round_it_says_what_is_known() -> None:
    curve = Machine(ends_at=16).batch()
    assert curve.experiment.interrupted
    assert curve.knee
