"""Two workers of a MultiWorkerMirroredStrategy on this host, started by one script; worker 1 sleeps in each step."""

import json
import os
import socket
import subprocess
import sys
import time

STEPS = 120
BATCH = 32


def worker(index):
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        weights = tf.Variable(tf.ones([64, 64]))
    rows = tf.data.Dataset.from_tensors((tf.ones([64]), tf.ones([64]))).repeat().batch(BATCH)
    batches = iter(strategy.distribute_datasets_from_function(lambda context: rows))

    @tf.function
    def train_step(x, y):
        def replica(x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(x @ weights - y))
            gradient = tape.gradient(loss, weights)
            gradient = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, gradient)
            weights.assign_sub(0.01 * gradient)
            return loss

        return strategy.run(replica, args=(x, y))

    for _ in range(STEPS):
        if index == 1:
            time.sleep(0.03)
        train_step(*next(batches))


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
