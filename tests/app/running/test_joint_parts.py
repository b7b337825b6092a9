"""Op traces of tasks that others depend on: only where somebody asks, or has named a budget."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec
import pytest
from tests.app.running.capture_job import KEY, Job, S

from stepscope.app.running.capturing import Capturing
from stepscope.model.session.member import MemberInfo

if TYPE_CHECKING:
    from stepscope.app.running.live import Live
    from stepscope.collector.recorder import Recording


@pytest.mark.parametrize(("tasks", "named", "served"), [(2, "", 0), (2, "1%", 1), (1, "", 1)])
def test_no_detector_has_a_task_traced_that_others_depend_on(
    tmp_path: Path, tasks: int, named: str, served: int
) -> None:
    """Unless its user has named a budget; a person's request is served always."""
    member = MemberInfo(launcher="TF_CONFIG", role="worker", tasks=tasks, size=tasks, rank=0)
    job = Job(run=tmp_path)
    worker = job.drainer.workers[KEY]
    worker.info = msgspec.structs.replace(worker.info, member=member)
    job.manifest = msgspec.structs.replace(job.manifest, budget=named)
    deciding = Capturing(cast("Recording", job), cast("Live", job), 1)
    job.wants(("GRF001", "ops"))
    deciding.tick(20 * S, "running")
    assert len(job.captures.asked) == served
    if not served:
        job.ask(force=True)
        deciding.tick(21 * S, "running")
        assert [asked.by.word for asked in job.captures.asked] == ["user"]
