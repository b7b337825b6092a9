"""GEN002 time-in-op-scheduling: its fixtures."""

from __future__ import annotations

import pytest
from tests.derive.op_traces import Maker
from tests.derive.sessions import MS, Job
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures, look
from tests.detectors.graph_jobs import read_turns
from tests.detectors.lock_jobs import beside
from tests.detectors.traced_jobs import STEP, TRACED, holding, untraced

from stepscope.detectors.general.time_in_op_scheduling import DETECTOR
from stepscope.experiments import proofs


def scheduled(around: float, ops: int = 1_000) -> Job:
    """Traced steps of 100 ms, of which the executor works ``around`` us, and the ops 10 ms."""
    made = Maker()
    for i in range(TRACED):
        at = STEP * i
        made.step(at, STEP - 1, i)
        made.span(made.main, "ExecutorState::Process", at + 10, around)
        for number in range(ops):
            made.op(made.main, "loss:Mul", at + 80_000 + number * 10_000 / ops, 10_000 / ops)
    return holding(made.trace())


FIXTURES = Fixtures(
    firing=lambda: scheduled(60_000.0),
    expected=Expected(
        severity="info",
        cost=0.0,
        basis="unknown",
        where=(),
        metrics=("runtime_ratio", "ops_ratio", "ops_per_step", "around_op_ns", "call_ratio"),
        title=("many small ops", "60 % of the traced steps"),
        pipeline_stage="forward-backward",
        remedy="fewer-larger-steps",
    ),
    silent=lambda: scheduled(1_000.0),
    not_applicable=untraced,
    missing="op trace of some steps",
    below=lambda: scheduled(15_000.0),
    at=lambda: scheduled(25_000.0),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It tells where its component's time goes, from the least share on that a report must explain."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize(("waits", "found"), [(True, []), (False, ["GEN002"])])
def test_what_waits_for_the_interpreter_lock_is_no_scheduling(waits: bool, found: list[str]) -> None:
    """Seven tenths of the step, by looks at the threads of a generator and of the step: larger steps change nothing."""
    job = beside(70, waits=45 if waits else 0, elsewhere=5 if waits else 50, job=scheduled(60_000.0))
    assert [one.code for one in look(DETECTOR, job)[0]] == found


def test_few_ops_with_much_time_around_them_are_not_called_many_small_ones() -> None:
    """60 ms around 20 ops is no scheduling: what goes on there is to be looked at, and no larger batch advised."""
    (found,), _ = look(DETECTOR, scheduled(60_000.0, ops=20))
    assert found.title == "the framework takes 60 % of the traced steps around its ops, 3 ms for each of 20"
    assert [remedy.id for remedy in found.remedies] == ["look-at-native-stacks"]
    assert proofs.trials_of(found) == ()


@pytest.mark.parametrize(
    ("turns", "layers", "in_turn", "severity"),
    [(80, False, False, "high"), (12, False, False, "info"), (80, True, False, "info"), (80, False, True, "info")],
)
def test_a_loop_that_made_the_ops(turns: int, layers: bool, in_turn: bool, severity: str) -> None:
    """It is named where the graph has its iterations many times, and they could be computed at once."""
    job = scheduled(60_000.0)
    job.trace(0, 9 * MS, cause="first", nodes=1_000, variables=-1)
    read_turns(job, turns, layers=layers, in_turn=in_turn)
    (found,), _ = look(DETECTOR, job)
    assert found.severity == severity
    assert ("loop in call made the same ops 80 times" in found.title) == (severity == "high")
