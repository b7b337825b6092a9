"""Members of one job on one host, each under a separate run: one job in lists, one joint report at the end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from typing import TYPE_CHECKING

from tests.run.conftest import PATIENCE_S, Project, environment, wait_for

from stepscope.report import json_report
from stepscope.store.manifests import read_manifest

if TYPE_CHECKING:
    from pathlib import Path

    from stepscope.model.report.report import Report

STEPS = """
import os, sys, time, stepscope
print("ready", flush=True)
while not os.path.exists(sys.argv[1]):
    stepscope.step()
    with stepscope.span("work"):
        time.sleep(0.005)
"""


def started(
    project: Project, index: int, count: int, port: int, *, until: str = "stop", session: str = ""
) -> subprocess.Popen[str]:
    """A worker under a run of its own, as TF_CONFIG makes it one."""
    places = [f"127.0.0.1:{port + n}" for n in range(count)]
    config = json.dumps({"cluster": {"worker": places}, "task": {"type": "worker", "index": index}})
    process = subprocess.Popen(
        project.command("run", "--session", session or f"w{index}.stepscope", "steps.py", until),
        cwd=project.root,
        env=environment(TF_CONFIG=config),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    project.started.append(process)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def listed(project: Project, names: set[str]) -> list[dict[str, object]]:
    """The running jobs of this folder that are these tasks."""
    said = json.loads(project.run("ps", "--json").stdout)["jobs"]
    return [job for job in said if job["cwd"] == str(project.root) and job["member"] in names]


def report_in(path: Path) -> Report:
    """A session's report."""
    return json_report.decode((path / "report.json").read_bytes())


def joint_in(project: Project) -> Path:
    """The joint session."""
    (path,) = project.root.glob("steps-*-job.stepscope")
    return path


def test_one_job_in_lists_and_one_report(project: Project) -> None:
    """Both workers are listed as one job; who ends first says where the joint report will be, the last shows it."""
    project.script("steps.py", STEPS)
    first, last = (started(project, n, 2, 23_000 + os.getpid() % 1_000, until=f"stop-{n}") for n in range(2))
    names = {"worker 0", "worker 1"}
    jobs = wait_for(lambda: len(found := listed(project, names)) == len(names) and found, "both in the list")
    assert isinstance(jobs, list)
    assert len({job["cluster"] for job in jobs}) == 1
    assert {job["cluster_tasks"] for job in jobs} == {2}
    assert "one job: 2 of 2 tasks" in project.run("ps").stdout
    (project.root / "stop-0").touch()
    _, said = first.communicate(timeout=PATIENCE_S)
    assert "members   others of the job still run here; when the last has ended: stepscope report steps-" in said
    (project.root / "stop-1").touch()
    _, said = last.communicate(timeout=PATIENCE_S)
    assert "members     2 of 2 tasks (TF_CONFIG)" in said
    joint = joint_in(project)
    found = report_in(joint)
    assert found.cluster is not None
    assert [row.name for row in found.cluster.members] == ["worker 0", "worker 1"]
    assert "DX193" not in [one.code for one in found.diagnostics]
    for name in ("w0", "w1"):
        (note,) = [one for one in report_in(project.root / f"{name}.stepscope").diagnostics if one.code == "DX193"]
        assert note.text.endswith(str(joint))
    again = project.run("report", "w0.stepscope")
    assert f"stepscope report {joint}" in again.stderr
    assert read_manifest(joint).joined_by == "run"


def test_a_worker_that_is_killed_and_one_that_never_came(project: Project) -> None:
    """The data of all that ran are whole; who was killed, who was started again and who is missing is said."""
    project.script("steps.py", STEPS)
    port = 24_000 + os.getpid() % 1_000
    killed, lives = (started(project, n, 3, port) for n in range(2))
    names = {"worker 0", "worker 1"}
    jobs = wait_for(lambda: len(found := listed(project, names)) == len(names) and found, "both in the list")
    assert isinstance(jobs, list)
    (pid,) = (job["pid"] for job in jobs if job["member"] == "worker 0")
    os.kill(pid, signal.SIGKILL)
    killed.communicate(timeout=PATIENCE_S)
    again = started(project, 0, 3, port, session="again.stepscope")
    wait_for(lambda: len(listed(project, names)) == len(names), "both in the list again")
    (project.root / "stop").touch()
    for process in (again, lives):
        process.communicate(timeout=PATIENCE_S)
    assert (killed.returncode, again.returncode, lives.returncode) == (-signal.SIGKILL, 0, 0)
    found = report_in(joint_in(project))
    notes = {one.code: one.text for one in found.diagnostics}
    assert notes["DX194"].startswith("worker 0 was ended by SIGKILL, ")
    assert notes["DX191"].startswith("worker 2 of the job's 3 tasks")
    assert found.cluster is not None
    assert found.cluster.missing == ("worker 2",)
    assert all(row.steps for row in found.cluster.members)
    assert {row.name: row.incarnations for row in found.cluster.members} == {"worker 0": 2, "worker 1": 1}
