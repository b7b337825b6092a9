"""What the probes record of Keras on JAX or PyTorch, where either is installed beside it."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from tests.probes.conftest import PYTHON

from stepscope.model.log.events import AgentDiagnostic, BatchSeen, Probe
from stepscope.wire.kinds import Flag, Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign

    Run = Foreign
    """A ``Recorded`` of conftest."""

FIND = "import importlib.util as u; print(u.find_spec('keras') and [n for n in ('jax', 'torch') if u.find_spec(n)][0])"


@pytest.fixture(scope="module")
def backend() -> str:
    """The backend that the program takes."""
    found = subprocess.run([PYTHON, "-c", FIND], capture_output=True, text=True, check=False).stdout.strip()
    if found not in {"jax", "torch"}:
        pytest.skip(f"no Keras with JAX or PyTorch for {PYTHON}")
    return found


@pytest.fixture(scope="module")
def run(recorded: Callable[[str], Run], backend: str) -> Run:
    """The program ``keras_backends``."""
    assert backend
    return recorded("keras_backends")


@pytest.mark.slow
def test_results_are_those_of_a_plain_run(run: Run) -> None:
    """To the bit, and JAX compiles what it compiles without us; nothing fails, every probe of Keras is attached."""
    assert (run.result.returncode, run.result.stdout) == (0, run.plain.stdout), run.result.stderr
    assert run.all(AgentDiagnostic) == []
    told = {line.name: line.why for line in run.all(Probe) if line.name.startswith("keras_")}
    assert set(told.values()) == {""}


@pytest.mark.slow
def test_each_loop_holds_its_calls_and_their_waits(run: Run, backend: str) -> None:
    """Two epochs of a fit, its validations apart; on JAX the batches are taken inside of the calls, else before."""
    fit = run.loop("fit")
    per_call = 2 if backend == "jax" else 1
    train, test = ([one for one in run.of(Kind.EXECUTION, role=role) if one.inside(fit)] for role in ("train", "test"))
    assert [one.arg for one in train] == [per_call] * (12 // per_call)
    assert len(test) == (2 if backend == "jax" else 4)
    validations = [one for one in run.of(Kind.LOOP, role="evaluate") if one.inside(fit)]
    assert [one.flags & Flag.NESTED for one in validations] == [Flag.NESTED] * 2
    taken = [one for one in run.of(Kind.NEXT) if one.inside(fit) and not one.flags & Flag.END]
    inside = [one for one in taken if any(one.inside(call) for call in train)]
    assert len(inside) == (12 if backend == "jax" else 0)
    assert len(taken) >= 12
    (batch,) = (line for line in run.all(BatchSeen) if line.loop == fit.start and line.role == "train")
    assert (batch.size, batch.steps, batch.source) == (8, 6, "PyDatasetAdapter")
    rows = [one for one in run.of(Kind.PYFUNC, role="pydataset") if any(one.inside(other) for other in taken)]
    assert len(rows) in {12, 13}  # Keras takes one before to learn the shapes


@pytest.mark.slow
def test_other_loops_and_generators_are_seen(run: Run, backend: str) -> None:
    """Evaluation, prediction, a generator's batches and a call of one batch, each at its line."""
    per_call = 2 if backend == "jax" else 1
    for mark, role in (("evaluate", "test"), ("predict", "predict")):
        loop = run.loop(mark)
        assert len([one for one in run.of(Kind.EXECUTION, role=role) if one.inside(loop)]) == 6 // per_call
    fed = run.loop("generator")
    assert len([one for one in run.of(Kind.PYFUNC, "rows") if one.inside(fed)]) >= 4  # Keras has taken two before
    assert len(run.called(Kind.LOOP, "on_batch")) == 1
