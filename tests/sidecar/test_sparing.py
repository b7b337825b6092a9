"""What is left out while memory is short in our control group."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from tests.sidecar.capture_job import Job, S

from stepscope.sidecar.capturing import Capturing

if TYPE_CHECKING:
    from stepscope.collector.recorder import Recording
    from stepscope.sidecar.live import Live


def test_nothing_is_captured_while_memory_is_short(tmp_path: Path) -> None:
    """Who asks waits until there is room in the control group again."""
    job = Job(run=tmp_path)
    deciding = Capturing(cast("Recording", job), cast("Live", job), 1)
    job.ask(steps=5)
    job.sampling.spare = True
    deciding.tick(1 * S, "running")
    assert job.captures.asked == []
    job.sampling.spare = False
    deciding.tick(2 * S, "running")
    assert len(job.captures.asked) == 1
