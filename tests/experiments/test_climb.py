"""Until done: what is kept, when it ends, and what is left, with runs that take no time but say what they took."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from stepscope.experiments import climb
from stepscope.experiments.climb import FINAL, LEFT, Kept, Rules, Way
from stepscope.experiments.combine import merged
from stepscope.experiments.plan import Candidate, kind_of
from stepscope.experiments.schedule import MeasuredRun, NotMeasuredError

RUN_S = 10.0
WORDS = ["graph", "xla-on", "batch:4", "mixed-bfloat16", "compute-only"]


@dataclass(slots=True, kw_only=True)
class Machine:
    """Runs of ten seconds. Input and compute overlap: the slower one is the time, so that they hide each other."""

    compute: dict[str, float]
    """Factors of changes on the compute, 100 ns without any."""
    input: dict[str, float] = field(default_factory=dict)
    """Factors of changes on the input, 60 ns without any."""
    suggests: list[str] = field(default_factory=lambda: list(WORDS))
    impossible: dict[str, set[str]] = field(default_factory=dict)
    """Trials that need another one to be kept."""
    ends_at: int = 1_000_000
    """Number of the run in which the user presses Ctrl-C."""
    at_s: float = 0.0
    ran: list[tuple[str, Kept, str]] = field(default_factory=list)
    random: random.Random = field(default_factory=lambda: random.Random(1))

    def look(self, stage: str, kept: Kept) -> list[Candidate]:
        """All that it knows, whatever is kept."""
        self._takes(stage, kept, "look")
        return [Candidate(trial=one, kind=kind_of(one), expected_ratio=0.3, reason="") for one in self.suggests]

    def measure(self, stage: str, kept: Kept, trial: str, _round: int) -> MeasuredRun:
        """One run."""
        self._takes(stage, kept, trial)
        if not self.impossible.get(trial, set()) <= set(kept):
            return MeasuredRun(ns=0.0, why="not yet")
        changes = merged(kept, trial)
        times = [100.0, 60.0]
        for change in changes:
            times = [times[0] * self.compute.get(change, 1.0), times[1] * self.input.get(change, 1.0)]
        return MeasuredRun(ns=max(times) * self.random.lognormvariate(0, 0.005))

    def _takes(self, stage: str, kept: Kept, trial: str) -> None:
        self.at_s += RUN_S
        self.ran.append((stage, kept, trial))
        if len(self.ran) == self.ends_at:
            raise KeyboardInterrupt

    def climb(self, *, seconds: float = 1e9, changed: bool = False) -> Way:
        """An experiment on it."""
        return climb.climb(self, lambda: self.at_s, Rules(seconds=seconds, rounds=5, changed=changed))


def winners(way: Way) -> list[str]:
    """What each step keeps."""
    return [step.winner.candidate.trial for step in way.steps if step.winner is not None]


def test_a_gain_that_another_one_hides_is_found_once_that_is_kept() -> None:
    """With graphs the input is the bottleneck: only then caching it brings something."""
    machine = Machine(compute={"graph": 0.3}, input={"prefetch": 0.5}, suggests=["prefetch", "graph"])
    way = machine.climb()
    assert winners(way) == ["graph", "prefetch"]
    assert way.kept == ("graph", "prefetch")
    assert way.stop == "nothing-suggested"
    assert way.final is not None
    (total,) = way.final.arms
    assert total.ratio == pytest.approx(0.3, rel=0.02)
    assert len(total.pairs) >= 3


def test_the_comparison_at_the_end_is_between_nothing_and_everything() -> None:
    machine = Machine(compute={"graph": 0.5})
    machine.climb()
    assert {kept for stage, kept, _ in machine.ran if stage == FINAL} == {(), ("graph",)}


def test_it_ends_when_no_gain_is_sure() -> None:
    """Below 3 % nothing is kept, and the unchanged job is not compared with itself at the end."""
    machine = Machine(compute={"graph": 0.98})
    way = machine.climb()
    assert (way.kept, way.stop, way.final) == ((), "no-gain", None)
    assert not [stage for stage, _, _ in machine.ran if stage == FINAL]


def test_gains_that_change_the_results_are_measured_and_not_kept() -> None:
    machine = Machine(compute={"graph": 0.5, "batch:4": 0.4, "mixed-bfloat16": 0.6}, input={"graph": 0.1})
    way = machine.climb()
    assert way.kept == ("graph",)
    assert way.left is not None
    left = {arm.candidate.trial: arm.ratio for arm in way.left.arms}
    assert sorted(left) == ["batch:4", "compute-only", "mixed-bfloat16"]
    assert left["mixed-bfloat16"] == pytest.approx(0.6, rel=0.02)
    assert {kept for stage, kept, _ in machine.ran if stage == LEFT} == {("graph",)}


def test_with_consent_they_are_kept() -> None:
    """A batch that was multiplied is multiplied further, in the place of the smaller factor."""
    machine = Machine(compute={"batch:4": 0.5, "batch:16": 0.3, "batch:64": 0.3}, input={"batch:4": 0, "batch:16": 0})
    way = machine.climb(changed=True)
    assert winners(way)[:2] == ["batch:4", "batch:16"]
    assert way.kept == ("batch:16",)


def test_ceilings_are_tried_only_at_the_end() -> None:
    machine = Machine(compute={"graph": 0.5})
    machine.climb()
    assert {stage for stage, _, trial in machine.ran if trial == "compute-only"} == {LEFT}


def test_alternatives_replace_each_other() -> None:
    """A number of threads that is suggested later takes the place of the default number."""

    class Later(Machine):
        def look(self, stage: str, kept: Kept) -> list[Candidate]:
            self.suggests = ["threads:2"] if kept else ["threads-default"]
            return super().look(stage, kept)

    machine = Later(compute={"threads-default": 0.8, "threads:2": 0.6})
    way = machine.climb()
    assert winners(way) == ["threads-default", "threads:2"]
    assert way.kept == ("threads:2",)


def test_what_was_not_possible_is_tried_again_once() -> None:
    """What is kept may make it possible; twice not possible is enough."""
    machine = Machine(
        compute={"graph": 0.5, "xla-on": 0.5},
        input={"graph": 0.1},
        suggests=["graph", "xla-on", "xla-off", "threads-default"],
        impossible={"xla-on": {"graph"}, "xla-off": {"nothing"}},
    )
    way = machine.climb()
    assert winners(way) == ["graph", "xla-on"]
    assert [stage for stage, _, trial in machine.ran if trial == "xla-off"] == ["step1", "step2"]


def test_time_is_left_for_the_comparison_at_the_end() -> None:
    """With time for some steps of many, the whole takes little more than it may, and ends with three rounds."""
    factors = {"graph": 0.5, "xla-on": 0.6, "threads-default": 0.7, "prefetch": 0.8, "parallel-map": 0.85}
    machine = Machine(compute=factors, input=dict.fromkeys(factors, 0.1), suggests=list(factors))
    way = machine.climb(seconds=420)
    assert way.stop == "time"
    assert 1 <= len(way.kept) < len(factors)
    assert way.final is not None
    assert way.final.rounds == 3
    assert machine.at_s <= 420 + 3 * RUN_S
    assert way.left is not None
    assert way.left.not_tried


def test_interrupted_in_a_step_it_says_what_is_known() -> None:
    machine = Machine(compute={"graph": 0.5}, suggests=["graph", "xla-on"], ends_at=20)
    way = machine.climb()
    assert way.interrupted
    assert way.kept == ("graph",)


def test_interrupted_before_a_round_is_complete_nothing_is_known() -> None:
    with pytest.raises(KeyboardInterrupt):
        Machine(compute={}, ends_at=3).climb()


def test_without_a_time_of_the_job_there_is_nothing_to_keep() -> None:
    machine = Machine(compute={}, impossible={"": {"nothing"}})
    with pytest.raises(NotMeasuredError):
        machine.climb()


def test_nothing_suggested_is_said() -> None:
    way = Machine(compute={}, suggests=[]).climb()
    assert (way.suggested, way.steps, way.stop) == (False, [], "nothing-suggested")
