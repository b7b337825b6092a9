"""When an edit is kept."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.use_cases.fix.made_rounds import LOSS, runs

from stepscope.model.report.fix import EditClass
from stepscope.use_cases.fix import proof, said
from stepscope.use_cases.fix.proof import RunFailedError, Timed, TimeOverError

UNCHANGED = [LOSS, LOSS]
OTHER = said.of("epoch 1 loss: 0.6931\nepoch 2 loss: 0.4012\n")
NEAR = said.of("epoch 1 loss: 0.6931\nepoch 2 loss: 0.501209\n")


@pytest.mark.parametrize("noise", [0.002, 0.02, 0.1, 0.3])
def test_edits_that_change_nothing_are_not_kept(noise: float) -> None:
    """A comment that is moved, 200 times, on quiet and on busy machines: at most one in a hundred, the level."""
    before = runs(1e6, noise=noise, seed=1)
    found = [proof.prove(before, before, UNCHANGED, "rule").outcome for _ in range(200)]
    assert found.count("kept") <= 2


@pytest.mark.parametrize(("factor", "noise"), [(0.5, 0.05), (0.8, 0.02), (0.9, 0.002)])
def test_a_gain_is_kept_with_its_interval(factor: float, noise: float) -> None:
    found = proof.prove(runs(1e6, noise=noise, seed=2), runs(1e6 * factor, noise=noise, seed=3), UNCHANGED, "same")
    assert (found.outcome, found.same, found.measure) == ("kept", "bit-equal", "step")
    assert found.fresh.low < factor < found.fresh.high <= 0.97
    assert len(found.choosing.pairs) == proof.CHOOSING


def test_the_rounds_that_choose_prove_nothing() -> None:
    """Twice as fast while it is chosen, as slow as ever when it is proved."""
    many = iter([0.5] * proof.CHOOSING + [1.0] * 100)
    after = runs(1e6)

    def lucky() -> Timed:
        one, factor = after(), next(many)
        return replace(one, ns={name: ns * factor for name, ns in one.ns.items()})

    found = proof.prove(runs(1e6), lucky, UNCHANGED, "rule")
    assert found.outcome == "not-sure"
    assert found.choosing.ratio == pytest.approx(0.5)
    assert found.fresh.ratio == pytest.approx(1.0)


def test_every_other_round_begins_with_the_patched_program() -> None:
    order: list[str] = []
    before, after = runs(1e6), runs(5e5)

    def run(side: str) -> Timed:
        order.append(side)
        return before() if side == "a" else after()

    proof.prove(lambda: run("a"), lambda: run("b"), UNCHANGED, "rule")
    assert "".join(order[:4]) == "abba"


@pytest.mark.parametrize(
    ("logged", "kind", "outcome", "same"),
    [
        (OTHER, "rule", "other-results", ""),
        (NEAR, "same", "kept", "within"),
        (NEAR, "results", "other-results", ""),
        (OTHER, "order", "kept", "allowed"),
        (LOSS, "results", "kept", "bit-equal"),
    ],
)
def test_what_it_logs_decides(logged: said.Said, kind: EditClass, outcome: str, same: str) -> None:
    """However much it gains."""
    found = proof.prove(runs(1e6), runs(4e5, logged=logged), UNCHANGED, kind, frozenset({"order"}))
    assert (found.outcome, found.same) == (outcome, same)


@pytest.mark.parametrize(("kind", "outcome"), [("rule", "kept"), ("same", "not-repeatable")])
def test_only_rules_prove_anything_of_a_program_that_is_not_repeatable(kind: EditClass, outcome: str) -> None:
    found = proof.prove(runs(1e6), runs(4e5, logged=OTHER), [LOSS, OTHER], kind)
    assert found.outcome == outcome


def test_faster_steps_of_a_slower_run_are_no_gain() -> None:
    found = proof.prove(runs(1e6), runs(5e5, whole=2.5), UNCHANGED, "rule")
    assert found.outcome == "no-gain"
    assert "whole run" in found.why


def test_other_calls_as_steps_are_compared_by_whole_runs() -> None:
    """The steps of an eager loop are not those of the function that takes their place."""
    found = proof.prove(runs(1e6, steps="eager"), runs(5e5, steps="train_step", whole=1.2), UNCHANGED, "same")
    assert (found.outcome, found.measure) == ("kept", "run")
    assert found.fresh.ratio == pytest.approx(0.6)


def test_fewer_steps_are_compared_by_whole_runs() -> None:
    """Of a loop of predictions that are made otherwise now, two steps are left that were always faster."""
    after = runs(1e3, whole=900.0)
    found = proof.prove(runs(1e6), lambda: replace(after(), count=2), UNCHANGED, "rule")
    assert (found.outcome, found.measure) == ("kept", "run")
    assert found.fresh.ratio == pytest.approx(0.9)


def test_a_patched_program_that_fails_is_not_kept() -> None:
    def fails() -> Timed:
        raise RunFailedError("exit code 1: ValueError")

    found = proof.prove(runs(1e6), fails, UNCHANGED, "rule")
    assert (found.outcome, found.why) == ("failed", "exit code 1: ValueError")


@pytest.mark.parametrize(("left", "outcome"), [(3, "no-time"), (9, "no-time"), (12, "kept")])
def test_time_that_is_over_proves_nothing(left: int, outcome: str) -> None:
    """``left``: runs that there is time for; six rounds are the fewest that prove."""
    many = iter(range(left))
    sides = {"a": runs(1e6, noise=0.001), "b": runs(5e5, noise=0.001, seed=1)}

    def run(side: str) -> Timed:
        if next(many, None) is None:
            raise TimeOverError
        return sides[side]()

    found = proof.prove(lambda: run("a"), lambda: run("b"), UNCHANGED, "rule")
    assert found.outcome == outcome
