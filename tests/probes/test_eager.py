"""What is recorded of TensorFlow that runs op by op, without Keras: gradients, and values that are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

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
