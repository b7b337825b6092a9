"""Keras on PyTorch makes DataLoaders around its input: nothing is said about them, but about what is in them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.derive.sessions import MS, SCRIPT, Job
from tests.detectors.asking import find
from tests.detectors.framework_jobs import keras_on

from stepscope.derive.input import keras_loaders
from stepscope.model.log.program import DataLoaderMade
from stepscope.model.session.session import HostInfo
from stepscope.wire.kinds import Kind

STEP, STEPS = 100 * MS, 200


def fit(role: str, *, dataset: str = "ConverterIterableDataset", tensorflow: bool = False, user: str = "") -> Job:
    """A fit whose batches take 60 ms, in Python of this role; ``user``: the method of a dataset of the program's."""
    job = keras_on("torch", "2.13.0", steps=False)
    job.host = HostInfo(cpus=4)
    if tensorflow:
        job.framework("tensorflow")
    made = DataLoaderMade(
        id=job.iterator(), dataset=dataset, file=SCRIPT, line=50, fn_name=user, fn_file=SCRIPT, fn_line=9
    )
    job.event(made)
    job.execution().every(STEP, STEPS, dur=30 * MS, start=65 * MS, arg=1)
    job.nexts().every(STEP, STEPS, dur=60 * MS, arg=made.id)
    if role:
        job.python(role, "D.__getitem__").every(STEP, STEPS, dur=58 * MS)
    return job


@pytest.mark.parametrize(
    ("job", "code", "remedy"),
    [
        (lambda: fit("pydataset"), "INP003", "PyDataset(workers=3, use_multiprocessing=True)"),
        (lambda: fit("pydataset", tensorflow=True), "INP003", "tf.data"),
        (lambda: fit("numpy_function", tensorflow=True), "INP002", "TensorFlow ops"),
        (lambda: fit("", dataset="Images", user="Images.__getitem__"), "INP015", "DataLoader(num_workers=3"),
    ],
    ids=["PyDataset", "PyDataset beside TensorFlow", "tf.data", "a DataLoader of the program"],
)
def test_the_cause_is_what_the_program_has(job: Callable[[], Job], code: str, remedy: str) -> None:
    """INP015 only where the program made a DataLoader; a remedy in words of what it has."""
    found = [one for one in find(job()) if one.code in {"INP002", "INP003", "INP015"}]
    assert [one.code for one in found] == [code]
    assert remedy in found[0].remedies[0].text


@pytest.mark.parametrize("backend", ["torch", "jax"])
@pytest.mark.parametrize("dataset", ["ConverterIterableDataset", "ArrayDataset", "Images"])
def test_a_loader_is_keras_s_by_its_class_and_backend(backend: str, dataset: str) -> None:
    """Names of Keras 3.15.1; a program without Keras on PyTorch may name its own classes so."""
    job = keras_on(backend, "1.0", steps=False)
    job.event(DataLoaderMade(id=7, dataset=dataset))
    expected = {7} if backend == "torch" and dataset != "Images" else set()
    assert keras_loaders.ids(job.worker()) == expected


def test_calls_that_a_gap_recorded_are_counted() -> None:
    """There the step's wrapper is not exchanged for a counter: the gap says 0, and holds the calls."""
    job = keras_on("torch", "2.13.0", steps=False)
    step = job.execution()
    step.every(10 * MS, 400, dur=8 * MS, arg=1)
    job.gap(1000 * MS, 1000 * MS, 0)
    job.gap(2500 * MS, 500 * MS, 0)
    assert job.steps().count == 400
    assert Kind.EXECUTION in set(job.worker().in_gaps.kind.tolist())
