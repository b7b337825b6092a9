"""A training whose input a tf.data service makes: ``data_service.py`` starts a dispatcher, two workers and the
training.

What the service's workers map takes about 20 ms for a batch; the training's step one or two.
"""

import os
import socket
import subprocess
import sys

import tensorflow as tf

BATCH = 32


def slow(x):
    table = tf.fill([192, 192], x[0] / 192)
    for _ in range(4):
        table = table @ table
    return x + 0.0 * table[0, 0]


def serve(role, dispatcher):
    service = tf.data.experimental.service
    if role == "dispatcher":
        server = service.DispatchServer(service.DispatcherConfig(port=int(dispatcher.rpartition(":")[2])))
    else:
        server = service.WorkerServer(service.WorkerConfig(dispatcher_address=dispatcher))
    server.join()


def train(dispatcher):
    weights = tf.Variable(tf.ones([64, 64]))
    rows = tf.data.Dataset.from_tensors(tf.ones([64])).repeat()
    rows = rows.map(slow).batch(BATCH)
    rows = rows.apply(tf.data.experimental.service.distribute("parallel_epochs", "grpc://" + dispatcher))

    @tf.function
    def train_step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(x @ weights - 1.0))
        weights.assign_sub(0.01 * tape.gradient(loss, weights))
        return loss

    for x in rows.take(300):
        train_step(x)


def main():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        dispatcher = "127.0.0.1:%d" % listener.getsockname()[1]
    others = []
    for role in ("dispatcher", "worker", "worker"):
        others.append(subprocess.Popen([sys.executable, __file__, role, dispatcher]))
    code = subprocess.call([sys.executable, __file__, "train", dispatcher], env=dict(os.environ))
    for process in others:
        process.terminate()
        process.wait()
    return code


if len(sys.argv) == 1:
    sys.exit(main())
elif sys.argv[1] == "train":
    train(sys.argv[2])
else:
    serve(*sys.argv[1:])
