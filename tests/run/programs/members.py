"""Two workers of a MultiWorkerMirroredStrategy on this host, started by one script; worker 1 sleeps in each step.

Arguments: a file that ends them, if they shall not end after ``LEAST_STEPS``; then words before each worker's command,
in which {index} is its number. SLOW_S: how long worker 1 sleeps.
"""

import json
import os
import socket
import subprocess
import sys
import time

LEAST_STEPS = 120
BATCH = 32
SLOW_S = float(os.environ.get("SLOW_S", "0.03"))


def worker(index, told):
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        weights = tf.Variable(tf.ones([64, 64]))
    rows = tf.data.Dataset.from_tensors((tf.ones([64]), tf.ones([64]))).repeat().batch(BATCH)
    batches = iter(strategy.distribute_datasets_from_function(lambda context: rows))

    @tf.function
    def train_step(x, y, over):
        def replica(x, y, over):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(x @ weights - y))
            gradient = tape.gradient(loss, weights)
            context = tf.distribute.get_replica_context()
            ends = tf.reshape(over + 0.0 * loss, [1])  # in the same message: of two, each worker may wait for another
            sums = context.all_reduce(tf.distribute.ReduceOp.SUM, tf.concat([tf.reshape(gradient, [-1]), ends], 0))
            weights.assign_sub(0.01 * tf.reshape(sums[:-1], [64, 64]))
            return sums[-1]

        return strategy.experimental_local_results(strategy.run(replica, args=(x, y, over)))[0]

    over, steps = 0.0, 0
    while not over:  # all stop after the same step
        if index == 1:
            time.sleep(SLOW_S)
        steps += 1
        ends = steps >= LEAST_STEPS and (not told or os.path.exists(told))
        over = float(train_step(*next(batches), tf.constant(float(ends))))


def main(told, before):
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    places = ["127.0.0.1:%d" % listener.getsockname()[1] for listener in held]
    for listener in held:
        listener.close()
    started = []
    for index in range(2):
        config = {"cluster": {"worker": places}, "task": {"type": "worker", "index": index}}
        env = {**os.environ, "TF_CONFIG": json.dumps(config)}
        command = [*before, sys.executable, __file__, "worker", str(index), told]
        started.append(subprocess.Popen([word.format(index=index) for word in command], env=env))
    return max(process.wait() for process in started)


if sys.argv[1:2] == ["worker"]:
    worker(int(sys.argv[2]), sys.argv[3])
else:
    sys.exit(main("".join(sys.argv[1:2]), sys.argv[2:]))
