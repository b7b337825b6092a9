"""Jobs of several processes in an enabled environment."""

from __future__ import annotations

import functools
import json
import socket
import subprocess

import pytest

from stepscope.app.bundle import open_session
from stepscope.model.events import Name
from stepscope.wire.kinds import Kind

from .conftest import PATIENCE_S, Environment, plain, wait_for
from .test_jobs import job_of, script

pytestmark = [pytest.mark.tf, pytest.mark.timeout(600)]

CLUSTER = """
import json, os, sys, time
import tensorflow.compat.v1 as tf
tf.disable_eager_execution()
role, index, cluster = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
server = tf.train.Server(cluster, job_name=role, task_index=index)
if role == "ps":
    server.join()
device = tf.train.replica_device_setter(cluster=cluster, worker_device="/job:worker/task:%d" % index)
with tf.device(device):
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    w = tf.get_variable("w", [4, 1])
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w)), name="loss")
    step = tf.train.get_or_create_global_step()
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss, global_step=step)
runs = 0
# Without filters a session needs every process of the cluster until its end: the worker that leaves last would wait.
filters = tf.ConfigProto(device_filters=["/job:ps", "/job:worker/task:%d" % index])
chief = index == 0
with tf.train.MonitoredTrainingSession(master=server.target, is_chief=chief, config=filters) as session:
    while not os.path.exists("stop"):
        session.run([train, loss], {x: [[1, 2, 3, 4]]})
        runs += 1
        time.sleep(0.002)
print(runs, flush=True)
os._exit(0)
"""


def free_ports(count: int) -> list[int]:
    """Ports that nobody uses at the moment."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def test_parameter_server_and_workers(tensorflow: Environment) -> None:
    """Each process of a cluster is a job of ``ps``; runs of the workers are counted by their fetches, exactly."""
    path = script(tensorflow, "cluster.py", CLUSTER)
    addresses = [f"127.0.0.1:{port}" for port in free_ports(3)]
    cluster = json.dumps({"ps": addresses[:1], "worker": addresses[1:]})
    started = {
        (role, index): subprocess.Popen(
            [tensorflow.python, str(path), role, str(index), cluster],
            cwd=tensorflow.folder,
            env=plain(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for role, index in (("ps", 0), ("worker", 0), ("worker", 1))
    }
    try:
        for (role, _), process in started.items():
            wait_for(functools.partial(_seen, process.pid, role), f"{role} in ps")
        (tensorflow.folder / "stop").write_text("")
        counts = {}
        for index in (0, 1):
            out, err = started["worker", index].communicate(timeout=PATIENCE_S)
            assert started["worker", index].returncode == 0, err[-2000:]
            counts[index] = int(out)
    finally:
        for process in started.values():
            process.kill()
            process.communicate()
    sessions = wait_for(lambda: len(s := tensorflow.finished()) == len(started) and s, "three sessions")
    found = {}
    for session in sessions:
        (worker,) = open_session(session).workers
        names = [name.id for name in worker.all(Name) if "loss" in name.text]
        runs = (worker.records.kind == Kind.SESSION_RUN) & (sum(worker.records.name == n for n in names) > 0)
        found[tuple(worker.info.command[-3:-1])] = int(runs.sum())
    assert found[("worker", "0")] == counts[0]
    assert found[("worker", "1")] == counts[1]
    assert found[("ps", "0")] == 0


def _seen(pid: int, role: str) -> bool:
    job = job_of(pid)
    if job is None or job["state"] != "running":
        return False
    return role == "ps" or any(task["kind"] == "Session.run" for task in job["tasks"])
