"""A wait for input is one number in the split, the title and the cost, or the title says why there are two."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from tests.derive.sessions import MAIN, MS, POOL, US, Job
from tests.detectors.jobs import PERIOD, STEPS, pulled

from stepscope.diagnosis.analyze import report_of
from stepscope.tables.units import format_ratio


def starved(job: Job) -> Job:
    """The job beside a process that takes half of the CPUs."""
    job.machine(10, got=1.0, others=1.0, waiting=1.0)
    return job


def locked() -> Job:
    """400 calls of Python a step on one core of two: the interpreter lock lines up the input and the step."""
    job = pulled(50 * MS, python=1, role="py_function")
    python = job.python("py_function", "tokenise")
    for call in range(400):
        python.every(PERIOD, STEPS, dur=60 * MS // 400, start=call * 60 * MS // 400, thread=POOL)
    job.machine(10, cpus=2, got=1.0)
    job.thread_cpu(10, {MAIN: 5, POOL: 95})
    return job


@pytest.mark.parametrize(
    ("job", "why"),
    [
        (lambda: pulled(60 * MS, python=58 * MS, role="numpy_function"), ""),
        (lambda: pulled(20_600 * US, python=20 * MS, role="numpy_function"), "without the hand-over of ready batches"),
        (lambda: pulled(20_600 * US), "without the hand-over of ready batches"),
        (lambda: starved(pulled(60 * MS)), "without the CPU time that other processes take"),
        (
            lambda: starved(pulled(60 * MS, python=58 * MS, role="numpy_function")),
            "without the CPU time that other processes take",
        ),
        (locked, "together with the GIL and the CPUs that it takes from the step, it costs"),
    ],
    ids=["one", "handed-over", "handed-over-by-a-stage", "starved", "starved-python", "lock"],
)
def test_one_number_or_why_there_are_two(job: Callable[[], Job], why: str) -> None:
    """Percentages of the title are the split's and the cost's as printed; the evidence's is accounted for."""
    report = report_of(job().session())
    found = next(f for f in report.findings if f.code in {"INP001", "INP002"})
    (split,) = (part.ratio for part in report.anatomy if part.component == "input-wait")
    title = re.findall(r"[0-9.]+ %", found.title)
    assert title == list(dict.fromkeys([format_ratio(split), format_ratio(found.cost.ratio)]))
    assert why in found.title
    own = next(e.value for e in found.evidence if e.metric == "input_wait_ratio")
    if format_ratio(own) != format_ratio(split):
        assert f"without it, the wait is {format_ratio(own)}" in found.explanation
