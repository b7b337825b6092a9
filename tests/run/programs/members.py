"""Two workers of a MultiWorkerMirroredStrategy on this host, started by one script; worker 1 sleeps in each step."""

import json
import os
import socket
import subprocess
import sys
import time

STEPS = 120


def worker(index):
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        weights = tf.Variable(tf.ones([64, 64]))

    @tf.function
    def train_step(x):
        def replica(x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(x @ weights))
            gradient = tape.gradient(loss, weights)
            gradient = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, gradient)
            weights.assign_sub(0.01 * gradient)
            return loss

        return strategy.run(replica, args=(x,))

    batch = tf.ones([32, 64])
    for _ in range(STEPS):
        if index == 1:
            time.sleep(0.03)
        train_step(batch)


def main():
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    places = ["127.0.0.1:%d" % listener.getsockname()[1] for listener in held]
    for listener in held:
        listener.close()
    started = []
    for index in range(2):
        config = {"cluster": {"worker": places}, "task": {"type": "worker", "index": index}}
        env = {**os.environ, "TF_CONFIG": json.dumps(config)}
        command = [*sys.argv[1:], sys.executable, __file__, "worker", str(index)]
        started.append(subprocess.Popen([word.format(index=index) for word in command], env=env))
    return max(process.wait() for process in started)


if sys.argv[1:2] == ["worker"]:
    worker(int(sys.argv[2]))
else:
    sys.exit(main())
