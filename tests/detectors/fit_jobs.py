"""Jobs of Keras' fit and of its methods for single batches."""

from __future__ import annotations

from tests.derive.sessions import MS, NESTED, US, Job, node
from tests.detectors.jobs import PERIOD, STEPS


def read_models(job: Job, wait: int) -> Job:
    """Reads of tf.data's model for the usual fit, whose executions wait for their input so long at their start."""
    dataset = job.dataset("MapDataset", job.dataset("RangeDataset", line=70), line=71)
    iterator = job.iterator(dataset)
    for executions in (40, 80):
        nodes = [node(1, "Map", 2, elements=executions, busy=executions * wait), node(2, "Range", elements=executions)]
        gaps = [(PERIOD - wait) // US] * (executions - 1)
        job.model(iterator, executions * PERIOD - PERIOD // 2, nodes, gaps)
    return job


def epochs(job: Job, call_of: str, dur: int, *, length: int = 20) -> Job:
    """The usual fit with something at the end of each epoch: within the last step of ``length``."""
    names = {"evaluate": job.loop("evaluate", line=50), "save": job.save()}
    epoch_end = job.callback("ModelCheckpoint.on_epoch_end", own=False)
    for end in range(length, STEPS, length):
        at = end * PERIOD - dur - MS
        if call_of == "save":
            epoch_end.at(at, dur + 10 * US)
            names["save"].at(at, dur)
        else:
            names["evaluate"].at(at, dur, flags=NESTED)
    return job


def on_batch(wait: int, call: int) -> Job:
    """A loop that pulls a batch and calls Keras' train_on_batch with it."""
    job = Job()
    iterator = job.iterator(batch=32)
    job.nexts().every(PERIOD, STEPS, dur=wait, arg=iterator)
    job.loop("train_on_batch").every(PERIOD, STEPS, dur=call + MS, start=wait, arg=32)
    job.execution("train").every(PERIOD, STEPS, dur=call, start=wait + 500 * US, arg=1)
    return job
