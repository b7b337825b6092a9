"""``run --gather``: the session is sent when the job is done, and the job is what it is without it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.run.conftest import environment

from stepscope.report import json_report

if TYPE_CHECKING:
    from tests.run.conftest import Project

STEPS = """
import sys, time, stepscope
for _ in range(60):
    stepscope.step()
    with stepscope.span("work"):
        time.sleep(0.005)
sys.exit(3)
"""


def config(index: int) -> str:
    """Each of three workers, of which two run."""
    places = [f"host-{n}:2222" for n in range(3)]
    return json.dumps({"cluster": {"worker": places}, "task": {"type": "worker", "index": index}})


def test_gathered_in_a_folder_and_joined(project: Project) -> None:
    """Two workers of three, one after the other as on two hosts; the joint report names the third."""
    project.script("steps.py", STEPS)
    for index in range(2):
        done = project.run(
            *("run", "--session", f"w{index}.stepscope", "--gather", "shared", "steps.py"),
            env=environment(TF_CONFIG=config(index)),
        )
        assert done.returncode == 3
        assert "gathered at shared; when all are there: stepscope merge shared" in done.stderr
    merged = project.run("merge", "shared", "-o", "job.stepscope")
    assert merged.returncode == 0, merged.stderr
    found = json_report.decode((project.root / "job.stepscope" / "report.json").read_bytes())
    assert found.cluster is not None
    assert [row.name for row in found.cluster.members] == ["worker 0", "worker 1"]
    assert found.cluster.missing == ("worker 2",)


def test_a_dead_server_changes_nothing(project: Project) -> None:
    """One line says that nothing was gathered and how to do it later; so does that command, once somebody listens."""
    project.script("steps.py", STEPS)
    key = project.root / "KEY"
    key.write_bytes(bytes(32))
    key.chmod(0o600)
    gather = ("--gather", "http://127.0.0.1:9", "--key-file", str(key))
    done = project.run("run", "-q", "--session", "w.stepscope", *gather, "steps.py")
    assert done.returncode == 3
    (line,) = done.stderr.splitlines()
    assert line.startswith("stepscope: not gathered: http://127.0.0.1:9: connection refused; expected")
    assert (
        f"; the session is here; send it later: stepscope gather send w.stepscope --to {gather[1]} --key-file" in line
    )
    server = subprocess.Popen(
        [*project.command("gather", "serve", "there", "--listen", "127.0.0.1:0", "--key-file", str(key))],
        cwd=project.root,
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    project.started.append(server)
    assert server.stdout is not None
    url = server.stdout.readline().strip()
    sent = project.run("gather", "send", "w.stepscope", "--to", url, "--key-file", str(key))
    assert sent.returncode == 0, sent.stderr
    assert len(list((project.root / "there").rglob("complete.json"))) == 1


def test_what_can_never_work_is_said_before_the_job(project: Project) -> None:
    """A server without a key: the job is not started."""
    done = project.run("run", "--gather", "http://host:1", "--", sys.executable, "-c", "print(1)")
    assert done.returncode == 64
    assert done.stdout == ""
    assert "without --key-file" in done.stderr
