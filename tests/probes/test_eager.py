"""What is recorded of TensorFlow that runs op by op, without Keras: gradients, and values that are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stepscope.model.log.eager import EagerOp, EagerOps
from stepscope.model.log.events import AgentDiagnostic
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.probes.conftest import Recorded

pytestmark = [pytest.mark.tf, pytest.mark.slow]

TURNS = 30
MARKED = 20
"""Turns of the solver after its op was picked; the first may be half over."""
THINNED = "DX910"
"""So many calls a second that only some have records."""


@pytest.fixture(scope="module")
def run(recorded: Callable[[str], Recorded]) -> Recorded:
    """The program ``eager``."""
    return recorded("eager")


def test_results_are_those_of_a_plain_run(run: Recorded) -> None:
    """The same output, and nothing of ours failed."""
    assert (run.result.returncode, run.result.stdout) == (0, run.plain.stdout), run.result.stderr
    assert run.all(AgentDiagnostic) == []


@pytest.mark.parametrize("mark", ["answer", "last"])
def test_each_read_is_recorded_while_nothing_else_repeats(run: Recorded, mark: str) -> None:
    """Reads of a microsecond have records with their line, one each, as long as no call of another kind is made."""
    assert len(run.called(Kind.SYNC, mark)) == TURNS


def test_gradients_are_recorded(run: Recorded) -> None:
    """Each gradient of an eager tape has a record with its line."""
    assert len(run.called(Kind.GRADIENT, "gradient")) == TURNS


def test_a_gradient_in_a_graph_is_no_call(run: Recorded) -> None:
    """A tape inside of a tf.function is traced, once, and is no call from Python."""
    assert not [record for record in run.of(Kind.GRADIENT) if record.name.call_function == "traced"]


@pytest.fixture(scope="module")
def solver(recorded: Callable[[str], Recorded]) -> Recorded:
    """The program ``eager_solver``."""
    return recorded("eager_solver")


def test_a_loop_of_plain_ops_is_marked_by_one_of_them(solver: Recorded) -> None:
    """The rarest op has a record for each turn once it was picked, with the user's line; the results are the same."""
    assert (solver.result.returncode, solver.result.stdout) == (0, solver.plain.stdout), solver.result.stderr
    assert {told.code for told in solver.all(AgentDiagnostic)} <= {THINNED}
    marks = solver.called(Kind.OP, "turn")
    assert len(marks) >= MARKED - 1
    (name,) = {mark.name.text for mark in marks}
    assert name in {"mat_mul", "real_div"}  # both run once a turn; a look that ends within one sees one of them less
    assert marks == solver.of(Kind.OP)


@pytest.fixture(scope="module")
def again(recorded: Callable[[str], Recorded]) -> Recorded:
    """The program ``eager_again``."""
    return recorded("eager_again")


def rows_of(run: Recorded, mark: str, op: str) -> list[EagerOp]:
    """What the looks say of the ops of a type on a marked line."""
    line = run.line(mark)
    return [row for look in run.all(EagerOps) for row in look.rows if row.line == line and row.op == op]


def test_looks_change_nothing(again: Recorded) -> None:
    """The same output, nothing of ours failed, and looks were taken."""
    assert (again.result.returncode, again.result.stdout) == (0, again.plain.stdout), again.result.stderr
    assert {told.code for told in again.all(AgentDiagnostic)} <= {THINNED}
    assert again.all(EagerOps)


@pytest.mark.parametrize(("mark", "op"), [("encode", "MatMul"), ("compiled", "compiled")])
def test_what_is_computed_again_is_known(again: Recorded, mark: str, op: str) -> None:
    """Of four runs on one batch three give what is known; the first is new, as the weights were written before."""
    found = rows_of(again, mark, op)
    runs, known = sum(row.count for row in found), sum(row.again for row in found)
    assert 0.5 * runs < known < 0.8 * runs


def test_what_draws_random_numbers_is_new(again: Recorded) -> None:
    """A product of random numbers is never known."""
    found = rows_of(again, "head", "MatMul")
    assert found
    assert sum(row.again for row in found) == 0


def test_a_variable_that_is_copied_for_some_rows_is_told(again: Recorded) -> None:
    """A slice of a variable that was written by rows reads all of it: the copy's size, and the part that is used."""
    found = [row for row in rows_of(again, "part", "ReadVariableOp") if row.part]
    assert found
    assert {row.bytes for row in found} == {3000 * 1000 * 4}
    assert max(row.part_bytes for row in found) <= 3 * 1000 * 4
