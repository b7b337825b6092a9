"""Jobs of Keras' fit and of its methods for single batches."""

from __future__ import annotations

from tests.derive.sessions import MS, NESTED, POOL, SCRIPT, US, Job, node
from tests.detectors.jobs import MAIN_CALL, PERIOD, STEPS


def read_models(job: Job, wait: int) -> Job:
    """Reads of tf.data's model for the usual fit, whose executions wait for their input so long at their start."""
    dataset = job.dataset("MapDataset", job.dataset("RangeDataset", line=70), line=71)
    iterator = job.iterator(dataset)
    for executions in (40, 80):
        nodes = [node(1, "Map", 2, elements=executions, busy=executions * wait), node(2, "Range", elements=executions)]
        gaps = [(PERIOD - wait) // US] * (executions - 1)
        job.model(iterator, executions * PERIOD - PERIOD // 2, nodes, gaps)
    return job


def filtered(kept: int, *, before: bool = False, by: str = "Filter", python: int = 0) -> Job:
    """Steps wait for a map of 64 elements a batch, of which a filter leaves ``kept``, or it stands ``before`` it.

    ``by``: what leaves them, if not a filter; ``python``: time of the map's function per batch, if it is user Python.
    """
    job = Job()
    source = job.dataset("RangeDataset", line=70)
    own = {"fn_file": SCRIPT, "fn_line": 15, "fn_end_line": 18}
    first, second = (f"{by}Dataset", "MapDataset") if before else ("MapDataset", f"{by}Dataset")
    lower = job.dataset(first, source, line=71, fn_name="decode", **own)
    upper = job.dataset(second, lower, line=72, fn_name="wanted", **own)
    iterator = job.iterator(job.dataset("BatchDataset", upper, line=73, batch=8), batch=8)
    job.function(**MAIN_CALL).every(PERIOD, STEPS, dur=20 * MS, start=60 * MS)
    job.nexts().every(PERIOD, STEPS, dur=60 * MS, arg=iterator)
    if python:
        job.python("numpy_function", "decode").every(PERIOD, STEPS, dur=python, thread=POOL)
    names = [name.removesuffix("Dataset") for name in (second, first)]
    for batches in (50, 90):
        counts = {"Map": kept if before else 64, by: kept}
        busy = {"Map": batches * 60 * MS, by: batches * MS}
        job.model(
            iterator,
            batches * PERIOD,
            [
                node(1, "Batch", 2, elements=batches, busy=batches * MS),
                node(2, names[0], 3, elements=batches * counts[names[0]], busy=busy[names[0]]),
                node(3, names[1], 4, elements=batches * counts[names[1]], busy=busy[names[1]]),
                node(4, "Range", elements=batches * 64, busy=batches),
            ],
        )
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
