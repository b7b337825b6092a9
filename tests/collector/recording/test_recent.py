"""What the live page counts: calls that were only counted in gaps go where the report puts them."""

from __future__ import annotations

import numpy as np
import pytest
from tests.derive.sessions import MS, US, Job

from stepscope.collector.agent_files.ring import RECORD_DTYPE
from stepscope.collector.recording.recent import Recent
from stepscope.derive.steps.gaps import share
from stepscope.wire.kinds import Kind

PERIOD = 2 * MS
WINDOW = 100
"""Steps observed before and after the gap."""
COUNTED = 1000
"""Calls counted in it."""
AGAIN = (WINDOW + COUNTED) * PERIOD


def replayed(job: Job, batches: int) -> Recent:
    """The live counts once the collector has drained the job's records in so many batches."""
    table = job.table()
    rows = np.zeros(len(table), RECORD_DTYPE)
    for name in ("start_ns", "dur_ns", "arg", "name", "kind", "flags", "thread"):
        rows[name] = getattr(table, name)
    rows = rows[np.argsort(rows["start_ns"] + rows["dur_ns"], kind="stable")]  # as they are written
    recent = Recent(0)
    for batch in np.array_split(rows, batches):
        recent.add_records(batch)
    return recent


def counts(recent: Recent) -> dict[Kind, int]:
    """By kind."""
    found: dict[Kind, int] = {}
    for (kind, _), calls in recent.counts.items():
        found[Kind(kind)] = found.get(Kind(kind), 0) + calls
    return found


@pytest.mark.parametrize("batches", [1, 7, 50])
@pytest.mark.parametrize("replicas", [1, 2, 8])
def test_live_counts_are_those_of_the_report(replicas: int, batches: int) -> None:
    """A function that pulls a batch for each replica: pulls were counted, and say how many steps there were."""
    job = Job()
    for start in (0, AGAIN):
        job.function().every(PERIOD, WINDOW, dur=MS, start=start)
        for replica in range(replicas):
            job.nexts().every(PERIOD, WINDOW, dur=US, start=start + MS + 2 * US * (1 + replica))
    begin = WINDOW * PERIOD - US
    job.gap(begin, AGAIN - begin - 1, COUNTED * replicas, Kind.NEXT)
    found, worker = counts(replayed(job, batches)), job.worker()
    kinds = worker.records.kind
    for kind, seen in ((Kind.FUNCTION, 2 * WINDOW), (Kind.NEXT, 2 * WINDOW * replicas)):
        of_report = share(worker.records, worker.gaps, kind, np.flatnonzero(kinds == kind))
        assert abs(found[kind] - seen - of_report) <= replicas
    assert abs(found[Kind.FUNCTION] - 2 * WINDOW - COUNTED) <= COUNTED // 50


def test_steps_of_keras_2_are_not_those_of_another_function() -> None:
    """There Keras' step is counted as a tf.function, also where the job has called another one before."""
    job = Job()
    job.function("restore").at(0, MS)
    job.execution("predict").every(PERIOD, 2 * WINDOW, dur=MS, start=2 * MS)
    job.gap((2 * WINDOW + 2) * PERIOD, COUNTED * PERIOD, COUNTED, Kind.FUNCTION)
    assert counts(replayed(job, 4)) == {Kind.FUNCTION: 1, Kind.EXECUTION: 2 * WINDOW + COUNTED}
