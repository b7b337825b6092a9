"""``ps`` and ``top`` of a job whose collector publishes no more: nothing old is shown as if it were so now."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from stepscope.launcher import give_way, jobs, rundir
from stepscope.launcher.give_way import GaveWay
from stepscope.model.api.status import LiveShare, LiveTask, Status
from stepscope.native import process_stat
from stepscope.report import live
from stepscope.wire.env import STATUS_NAME

TASK = LiveTask(kind="step", name="train", pid=1, count=900, per_s=9.25, mean_ns=10**8, p95_ns=10**8)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Path]:
    """The run directory of a job (this process) whose collector has just published a status."""
    folder = rundir.make(tmp_path / "s.stepscope", time.monotonic_ns())
    ticks = process_stat.start_ticks(os.getpid())
    command = (sys.executable, "train.py")
    rundir.write_job(
        folder, rundir.JobFacts(pid=os.getpid(), start_ticks=ticks, launcher_pid=os.getpid(), command=command)
    )
    status = Status(
        command=command,
        state="running",
        phase="training",
        steps=900,
        steps_per_s=9.25,
        samples_per_s=73.5,
        anatomy=(LiveShare(component="compute", ratio=0.75),),
        tasks=(TASK,),
        session=str(tmp_path / "s.stepscope"),
    )
    (folder / STATUS_NAME).write_bytes(msgspec.json.encode(status))
    yield folder
    shutil.rmtree(folder)


def shown(run: Path) -> tuple[jobs.RunningJob, str]:
    """The job, and all that is shown of it: on the terminal and to programs."""
    job = jobs.JobWatch().read(run)
    assert job is not None
    row = live.JobRow(status=job.status, user=job.user, state=job.state, name=job.name)
    texts = [live.table([row], width=200), live.text(row, width=200)]
    told = live.to_json([(job.status, job.user, job.state)]).decode()
    return job, "\n".join([*texts, told])


def test_a_job_whose_collector_publishes(run: Path) -> None:
    """Its newest figures."""
    job, text = shown(run)
    assert (job.state, "9.25" in text, "73.5" in text, "75 %" in text) == ("running", True, True, True)


@pytest.mark.parametrize("left", [True, False])
def test_a_job_whose_collector_is_gone(run: Path, *, left: bool) -> None:
    """At once where it gave way, else after half a minute: what was counted stays, what was so then is left out."""
    age_s = 5 if left else 100
    os.utime(run / STATUS_NAME, (time.time() - age_s, time.time() - age_s))
    if left:
        give_way.announce(run, GaveWay(at_ns=time.monotonic_ns()))
    job, text = shown(run)
    assert job.state == "silent"
    assert [figure for figure in ("9.25", "73.5", "75 %", "0.75", "training") if figure in text] == []
    assert "900" in text
    why = "its collector has left its memory to the job" if left else "its collector publishes no more"
    assert "nothing is known" in live.table(
        [live.JobRow(status=job.status, user="", state=job.state, name="")], width=200
    )
    assert why in json.dumps(job.status.problems)


def test_the_collector_that_stores_the_rest_is_heard_again(run: Path) -> None:
    """The mark of the one that gave way is older than what it publishes."""
    give_way.announce(run, GaveWay(at_ns=time.monotonic_ns()))
    os.utime(run / "gave-way.json", (time.time() - 60, time.time() - 60))
    assert shown(run)[0].state == "running"
