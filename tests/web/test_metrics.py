"""The exposition for Prometheus of a job's GPUs."""

from __future__ import annotations

from stepscope.model.api.rest_api import Job
from stepscope.model.api.status import LiveGpu, Status
from stepscope.web import metrics


def _lines(*gpus: LiveGpu) -> dict[str, float]:
    status = Status(pid=7, session="/s/run.stepscope", gpus=gpus)
    job = Job(pid=7, name="train.py", user="me", state="running", session="key", status=status)
    text = metrics.exposition([job]).decode()
    lines = (line.rpartition(" ") for line in text.splitlines() if line.startswith("stepscope_gpu"))
    return {name: float(value) for name, _, value in lines}


def test_each_reading_has_its_gauge() -> None:
    """One sample for each reading, labelled by the job and the GPU, in the units of the names."""
    found = _lines(
        LiveGpu(
            index=1,
            name="H100",
            busy_ratio=0.97,
            used_bytes=10,
            job_bytes=8,
            total_bytes=80,
            power_w=655.5,
            slowed=("power limit",),
            rx_bytes_s=5,
            tx_bytes_s=6,
        )
    )
    of = '{gpu="1",name="H100",pid="7",session="run.stepscope"}'
    assert found.pop(of.join(("stepscope_gpu_busy_ratio", ""))) == 0.97
    why = 'stepscope_gpu_slowed{gpu="1",name="H100",pid="7",reason="%s",session="run.stepscope"}'
    assert (found.pop(why % ""), found.pop(why % "power limit")) == (1.0, 1.0)
    assert {name.partition("{")[0].removeprefix("stepscope_gpu_"): value for name, value in found.items()} == {
        "memory_used_bytes": 10,
        "memory_job_bytes": 8,
        "memory_total_bytes": 80,
        "power_watts": 655.5,
        "bus_received_bytes_per_second": 5,
        "bus_sent_bytes_per_second": 6,
    }


def test_what_a_card_does_not_tell_is_left_out() -> None:
    """No reading, no sample: a zero would be one. A clock that nothing holds down is a zero."""
    assert _lines(LiveGpu(index=0, name="old", busy_ratio=0.0)) == {
        'stepscope_gpu_busy_ratio{gpu="0",name="old",pid="7",session="run.stepscope"}': 0.0
    }
    assert list(_lines(LiveGpu(index=0, name="new", slowed=())).values()) == [0.0]
    assert _lines() == {}
