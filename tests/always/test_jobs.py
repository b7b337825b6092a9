"""Real jobs in an enabled environment: unmodified, measured, and none the wiser."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.always.conftest import SOURCE, Environment, plain, tool, wait_for
from tests.always.fit_program import FIT
from tests.always.listing import job_of

from stepscope.collector import sweep
from stepscope.launcher import run_directories
from stepscope.model.log.events import Name
from stepscope.sessions.bundle import open_session
from stepscope.wire.kinds import Kind

pytestmark = pytest.mark.tf
FAMILY = """
import os, signal, subprocess, sys, threading, time
import multiprocessing
seen = []
signal.signal(signal.SIGCHLD, lambda number, frame: seen.append(number))
def work(seconds):
    import tensorflow as tf
    @tf.function
    def square(x): return x * x
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        square(tf.constant(2.0)); time.sleep(0.002)
if __name__ == "__main__":
    import tensorflow as tf
    forked = os.fork()  # before TensorFlow has threads, which do not come along
    if forked == 0:
        work(0.5); os._exit(0)
    os.waitpid(forked, 0)
    before = len(seen)
    long = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(7)"])
    waited = []
    waiter = threading.Thread(target=lambda: waited.append(os.wait()[0]))
    waiter.start()
    work(5)  # in here the sidecar is started, while os.wait() waits
    waiter.join()
    print(waited == [long.pid], len(seen) - before, flush=True)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    child = multiprocessing.get_context("spawn").Process(target=work, args=(0.5,))
    child.start(); child.join()
    if len(sys.argv) == 1:
        subprocess.run([sys.executable, __file__, "child"], env={"PATH": "/bin"}, check=True)
"""
SESSION = """
import os, time
import tensorflow.compat.v1 as tf
tf.disable_eager_execution()
x = tf.placeholder(tf.float32, [None, 4], name="x")
w = tf.get_variable("w", [4, 1])
loss = tf.reduce_mean(tf.square(tf.matmul(x, w)), name="loss")
step = tf.train.get_or_create_global_step()
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
runs = 0
with tf.train.MonitoredTrainingSession() as session:
    while not os.path.exists("stop"):
        session.run([train, loss], {x: [[1, 2, 3, 4]]}); runs += 1
        time.sleep(0.002)
print(runs)
"""


def script(environment: Environment, name: str, text: str) -> Path:
    """Write a user's script."""
    path = environment.folder / name
    path.write_text(text)
    return path


def sidecar_pid(pid: int) -> int:
    """The sidecar of a job, once it has said so; 0 before."""
    job = job_of(pid)
    return job["sidecar_pid"] if job else 0


def test_a_job_is_listed_watched_and_kept(tensorflow: Environment) -> None:
    """An unmodified training appears in ps with rates, anatomy and finding; its session is complete at its end."""
    process = tensorflow.start(script(tensorflow, "train.py", FIT))
    job = wait_for(lambda: (job := job_of(process.pid)) and job["top"] and job["steps_per_s"] and job, "a finding")
    assert (job["mode"], job["user"], job["state"]) == (
        "enable",
        "root" if os.geteuid() == 0 else job["user"],
        "running",
    )
    assert job["framework"].startswith("tensorflow ")
    slow = ("HST004", "GEN014")  # the callback, or its sleep where the samples on a busy machine name that
    tops = {*slow, "CFG001"}  # whichever costs more beside the other tests, at each look
    assert job["top"]["code"] in tops
    assert {share["component"] for share in job["anatomy"]} >= {"callbacks", "framework", "call"}
    assert {"Keras function", "Keras loop"} <= {task["kind"] for task in job["tasks"]}
    assert job["samples_per_s"] == pytest.approx(16 * job["steps_per_s"])
    table = tool("ps").stdout
    assert "train.py" in table
    assert any(code in table for code in tops)
    once = tool("top", "--once", str(process.pid)).stdout
    assert f"pid {process.pid}" in once
    assert "costs" in once
    traced = tool("trace", str(process.pid), "--steps", "3")
    assert traced.returncode == 0, traced.stderr
    assert "3 steps of Keras fit" in traced.stdout
    assert os.getsid(job["sidecar_pid"]) != os.getsid(process.pid)
    (tensorflow.folder / "stop").write_text("")
    out, err = process.communicate(timeout=60)
    assert (out, err, process.returncode) == ("ready\ndone\n", err, 0)
    assert not [line for line in err.splitlines() if line.startswith("stepscope") or str(SOURCE) in line]
    (session,) = wait_for(tensorflow.finished, "the session's end")
    wait_for(lambda: not tensorflow.runs(), "the run directory to go")
    stored = open_session(session)
    assert (stored.manifest.mode, stored.manifest.state, stored.manifest.exit_code) == ("enable", "finished", None)
    assert (session / "report.html").is_file()
    text = (session / "report.txt").read_text()
    assert any(code in text for code in slow)
    assert "Until" in text
    assert [(c.outcome, c.asked_by, c.steps) for c in stored.manifest.captures] == [("done", "user", 3)]
    assert any(path.endswith("train.py") for path in stored.sources)
    assert (session.stat().st_mode & 0o077, session.parent.stat().st_mode & 0o077) == (0, 0)
    assert job_of(process.pid) is None


