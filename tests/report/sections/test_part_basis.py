"""What the report says of how the parts of a step of PyTorch were measured."""

from __future__ import annotations

import numpy as np
import pytest
from tests.derive.sessions import MS, Frame, Job, filled
from tests.derive.torch_jobs import LOOP, MODULE, sampled, training

from stepscope.derive.steps.sampled_parts import MIN_SAMPLES
from stepscope.diagnosis import analyze
from stepscope.tables.records import GpuTable


def bases(job: Job) -> dict[str, str]:
    """What is said of each part."""
    return {part.component: part.basis for part in analyze.components(job.view())}


def test_samples_are_counted() -> None:
    """Of the forward pass; what records show needs no word."""
    job = training()
    sampled(job, 2 * MS, LOOP, MODULE)
    sampled(job, 3 * MS, LOOP)
    said = bases(job)
    assert said.pop("forward") == f"from {2 * MIN_SAMPLES} stack samples"
    assert set(said.values()) == {""}


@pytest.mark.parametrize(
    ("frames", "count", "said"),
    [
        ((LOOP, MODULE), 3, "too few"),
        ((LOOP,), 70, "no forward pass"),
    ],
)
def test_what_was_not_seen_is_said(frames: tuple[Frame, ...], count: int, said: str) -> None:
    """Of the rest, which holds it, if the program has it."""
    job = training(backward=False)
    sampled(job, 2 * MS, *frames, count=count)
    assert said in bases(job)["other-python"]
    assert "with the backward pass" in bases(job)["other-python"]


def test_on_a_device_time_is_of_the_host() -> None:
    """Calls return before a GPU has done what they ask for."""
    job = training(steps=600)
    at = np.arange(6, dtype=np.int64) * 1000 * MS
    columns = {"at_ns": at, "busy_percent": 0 * at + 60, "job_reserved_bytes": 0 * at + 1, "total_bytes": 0 * at + 9}
    job.resources["gpus"] = filled(GpuTable, len(at), **columns)
    job.resources["resource_names"] = ("gpu:0 H100",)
    said = bases(job)
    assert "on the host" in said["backward"]
    assert "on the host" in said["optimizer"]
    assert said["input-wait"] == ""
