"""A parameter server and a worker of six layers, over a link that paces what it carries; started by one script.

``slow_link.py FILE [ordered]``: trains until the file exists. ``ordered``: each layer's weights are read when those of
the layer before have come.
"""

import json
import os
import socket
import subprocess
import sys
import threading
import time

SIDE, LAYERS, BATCH = 400, 6, 500
BYTES_PER_S = 20e6
PIECE = 1 << 14


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def pass_on(source, target):
    """Hand over what comes, at a rate."""
    due = time.monotonic()
    try:
        while data := source.recv(PIECE):
            due = max(due, time.monotonic() - 0.002) + len(data) / BYTES_PER_S
            time.sleep(max(0.0, due - time.monotonic()))
            target.sendall(data)
    except OSError:
        pass
    for end in (source, target):
        end.close()


def link(port, server):
    """Accept connections to ``port`` and pass them on to the server's own."""
    listener = socket.create_server(("127.0.0.1", port))
    while True:
        near, _ = listener.accept()
        far = None
        while far is None:
            try:
                far = socket.create_connection(("127.0.0.1", server))
            except OSError:
                time.sleep(0.1)
        for ends in ((near, far), (far, near)):
            threading.Thread(target=pass_on, args=ends, daemon=True).start()


def member(job, cluster, until, ordered):
    import numpy as np
    import tensorflow as tf

    v1 = tf.compat.v1
    v1.disable_eager_execution()
    spec = v1.train.ClusterSpec(cluster)
    server = v1.train.Server(spec, job_name=job, task_index=0)
    if job == "ps":
        server.join()
    with v1.device(v1.train.replica_device_setter(cluster=spec, worker_device="/job:worker/task:0")):
        x = v1.placeholder(tf.float32, [None, SIDE])
        y, came = x, []
        for layer in range(LAYERS):
            variable = v1.get_variable("weights_%d" % layer, [SIDE, SIDE])
            with tf.control_dependencies(came if ordered else []):
                weights = variable.read_value()
            with tf.device("/job:worker/task:0"):
                weights = tf.identity(weights)
            came = [weights]
            y = tf.tanh(tf.matmul(y, weights, name="layer_%d" % layer))
        loss = tf.reduce_mean(tf.square(y - 1.0), name="loss")
        step = v1.train.get_or_create_global_step()
        train = v1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step, name="train")
    batch = np.ones((BATCH, SIDE), "float32")
    with v1.train.MonitoredTrainingSession(master=server.target, is_chief=True) as session:
        while not os.path.exists(until):
            session.run(train, {x: batch})


def main(until, *ordered):
    server, near, worker = free_port(), free_port(), "127.0.0.1:%d" % free_port()
    threading.Thread(target=link, args=(near, server), daemon=True).start()
    tasks = []
    for job, port in (("ps", server), ("worker", near)):
        cluster = json.dumps({"ps": ["127.0.0.1:%d" % port], "worker": [worker]})
        tasks.append(subprocess.Popen([sys.executable, __file__, until, *ordered, job, cluster]))
    code = tasks[1].wait()
    tasks[0].terminate()
    tasks[0].wait()
    sys.exit(code)


if __name__ == "__main__":
    if len(sys.argv) > 3:
        member(sys.argv[-2], json.loads(sys.argv[-1]), sys.argv[1], "ordered" in sys.argv)
    else:
        main(*sys.argv[1:])