def test_children_belong_to_the_job_and_wait_sees_no_sidecar(tensorflow: Environment) -> None:
    """Forked, spawned and started children are in their ancestor's session; os.wait and SIGCHLD are as without us."""
    out, err, code = tensorflow.run(script(tensorflow, "family.py", FAMILY))
    assert (out.splitlines(), code) == (["True 1", "True 1"], 0), err
    (session,) = wait_for(tensorflow.finished, "the session's end")
    workers = open_session(session).workers
    origins = sorted(len(w.info.command) for w in workers)
    assert len(workers) == 6, origins  # the job, its fork, spawn and child; the child's fork and spawn
    assert all((w.records.kind == Kind.FUNCTION).any() for w in workers)


def test_runs_of_a_monitored_session_are_counted(tensorflow: Environment) -> None:
    """A MonitoredTrainingSession appears with its runs, each of them counted."""
    process = tensorflow.start(script(tensorflow, "monitored.py", SESSION))
    job = wait_for(lambda: (job := job_of(process.pid)) and job["steps"] and job, "steps")
    assert job["step_title"] == "Session.run"
    assert any(task["kind"] == "Session.run" for task in job["tasks"])
    (tensorflow.folder / "stop").write_text("")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    (session,) = wait_for(tensorflow.finished, "the session's end")
    (worker,) = open_session(session).workers
    names = [name.id for name in worker.all(Name) if "loss" in name.text]
    runs = (worker.records.kind == Kind.SESSION_RUN) & np.isin(worker.records.name, names)
    assert int(runs.sum()) == int(out)


def test_the_job_outlives_a_killed_sidecar(tensorflow: Environment) -> None:
    """The sidecar is killed: the job goes on, and what lies in its run directory is stored by the next sweep."""
    process = tensorflow.start(script(tensorflow, "train.py", FIT))
    sidecar = wait_for(lambda: sidecar_pid(process.pid), "the sidecar")
    (run,) = tensorflow.runs()
    os.kill(sidecar, signal.SIGKILL)
    assert not run_directories.abandoned(run)
    sweep.sweep()
    assert run.exists()
    (tensorflow.folder / "stop").write_text("")
    out, err = process.communicate(timeout=60)
    assert (out, process.returncode) == ("ready\ndone\n", 0), err
    wait_for(lambda: run_directories.abandoned(run) or not run.exists(), "the job's end")
    sweep.sweep()
    assert not run.exists()
    (session,) = tensorflow.finished()
    stored = open_session(session)
    assert stored.manifest.state == "recovered"
    assert (stored.workers[0].records.kind == Kind.EXECUTION).sum() > 0


def test_where_nothing_can_be_kept(named: Environment, tmp_path: Path) -> None:
    """No folder takes a session and the home is read-only: the job runs to its end, and nothing is left."""
    (tmp_path / "file").write_text("")
    environment = plain(STEPSCOPE_SESSIONS=str(tmp_path / "file" / "sessions"), HOME="/proc")
    program = "import time, onnxruntime; time.sleep(6); print(3.0)"
    out, err, code = named.run(program, env=environment)
    assert (out, code) == ("3.0\n", 0), err
    fallback = Path("/var/tmp") / f"stepscope-sessions-{os.getuid()}"
    wait_for(lambda: not named.runs(), "the run directory to go")
    for session in fallback.glob("*.stepscope"):
        if json.loads((session / "manifest.json").read_text())["command"][-1] == program:
            break
    else:
        raise AssertionError("the session is in no fallback folder")
    subprocess.run(["rm", "-r", str(session)], check=True)


def test_short_jobs_and_crashes_leave_nothing(named: Environment) -> None:
    """A program that ends before its sidecar starts leaves nothing; one that is killed leaves what the sweep takes."""
    assert named.run("import onnxruntime; print(3)")[0] == "3\n"
    assert named.runs() == []
    out, _, code = named.run("import os, signal, onnxruntime; os.kill(os.getpid(), signal.SIGKILL)")
    assert (out, code) == ("", -signal.SIGKILL)
    sweep.sweep()
    assert named.runs() == []
    assert named.finished() == []


def test_run_goes_before_enable(tensorflow: Environment) -> None:
    """Under ``stepscope run`` an enabled environment's job is measured once, by run."""
    path = script(tensorflow, "job.py", "import tensorflow as tf\nfor i in range(9): int(tf.constant(i))\n")
    done = subprocess.run(
        [sys.executable, "-m", "stepscope", "run", "--session", "s.stepscope", "--", tensorflow.python, path.name],
        cwd=tensorflow.folder,
        env=plain(PYTHONPATH=str(Path(sweep.__file__).parents[2])),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    stored = open_session(tensorflow.folder / "s.stepscope")
    assert (stored.manifest.mode, len(stored.workers)) == ("run", 1)
    assert not tensorflow.sessions.exists()
