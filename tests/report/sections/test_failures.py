"""How a job failed whose exit code nobody saw."""

from __future__ import annotations

import pytest

from stepscope.model.session.member import MemberInfo
from stepscope.model.session.session import Manifest, WorkerInfo
from stepscope.report.sections import failures

JOB = 10


def worker(pid: int, clean: bool, rank: int = -1) -> WorkerInfo:
    """A process, a task if it has a rank."""
    member = MemberInfo(launcher="torchrun", role="rank", index=rank, rank=rank) if rank >= 0 else None
    return WorkerInfo(key=f"{pid}-{int(clean)}", pid=pid, clean_exit=clean, member=member)


@pytest.mark.parametrize(
    ("workers", "ended"),
    [
        pytest.param([worker(JOB, True), worker(11, False)], True, id="a forked child runs no exit handlers"),
        pytest.param([worker(JOB, False), worker(11, True)], False, id="the job was killed, its child was not"),
        pytest.param([worker(JOB, False), worker(JOB, True)], True, id="exec"),
        pytest.param([worker(11, True), worker(12, False)], False, id="the job's process was not measured"),
        pytest.param([worker(JOB, True), worker(11, True, 0), worker(12, False, 1)], False, id="a task was killed"),
        pytest.param([worker(JOB, False), worker(11, True, 0), worker(12, True, 1)], True, id="tasks decide"),
        pytest.param([worker(11, True, 0), worker(13, False, 0)], True, id="a task's child says that it is the task"),
        pytest.param([worker(11, False, 0), worker(11, True, 0)], True, id="a task's exec"),
        pytest.param([], False, id="nothing is known"),
    ],
)
def test_whose_end_counts(workers: list[WorkerInfo], ended: bool) -> None:
    """That of the tasks, else that of the job's process, else that of all; not that of what they start."""
    manifest = Manifest(mode="enable", job_pid=JOB, workers=tuple(workers))
    assert failures.ended_by_itself(manifest) is ended
    assert (failures.of(manifest) == "") is ended
