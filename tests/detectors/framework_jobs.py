"""Jobs that compute with one framework or another, as the agent's probes of each see them."""

from __future__ import annotations

from tests.derive.sessions import MS, SCRIPT, Job

from stepscope.model.log.events import Framework
from stepscope.model.log.program import DataLoaderMade
from stepscope.wire.kinds import Kind

STEPS = 100


def _marked(*frameworks: str) -> Job:
    """A loop that stepscope.step() marks."""
    job = Job()
    for name in frameworks:
        job.framework(name, "1.2.3")
    job.step().every(10 * MS, STEPS, dur=10 * MS)
    return job


def pytorch(*, loader: bool = False, tensorflow: bool = False) -> Job:
    """Optimizer steps, with a DataLoader if wanted; TensorFlow may be imported for its tf.data."""
    job = Job()
    job.framework("torch", "2.13.0")
    if tensorflow:
        job.framework("tensorflow")
    ends = job.call(Kind.APPLY, "optimizer step", role="optimizer", call_file=SCRIPT, call_line=12)
    ends.every(10 * MS, STEPS, dur=0, start=9 * MS)
    if loader:
        made = DataLoaderMade(id=1, workers=0, file=SCRIPT, line=5)
        job.event(made)
        job.nexts().every(10 * MS, STEPS, dur=2 * MS, arg=made.id)
    return job


def jax() -> Job:
    """A loop of JAX."""
    return _marked("jax")


def unmarked_jax() -> Job:
    """A loop of JAX in which nothing is seen."""
    job = Job()
    job.framework("jax", "0.10.2")
    return job


def numpy() -> Job:
    """A loop of NumPy, which is in no log unless something else had it logged."""
    return _marked("numpy")


def plain() -> Job:
    """A loop of a program without any framework."""
    return _marked()


def onnxruntime() -> Job:
    """Runs of a session."""
    job = Job()
    job.framework("onnxruntime", "1.31.1")
    job.framework("numpy", "2.4.6")
    job.call(Kind.INFERENCE, "model.onnx", call_file=SCRIPT, call_line=12).every(10 * MS, STEPS, dur=7 * MS)
    return job


def keras_on(backend: str, version: str, *, steps: bool = True) -> Job:
    """A fit of Keras on another backend than TensorFlow."""
    job = Job()
    job.framework(backend, version)
    job.event(Framework(at=0, name="keras", version="3.15.1", detail=backend))
    if steps:
        job.execution().every(10 * MS, STEPS, dur=8 * MS)
    return job


def tensorflow() -> Job:
    """A fit of Keras on TensorFlow."""
    job = Job()
    job.framework()
    job.event(Framework(at=0, name="keras", version="3.15.1", detail="tensorflow"))
    job.execution().every(10 * MS, STEPS, dur=8 * MS)
    return job
