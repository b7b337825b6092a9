"""Keras on JAX and PyTorch, with modules that behave as theirs do: calls, batches and logs."""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING

import pytest
from tests.agent.conftest import Armed, read_process

from stepscope.agent.probes.keras import keras_batches, keras_loops, keras_steps
from stepscope.agent.probes.python import py_functions
from stepscope.model.log.events import Probe
from stepscope.wire.kinds import Flag, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

JAX = "keras.src.backend.jax.trainer"


class Adapter:
    """Of arrays."""

    batch_size = 4

    def get_jax_iterator(self) -> Iterator[int]:
        """Three batches."""
        yield from range(3)


class TFDatasetAdapter(Adapter):
    """Of a dataset of tf.data, whose iterator has a probe."""


def trainer(adapter: Foreign) -> Foreign:
    """The module of Keras' trainer on JAX, as much of it as the probes touch."""

    class JAXEpochIterator:
        data_adapter = adapter

        def _get_iterator(self) -> Foreign:
            return self.data_adapter.get_jax_iterator()

    class JAXTrainer:
        steps_per_execution = 2
        train_function: Foreign = None

        def make_train_function(self, force: bool = False) -> None:
            if self.train_function is None or force:

                def iterator_step(state: Foreign, iterator: Foreign) -> Foreign:
                    return next(iterator) + next(iterator, 0), state

                self.train_function = iterator_step

        def fit(self, x: Foreign = None, y: Foreign = None, epochs: int = 1) -> list[int]:
            self.make_train_function()
            iterator = iter(JAXEpochIterator()._get_iterator())
            return [self.train_function("variables", iterator)[0] for _ in range(2)]

    return types.SimpleNamespace(__name__=JAX, JAXTrainer=JAXTrainer, JAXEpochIterator=JAXEpochIterator)


def attached(state: AgentState, module: Foreign) -> Foreign:
    """The same with our probes."""
    state.attach("keras_loops", keras_loops.attach_trainer, module)
    state.attach("keras_steps", keras_steps.attach, module)
    state.attach("keras_batches", keras_batches.attach_jax, module)
    return module


def written(armed: Armed) -> Foreign:
    """What the probes wrote."""
    (folder,) = (armed.folder / "procs").iterdir()
    return read_process(folder)


def test_the_wait_inside_of_a_call_of_jax_is_told_apart(opened: AgentState, armed: Armed) -> None:
    """Each ``next`` has its record, inside of that of its call, which is inside of the fit; the end is no batch."""
    module = attached(opened, trainer(Adapter()))
    assert module.JAXTrainer().fit() == [1, 2]
    process = written(armed)
    (fit,) = process.kinds(Kind.LOOP)
    calls, taken = process.kinds(Kind.EXECUTION), process.kinds(Kind.NEXT)
    assert [call.arg for call in calls] == [2, 2]
    assert [bool(one.flags & Flag.END) for one in taken] == [False, False, False, True]
    for at, one in enumerate(taken):
        call = calls[at // 2]
        assert fit.start_ns <= call.start_ns <= one.start_ns
        assert one.start_ns + one.dur_ns <= call.start_ns + call.dur_ns
    assert len({one.arg for one in taken}) == 1


def test_iterators_that_are_recorded_elsewhere_are_left_alone(
    opened: AgentState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch of tf.data is not told of twice; where TensorFlow is not there, nothing else tells of it."""
    module = attached(opened, trainer(TFDatasetAdapter()))
    monkeypatch.setitem(sys.modules, "tensorflow", types.ModuleType("tensorflow"))
    assert not isinstance(module.JAXEpochIterator()._get_iterator(), keras_batches.Batches)
    monkeypatch.delitem(sys.modules, "tensorflow")
    assert isinstance(module.JAXEpochIterator()._get_iterator(), keras_batches.Batches)


def test_in_gaps_batches_are_passed_on(opened: AgentState, armed: Armed) -> None:
    """Nothing is written of them; an error of the job's passes through with its own traceback."""
    module = attached(opened, trainer(Adapter()))
    taken = module.JAXEpochIterator()._get_iterator()
    opened.duty_cycle.detached = True
    assert (next(taken), iter(taken) is taken, taken.gi_running) == (0, True, False)
    opened.duty_cycle.detached = False
    assert len(written(armed).kinds(Kind.NEXT)) == 0


def test_errors_of_the_input_are_the_jobs(opened: AgentState, armed: Armed) -> None:
    """They are flagged, and pass through."""

    class Broken(Adapter):
        def get_jax_iterator(self) -> Iterator[int]:
            yield int("x")

    module = attached(opened, trainer(Broken()))
    with pytest.raises(ValueError, match="invalid literal"):
        module.JAXTrainer().fit()
    assert [one.flags for one in written(armed).kinds(Kind.NEXT)] == [Flag.RAISED]


def test_logs_that_are_read_are_a_wait(opened: AgentState, armed: Armed, monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes 20 us or more has a record; empty logs cost nothing; what Keras returns is returned."""
    clock = iter([0, 0, 50_000, 60_000, 90_000])
    read: Foreign = types.ModuleType("keras.src.utils.python_utils")
    read.pythonify_logs = lambda logs: {key: float(value) for key, value in (logs or {}).items()}
    monkeypatch.setitem(sys.modules, "keras.src.utils.python_utils", read)
    monkeypatch.setattr(opened, "now", lambda: next(clock, 100_000))
    lists: Foreign = types.ModuleType("keras.src.callbacks.callback_list")
    lists.CallbackList = type("CallbackList", (), {"_flush_futures": lambda self: None})
    monkeypatch.setitem(sys.modules, lists.__name__, lists)
    keras_batches.attach_logs(opened, None)
    assert (read.pythonify_logs(None), read.pythonify_logs({"loss": 1})) == ({}, {"loss": 1.0})
    lists.CallbackList()._flush_futures()
    assert [one.dur_ns for one in written(armed).kinds(Kind.SYNC)] == [50_000, 30_000]


def test_a_generator_is_timed_where_keras_takes_from_it(
    opened: AgentState, armed: Armed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On another backend than TensorFlow each ``next`` is user Python; on TensorFlow ``from_generator`` tells of it."""

    def rows() -> Iterator[int]:
        yield from range(2)

    for backend, records in (("tensorflow", 0), ("jax", 3)):

        class GeneratorDataAdapter:
            def __init__(self, generator: Foreign) -> None:
                self.generator = lambda: generator

        config: Foreign = types.ModuleType("keras.src.backend.config")
        config.backend = lambda backend=backend: backend
        monkeypatch.setitem(sys.modules, "keras.src.backend.config", config)
        name = "keras.src.trainers.data_adapters.generator_data_adapter"
        module: Foreign = types.SimpleNamespace(__name__=name, GeneratorDataAdapter=GeneratorDataAdapter)
        opened.attach("py_functions", py_functions.attach_adapter, module)
        assert list(module.GeneratorDataAdapter(rows()).generator()) == [0, 1]
        assert len(written(armed).kinds(Kind.PYFUNC)) == records


@pytest.mark.parametrize("cls", ["JAXEpochIterator", "JAXTrainer"])
def test_another_keras_is_told_of(opened: AgentState, armed: Armed, cls: str) -> None:
    """A class that is not there leaves the rest measured, and the log says why."""
    module = trainer(Adapter())
    delattr(module, cls)
    attached(opened, module)
    told = [line.why for line in written(armed).lines if isinstance(line, Probe) and not line.attached]
    assert any(why.startswith(("no ", "keras.src")) for why in told)
