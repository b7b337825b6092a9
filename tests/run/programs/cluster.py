"""A parameter server and a worker with a MonitoredTrainingSession, both on this host, started by one script."""

import json
import socket
import subprocess
import sys


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def member(job, cluster):
    import numpy as np
    import tensorflow as tf

    v1 = tf.compat.v1
    v1.disable_eager_execution()
    spec = v1.train.ClusterSpec(cluster)
    server = v1.train.Server(spec, job_name=job, task_index=0)
    if job == "ps":
        server.join()
    with v1.device(v1.train.replica_device_setter(cluster=spec, worker_device="/job:worker/task:0")):
        x = v1.placeholder(tf.float32, [None, 64])
        w = v1.get_variable("w", [64, 64])
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - 1.0), name="loss")
        step = v1.train.get_or_create_global_step()
        train = v1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step, name="train")
    batch = np.ones((8, 64), "float32")
    with v1.train.MonitoredTrainingSession(master=server.target, is_chief=True) as session:
        for _ in range(300):
            session.run(train, {x: batch})


if len(sys.argv) > 1:
    member(sys.argv[1], json.loads(sys.argv[2]))
else:
    cluster = json.dumps({job: ["127.0.0.1:%d" % free_port()] for job in ("ps", "worker")})
    server = subprocess.Popen([sys.executable, __file__, "ps", cluster])
    code = subprocess.call([sys.executable, __file__, "worker", cluster])
    server.terminate()
    server.wait()
    sys.exit(code)
