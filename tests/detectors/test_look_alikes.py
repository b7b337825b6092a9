"""Sessions that look like a known problem and are another one, or none: false alarms are defects."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, SCRIPT, Frame
from tests.detectors.asking import asked, codes, find, look
from tests.detectors.graph_jobs import double_tables, flattened_tables, one_hot_tables
from tests.detectors.jobs import PERIOD, REPORT, STEPS, nothing, pulled, train_loop


@pytest.mark.parametrize("role", ["generator", "pydataset", "numpy_function", "py_function"])
def test_cheap_python_in_the_input_is_none(role: str) -> None:
    """A generator or Python function that is fast enough to hide behind the step is no problem."""
    assert codes(pulled(MS, python=15 * MS, role=role)) == []


def test_compute_is_none() -> None:
    """A job whose steps are all compiled compute has nothing to report."""
    job = train_loop(99 * MS)
    job.machine(10, cpus=2, got=1.98, waiting=0.5, others=0.02)
    assert codes(job) == []


def test_small_things_are_not_asked_about() -> None:
    """What cannot cost anything, whatever its time, does not ask for a trace; what may, does."""
    assert asked(one_hot_tables(10)) == []
    assert asked(one_hot_tables(12_000)) == ["GRF021"]
    assert asked(double_tables(elements="")) == []
    assert asked(double_tables()) == ["GRF009"]
    assert asked(flattened_tables(units=4)) == []
    assert asked(flattened_tables()) == ["GRF011"]


def test_nothing_about_a_job_without_steps() -> None:
    """Without steps there is no trend to look at, and that is said."""
    _, checked = look(nothing())
    assert {checked[c].outcome for c in ("TRD001", "MEM001")} == {"not-applicable"}


@pytest.mark.parametrize("after", [True, False])
def test_samples_without_lines(after: bool) -> None:
    """Stacks whose lines are not known (0) make no detector fail."""
    job = train_loop(50 * MS)
    frames = (Frame(SCRIPT, "main", REPORT if after else 43), Frame(SCRIPT, "report", 0))
    job.samples([i * PERIOD + 70 * MS for i in range(STEPS)], *frames)
    assert find(job)


def test_samples_without_time() -> None:
    """Samples that stand for no time make no detector fail."""
    job = train_loop(50 * MS)
    job.samples([i * PERIOD + 70 * MS for i in range(STEPS)], Frame(SCRIPT, "main", REPORT), dur=0)
    find(job)
