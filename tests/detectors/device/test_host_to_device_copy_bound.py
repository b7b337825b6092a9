"""KRN002 host-to-device-copy-bound: its fixtures."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.traced_jobs import DEVICE, HEAD, on_gpu, transposed

from stepscope.derive import steps_view
from stepscope.detectors.base import Seen
from stepscope.detectors.device.host_to_device_copy_bound import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: on_gpu([HEAD], copy=40_000),
    expected=Expected(
        severity="high",
        cost=0.4,
        where=(),
        metrics=("copy_ratio", "bytes_per_step", "bytes_per_s", "traced_steps"),
        title=("copies from host to device", "40 %"),
        introduced="data preparation",
        pipeline_stage="host-to-device",
        remedy="prefetch-to-device",
    ),
    silent=lambda: on_gpu([("gemm_kernel", 0.0, 10.0, 60_000.0)], copy=2_000),
    not_applicable=lambda: transposed(10_000),
    missing=DEVICE,
    below=lambda: on_gpu([HEAD], copy=9_900),
    at=lambda: on_gpu([HEAD], copy=10_100),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def test_the_map_that_widens_what_is_sent_is_its_place() -> None:
    """Bytes are cast to floats before the copy: four times of them are sent."""
    job = on_gpu([HEAD], copy=40_000)
    frames = job.dataset("TensorSliceDataset", line=11, element_bytes=27_648)
    cast = job.dataset("ParallelMapDataset", frames, line=12, element_bytes=110_592, fn_name="scaled")
    batches = job.dataset("BatchDataset", cast, line=13, element_bytes=110_592, batch=32)
    iterator = job.iterator(batches)
    job.nexts().every(100 * MS, 40, dur=MS, arg=iterator)
    view = steps_view.of(job.view())
    assert view is not None
    (found,) = DETECTOR.detect(view, DETECTOR.params)
    assert isinstance(found, Seen)
    assert found.where[0].line == 12
    (smaller,) = (one.text for one in found.remedies if one.id == "smaller-types")
    assert smaller.startswith("scaled (line 12) makes 4 times the bytes that it takes: do that on the device")
