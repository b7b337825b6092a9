"""A coordinator, two workers and a parameter server on this host, started by one script."""

import json
import os
import socket
import subprocess
import sys


def task(role):
    import tensorflow as tf

    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if role != "chief":
        server = tf.distribute.Server(
            resolver.cluster_spec(), job_name=role, task_index=resolver.task_id, protocol="grpc", start=True
        )
        server.join()
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        weights = tf.Variable(tf.random.normal([64, 64]))

    def dataset():
        return tf.data.Dataset.from_tensors((tf.ones([64]), tf.ones([64]))).repeat().batch(16)

    batches = iter(coordinator.create_per_worker_dataset(dataset))

    @tf.function
    def step(iterator):
        def replica(x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(x @ weights - y))
            weights.assign_sub(0.001 * tape.gradient(loss, weights))
            return loss

        return strategy.run(replica, args=next(iterator))

    for _ in range(10):
        for _ in range(20):
            coordinator.schedule(step, args=(batches,))
        coordinator.join()


def main():
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(4)]
    places = ["127.0.0.1:%d" % listener.getsockname()[1] for listener in held]
    for listener in held:
        listener.close()
    cluster = {"chief": places[:1], "worker": places[1:3], "ps": places[3:]}

    def start(role, index):
        config = {"cluster": cluster, "task": {"type": role, "index": index}}
        return subprocess.Popen([sys.executable, __file__, role], env={**os.environ, "TF_CONFIG": json.dumps(config)})

    others = [start("worker", 0), start("worker", 1), start("ps", 0)]
    code = start("chief", 0).wait()
    for process in others:
        process.terminate()
        process.wait()
    return code


if len(sys.argv) > 1:
    task(sys.argv[1])
else:
    sys.exit(main())
