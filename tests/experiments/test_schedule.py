"""In which order trials run, and when it ends: with runs that take no time but say what they took."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

import pytest

from stepscope.agent.trials import switching
from stepscope.experiments import blocks, schedule
from stepscope.experiments.blocks import Block
from stepscope.experiments.plan import Candidate
from stepscope.experiments.schedule import UNCHANGED, Experiment, MeasuredRun, NotMeasuredError, TimeLimits

RUN_S = 10.0


@dataclass(slots=True, kw_only=True)
class Machine:
    """Runs trials: each takes ten seconds and shows 100 ns times its ratio, with some noise."""

    ratios: dict[str, float]
    impossible: dict[str, str] = field(default_factory=dict)
    fails: dict[str, set[int]] = field(default_factory=dict)
    """Rounds in which a trial fails."""
    switched: dict[str, str] = field(default_factory=dict)
    """Trials that can be switched, and why their blocks say nothing; "" if they do."""
    noise: float = 0.01
    at_s: float = 0.0
    ran: list[str] = field(default_factory=list)
    random: random.Random = field(default_factory=lambda: random.Random(1))

    def run(self, trial: str, number: int) -> MeasuredRun:
        """One run."""
        self.at_s += RUN_S
        self.ran.append(trial)
        if trial in self.impossible:
            return MeasuredRun(ns=0.0, why=self.impossible[trial])
        if number in self.fails.get(trial, ()):
            return MeasuredRun(ns=0.0, why="it died")
        return MeasuredRun(ns=100 * self.ratios.get(trial, 1.0) * self.random.lognormvariate(0, self.noise))

    def switch(self, trial: str, number: int) -> MeasuredRun | None:
        """A run of blocks as the agent makes them; the noise of neighbouring ones has much in common."""
        del number
        if trial not in self.switched:
            return None
        self.at_s += RUN_S
        self.ran.append(f"{trial}, switched")
        if self.switched[trial]:
            return MeasuredRun(ns=0.0, why=self.switched[trial])
        made, at = list[Block](), 0.0
        for place in range(switching.MOST):
            at = 0.7 * at + self.random.gauss(0, self.noise)
            on = switching.ORDER[place % len(switching.ORDER)]
            ns = 1e6 * math.exp(at) * (self.ratios.get(trial, 1.0) if on else 1.0)
            made.append(Block(on=on, steps=500, steps_ns=round(500 * ns)))
            if place % len(switching.ORDER) == 3 and _far(made):
                break
        found = blocks.judge(made)
        return MeasuredRun(ns=1.0, pairs=found.pairs, unchanged=found.unchanged)

    def explore(
        self, names: list[str], *, seconds: float = 1e9, rounds: int = 5, best_only: bool = False
    ) -> Experiment:
        """An experiment on it."""
        candidates = [Candidate(trial=name, kind="gain", expected_ratio=0.5, reason="") for name in names]
        limits = TimeLimits(seconds=seconds, rounds=rounds, best_only=best_only)
        return schedule.explore(candidates, self.run, lambda: self.at_s, limits, self.switch)


def _far(made: list[Block]) -> bool:
    """Whether the agent would make no more blocks."""
    return switching.far([(one.on, one.ns) for one in made])


def test_a_round_has_two_unchanged_runs_around_the_trials_in_changing_order() -> None:
    machine = Machine(ratios={"a": 0.99, "b": 1.0}, noise=0.02)
    machine.explore(["a", "b"], rounds=3)
    assert machine.ran[:4] == [UNCHANGED, "a", "b", UNCHANGED]
    assert machine.ran[4] == machine.ran[-1] == UNCHANGED


def test_a_clear_answer_ends_it_after_three_rounds() -> None:
    machine = Machine(ratios={"a": 0.5})
    found = machine.explore(["a"], rounds=5)
    assert found.rounds == 3
    effect = found.effect(found.arms[0])
    assert effect is not None
    assert schedule.answer(effect) == "faster"


def test_what_shows_nothing_is_not_repeated_while_others_are_promising() -> None:
    machine = Machine(ratios={"fast": 0.5, "none": 1.0})
    machine.explore(["none", "fast"])
    assert machine.ran[:10] == ["", "none", "fast", "", "", "fast", "", "", "fast", ""]
    assert machine.ran.count("fast") == 3


def test_without_anything_promising_all_are_repeated() -> None:
    machine = Machine(ratios={}, noise=0.02)
    found = machine.explore(["a", "b"], rounds=4)
    assert machine.ran.count("a") == machine.ran.count("b") == found.rounds == 4
    noise = found.against_itself()
    assert noise is not None
    assert noise.low < 1 < noise.high


def test_time_limits_the_first_round_and_the_rest() -> None:
    machine = Machine(ratios={"a": 0.5, "b": 0.6})
    found = machine.explore(["a", "b", "c", "d", "e", "f", "g"], seconds=150, rounds=5)
    assert machine.at_s <= 150
    assert [one.trial for one in found.not_tried] == ["f", "g"]
    assert [arm.candidate.trial for arm in found.arms if found.effect(arm) is not None] == ["a", "b"]


def test_no_difference_is_an_answer_too() -> None:
    machine = Machine(ratios={}, noise=0.0005)
    found = machine.explore(["a"], rounds=9)
    assert found.rounds == 3


def test_what_is_not_possible_is_tried_once_and_says_why() -> None:
    machine = Machine(ratios={}, impossible={"a": "no callbacks"})
    found = machine.explore(["a"])
    assert machine.ran.count("a") == 1
    assert found.arms[0].why == "no callbacks"
    assert found.effect(found.arms[0]) is None


def test_without_a_time_of_the_unchanged_job_there_is_nothing_to_compare() -> None:
    machine = Machine(ratios={}, impossible={UNCHANGED: "no steps"})
    with pytest.raises(NotMeasuredError, match="no steps"):
        machine.explore(["a"])


@pytest.mark.parametrize("noise", [0.01, 0.05])
def test_trials_that_change_nothing_seldom_differ(noise: float) -> None:
    """Of 200 comparisons with early stopping and pooled noise at most 2 % claim a difference at the 1 % level."""
    claims = 0
    for seed in range(100):
        machine = Machine(ratios={}, noise=noise, random=random.Random(seed))
        found = machine.explore(["a", "b"], rounds=5)
        effects = [found.effect(arm) for arm in found.arms]
        claims += sum(one is not None and schedule.answer(one) in {"faster", "slower"} for one in effects)
    assert claims <= 4


def test_a_trial_that_halves_the_time_is_clear_after_three_noisy_rounds() -> None:
    """With 10 % between runs, three rounds show a factor of two in four of five experiments."""
    clear = 0
    for seed in range(50):
        machine = Machine(ratios={"a": 0.5}, noise=0.1, random=random.Random(seed))
        found = machine.explore(["a", "b"], rounds=3)
        effect = found.effect(found.arms[0])
        clear += effect is not None and schedule.answer(effect) == "faster"
    assert clear >= 40


def test_a_failure_in_a_later_round_keeps_the_rounds_and_is_said() -> None:
    """The trial is repeated, has an interval from the other rounds, and is not called impossible."""
    machine = Machine(ratios={"a": 0.5}, fails={"a": {2}})
    found = machine.explore(["a"], rounds=5)
    (arm,) = found.arms
    assert (arm.why, [number for number, _ in arm.failures]) == ("", [2])
    assert len(arm.pairs) == 3
    assert found.effect(arm) is not None


def test_a_trial_that_fails_again_is_not_repeated() -> None:
    machine = Machine(ratios={"a": 0.5}, fails={"a": {2, 3}})
    found = machine.explore(["a"], rounds=9)
    assert machine.ran.count("a") == 3
    assert len(found.arms[0].pairs) == 1


def test_if_only_the_best_is_asked_for_others_are_not_repeated() -> None:
    """It ends when the best is sure, although another one is undecided."""
    machine = Machine(ratios={"a": 0.5, "b": 0.8, "c": 0.9})
    found = machine.explore(["c", "b", "a"], rounds=5, best_only=True)
    assert found.rounds == 3
    assert (machine.ran.count("a"), machine.ran.count("b")) == (3, 1)
    best = schedule.sure_gain(found)
    assert best is not None
    assert best.candidate.trial == "a"


def test_without_a_gain_the_search_for_the_best_ends_after_three_rounds() -> None:
    machine = Machine(ratios={"a": 1.2, "b": 1.0}, noise=0.02)
    found = machine.explore(["a", "b"], rounds=9, best_only=True)
    assert found.rounds == 3
    assert schedule.sure_gain(found) is None


def test_a_ceiling_is_no_sure_gain() -> None:
    found = Machine(ratios={"a": 0.2}).explore(["a"], rounds=3)
    found.arms[0].candidate = Candidate(trial="a", kind="ceiling", expected_ratio=0.5, reason="")
    assert schedule.sure_gain(found) is None


def test_with_little_time_all_are_tried_once() -> None:
    """Where three rounds are out of reach, the time is for candidates, not for repeating the first one."""
    names = ["a", "b", "c", "d", "e", "f", "g"]
    machine = Machine(ratios={})
    found = machine.explore(names, seconds=8 * RUN_S)
    assert machine.ran == [UNCHANGED, *names[:6], UNCHANGED]
    assert [one.trial for one in found.not_tried] == ["g"]


def test_a_switched_trial_needs_one_run_and_no_unchanged_ones_around_it() -> None:
    machine = Machine(ratios={"a": 0.5}, switched={"a": ""})
    found = machine.explore(["a"])
    (arm,) = found.arms
    assert machine.ran == [UNCHANGED, "a, switched"]
    assert arm.switched
    assert len(arm.pairs) >= switching.LEAST_PAIRS
    effect = found.effect(arm)
    assert effect is not None
    assert schedule.answer(effect) == "faster"


def test_blocks_that_say_nothing_are_followed_by_a_whole_run() -> None:
    """In the same round, and again in the later ones; the reason is kept, and is no failure."""
    machine = Machine(ratios={"a": 0.5}, switched={"a": "too few steps"})
    found = machine.explore(["a"])
    (arm,) = found.arms
    assert machine.ran[:4] == [UNCHANGED, "a, switched", "a", UNCHANGED]
    assert machine.ran.count("a, switched") == 1
    assert (arm.switched, arm.whole_why, arm.why) == (False, "too few steps", "")
    assert len(arm.pairs) == 3


def test_switched_trials_and_whole_runs_are_in_one_experiment() -> None:
    """A round whose trials are all switched has no unchanged run, and the noise of both kinds is kept apart."""
    machine = Machine(ratios={"a": 0.9, "b": 0.5}, switched={"a": ""}, noise=0.02)
    found = machine.explore(["a", "b"], rounds=5)
    assert machine.ran[:4] == [UNCHANGED, "a, switched", "b", UNCHANGED]
    alone = Experiment(arms=[arm for arm in found.arms if arm.switched], switched_looks=found.switched_looks)
    (arm,) = alone.arms
    assert alone.effect(arm) == found.effect(arm)
    assert alone.off_against_off(arm) == found.off_against_off(arm)


def test_an_undecided_switched_trial_is_run_again() -> None:
    """Each process adds its pairs."""
    machine = Machine(ratios={"a": 0.95}, switched={"a": ""}, noise=0.1)
    found = machine.explore(["a"], rounds=3)
    assert machine.ran == [UNCHANGED, *["a, switched"] * 3]
    assert len(found.arms[0].pairs) == 3 * switching.MOST // 2


@pytest.mark.parametrize("noise", [0.01, 0.05])
def test_switched_trials_that_change_nothing_seldom_differ(noise: float) -> None:
    """Of 400 comparisons with blocks that may end early, in up to five processes, at most 2 % claim a difference."""
    claims = 0
    for seed in range(200):
        machine = Machine(ratios={}, switched={"a": "", "b": ""}, noise=noise, random=random.Random(seed))
        found = machine.explore(["a", "b"], rounds=5)
        effects = [found.effect(arm) for arm in found.arms]
        claims += sum(one is not None and schedule.answer(one) in {"faster", "slower"} for one in effects)
    assert claims <= 8
