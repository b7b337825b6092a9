"""Step functions of Keras on other backends than TensorFlow: a subclass of the trainer makes them."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING

import pytest
from tests.agent.conftest import Armed, read_process

from stepscope.agent import duty_cycle
from stepscope.agent.probes.keras import keras_steps
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState


class Trainer:
    """Keras' own, which knows no backend."""

    name, built, steps_per_execution = "model", False, 1
    train_function: Foreign = None
    test_function: Foreign = None

    def compile(self) -> None:
        """Nothing that matters here."""


def one_step_on_data(data: int) -> int:
    """A step, of one batch."""
    return data + 1


class TorchTrainer(Trainer):
    """As PyTorch's."""

    def make_train_function(self) -> None:
        """Set the function of a step."""
        self.train_function = one_step_on_data

    def make_test_function(self) -> None:
        """The same of an evaluation."""
        self.test_function = one_step_on_data


@pytest.mark.parametrize("role", ["train", "test"])
def test_steps_of_any_backend_are_only_counted_in_gaps(opened: AgentState, armed: Armed, role: str) -> None:
    """Nothing of ours but a counter in C runs in a gap, and the wrapper is back after it."""
    model, make, attribute = type("Model", (TorchTrainer,), {})(), f"make_{role}_function", f"{role}_function"
    own: Foreign = type("Trainer", (Trainer,), {"compile": Trainer.compile})
    keras_steps.attach_compile(opened, types.SimpleNamespace(__name__="keras.src.trainers.trainer", Trainer=own))
    own.compile(model)
    getattr(model, make)()
    wrapper, cycle = getattr(model, attribute), opened.duty_cycle
    cycle.tick(opened.now())
    for _ in range(2000):
        assert getattr(model, attribute)(1) == 2
    cycle.tick(opened.now() + duty_cycle.FIRST_WINDOW_NS)
    assert cycle.detached
    for _ in range(7):
        assert getattr(model, attribute)(1) == 2
    cycle.end(opened.now())
    assert getattr(model, attribute) is wrapper
    (folder,) = (armed.folder / "procs").iterdir()
    process = read_process(folder)
    assert len(process.kinds(Kind.EXECUTION)) == 2000
    assert [(record.flags >> 8, record.arg) for record in process.kinds(Kind.REST)] == [(Kind.EXECUTION, 7)]
    opened.uninstall()
