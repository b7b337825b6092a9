"""Fixtures of the detectors that look at network, disks, utilisation and GPUs."""

from __future__ import annotations

from tests.derive.sessions import MS, US
from tests.detectors.fixture import Expected, Fixtures
from tests.detectors.jobs import train_loop
from tests.detectors.resource_jobs import (
    MB,
    dipping,
    from_disk,
    gpu_steps,
    gpu_unsampled,
    in_turns,
    over_network,
    uploading,
)

HANDOVER = 300 * US
MISSING = "samples of network and disks"
NET001 = Fixtures(
    firing=lambda: in_turns(6),
    expected=Expected(
        severity="high",
        cost=2.85 / 8,
        where=(("train.py", 70),),
        metrics=(
            "overlap_ratio",
            "input_wait_ratio",
            "wire_while_waiting_ratio",
            "wire_while_working_ratio",
            "network_in",
        ),
        title=("in bursts", "network idles 62 %"),
        introduced="data preparation",
        pipeline_stage="raw-input",
        remedy="fetch-ahead",
    ),
    silent=lambda: in_turns(6, contrast=False),
    not_applicable=lambda: train_loop(80 * MS),
    missing=MISSING,
    below=lambda: in_turns(1),
    at=lambda: in_turns(2),
)
NET002 = Fixtures(
    firing=lambda: over_network(60 * MS),
    expected=Expected(
        severity="high",
        cost=0.6,
        where=(("train.py", 70),),
        metrics=(
            "network_in",
            "input_wait_ratio",
            "bytes_per_sample",
            "samples_per_s_allowed",
            "wire_busy_ratio",
            "unread_ratio",
            "own_ratio",
        ),
        title=("network is at its limit", "5.00 MB/s", "62.5 kB a sample", "80.0 samples/s", "60 %"),
        introduced="data preparation",
        pipeline_stage="raw-input",
        remedy="fewer-bytes",
    ),
    silent=lambda: over_network(60 * MS, unread=130_000),
    not_applicable=lambda: train_loop(80 * MS),
    missing=MISSING,
    below=lambda: over_network(15 * MS + HANDOVER - US),
    at=lambda: over_network(15 * MS + HANDOVER + US),
)
NET003 = Fixtures(
    firing=lambda: uploading(5, 0.3),
    expected=Expected(
        severity="high",
        cost=0.2995,
        where=(),
        metrics=(
            "wait_while_uploading_ratio",
            "wait_otherwise_ratio",
            "input_while_uploading",
            "input_otherwise",
            "uploading_ratio",
            "network_out",
        ),
        title=("uploads squeeze the input", "4.00 MB/s go out", "5.00 to 1.50 MB/s"),
        pipeline_stage="raw-input",
        remedy="upload-later",
    ),
    silent=lambda: uploading(5, 1.0, wait=MS // 10),
    not_applicable=lambda: train_loop(80 * MS),
    missing=MISSING,
    below=lambda: uploading(5, 0.81),
    at=lambda: uploading(5, 0.79),
)
DSK001 = Fixtures(
    firing=lambda: from_disk(0.95),
    expected=Expected(
        severity="high",
        cost=0.6,
        where=(("train.py", 70),),
        metrics=("disk_busy_ratio", "read_rate", "input_wait_ratio", "requests_in_flight", "request_bytes"),
        title=("disk sda is busy 95 %", "6.00 MB/s", "60 %"),
        introduced="data preparation",
        pipeline_stage="raw-input",
        remedy="parallel-reads",
    ),
    silent=lambda: from_disk(0.95, own=0.3),
    not_applicable=lambda: train_loop(80 * MS),
    missing=MISSING,
    below=lambda: from_disk(0.699),
    at=lambda: from_disk(0.701),
)
UTL001 = Fixtures(
    firing=lambda: dipping(4),
    expected=Expected(
        severity="low",
        cost=7 / 28 * 0.3,
        where=(),
        metrics=("lost_ratio", "dip_ratio", "dips", "period_s", "period_spread", "usual", "within"),
        title=("CPU utilisation dips every 4.0 s", "from 1.5 to 0.2 cores", "compiled step itself"),
        introduced="unknown",
        pipeline_stage="forward-backward",
        remedy="less-often",
        basis="modelled",
    ),
    silent=lambda: dipping(4, within=1.2),
    not_applicable=lambda: train_loop(80 * MS),
    missing=MISSING,
    below=lambda: dipping(4, within=0.91),
    at=lambda: dipping(4, within=0.89),
)
NO_GPU_SAMPLES = "samples of the GPU"
GPU001 = Fixtures(
    firing=lambda: gpu_steps([0] * 25 + [90] * 25, late=25),
    expected=Expected(
        severity="high",
        cost=25 / 34.9,
        where=(),
        metrics=("start_ratio", "start_s", "first_step_s"),
        title=("starts to work 25 s after", "72 %"),
        introduced="initialization",
        exposed="initialization",
        pipeline_stage="none",
        remedy="load-later",
        per_step=250 * MS,
    ),
    silent=lambda: gpu_steps([0] * 5 + [90] * 25, late=5),
    not_applicable=lambda: gpu_unsampled(train_loop(80 * MS)),
    missing=NO_GPU_SAMPLES,
    below=lambda: gpu_steps([0] * 19 + [90] * 25, late=19),
    at=lambda: gpu_steps([0] * 20 + [90] * 25, late=20),
)
GPU002 = Fixtures(
    firing=lambda: gpu_steps([98] * 11),
    expected=Expected(
        severity="info",
        cost=0.0,
        where=(),
        metrics=("gpu_busy_ratio", "least_busy_ratio"),
        title=("busy 98 %", "only the ops"),
        introduced="model building",
        pipeline_stage="forward-backward",
        remedy="improve-ops",
    ),
    silent=lambda: gpu_steps([98, 98, 98, 60, 98, 98, 98, 98, 98, 98, 98]),
    not_applicable=lambda: gpu_unsampled(train_loop(80 * MS)),
    missing=NO_GPU_SAMPLES,
    below=lambda: gpu_steps([94] * 11),
    at=lambda: gpu_steps([95] * 11),
)
GPU003 = Fixtures(
    firing=lambda: gpu_steps([0] * 11, reserved=300 * MB, own=0),
    expected=Expected(
        severity="ask",
        cost=0.0,
        where=(("train.py", 44),),
        metrics=("gpu_busy_ratio", "reserved_bytes", "compute_ratio"),
        title=("does not use the GPU", "80 %"),
        introduced="environment setting",
        pipeline_stage="forward-backward",
        remedy="use-gpu",
        basis="unknown",
    ),
    silent=lambda: gpu_steps([0] * 11),
    not_applicable=lambda: gpu_unsampled(train_loop(80 * MS)),
    missing=NO_GPU_SAMPLES,
    below=lambda: gpu_steps([2] * 11, reserved=300 * MB, own=0),
    at=lambda: gpu_steps([1] * 11, reserved=300 * MB, own=0),
)
GPU004 = Fixtures(
    firing=lambda: gpu_steps([40] * 11, live=8_000 * MB),
    expected=Expected(
        severity="info",
        cost=0.0,
        where=(),
        metrics=("live_bytes", "total_bytes", "batch_allowed", "gpu_busy_ratio"),
        title=("batch of 72 instead of 8", "10 %", "busy 40 %"),
        introduced="hyper parameter tuning",
        pipeline_stage="forward-backward",
        remedy="larger-batch",
        basis="prior",
    ),
    silent=lambda: gpu_steps([97] * 11, live=8_000 * MB),
    not_applicable=lambda: gpu_steps([40] * 11),
    missing="live bytes of the GPU's memory",
    below=lambda: gpu_steps([40] * 11, live=36_001 * MB),
    at=lambda: gpu_steps([40] * 11, live=36_000 * MB),
)
