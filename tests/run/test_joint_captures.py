"""A capture that is requested of one worker is of the same steps of all; real TensorFlow."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.run.conftest import Project, environment, wait_for

from stepscope.report import json_report
from stepscope.store.manifests import read_manifest

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = [
    pytest.mark.tf,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="TensorFlow is not installed"),
]
PROGRAM = Path(__file__).parent / "programs" / "workers_until.py"
SAME = re.compile(r"note +the same (\d+) steps of (worker [01]), (worker [01])\n")
STEPS = 5


def stepping(project: Project, count: int) -> list[int] | None:
    """Pids of the jobs of this folder, once there are so many and each makes steps."""
    said = json.loads(project.run("ps", "--json").stdout)["jobs"]
    mine = [job for job in said if job["cwd"] == str(project.root) and job["steps"] > 30]
    return [job["pid"] for job in mine] if len(mine) == count else None


@pytest.mark.parametrize("together", [False, True], ids=["sessions-of-their-own", "one-session"])
def test_the_same_steps_of_both_workers(project: Project, together: bool) -> None:
    """Both are asked, begin at one moment, and the joint report shows the steps that they have in common."""
    told = project.root / "told"
    run = ["run", "--budget", "0%", "--session"]
    script = [sys.executable, str(PROGRAM), str(told)]
    command: Sequence[str] = (
        project.command(*run, "all.stepscope", "--", *script)
        if together
        else [*script, *project.command(*run, "w{index}.stepscope", "--")]
    )
    quiet = environment(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
    nowhere = subprocess.DEVNULL
    job = subprocess.Popen(command, cwd=project.root, env=quiet, stdout=nowhere, stderr=nowhere, text=True)
    project.started.append(job)
    pids = wait_for(lambda: stepping(project, 1 if together else 2), "steps of the job", 240.0)
    assert isinstance(pids, list)
    done = project.run("trace", str(pids[0]), "--steps", str(STEPS), "--force", patience_s=240.0)
    told.touch()
    assert job.wait(timeout=240) == 0
    assert done.returncode == 0, done.stderr
    same = SAME.search(done.stdout)
    assert same is not None, done.stdout
    assert {same[2], same[3]} == {"worker 0", "worker 1"}
    assert int(same[1]) >= 1
    path = project.root / "all.stepscope" if together else next(project.root.glob("*-job.stepscope"))
    cluster = json_report.decode((path / "report.json").read_bytes()).cluster
    assert cluster is not None
    (capture,) = cluster.captures
    assert (capture.steps, capture.missed) == (int(same[1]), ())
    assert capture.first_step is not None
    for task in capture.tasks:
        assert task.communication is not None
        assert task.communication.exposed_ns > 0
    sessions = [path] if together else [project.root / f"w{index}.stepscope" for index in range(2)]
    made = [one for session in sessions for one in read_manifest(session).captures]
    assert len({one.joint for one in made}) == 1
    assert [one.leads for one in made].count(True) == 1
