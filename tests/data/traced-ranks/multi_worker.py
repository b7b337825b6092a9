"""A worker of a MultiWorkerMirroredStrategy on this machine, recorded by TensorFlow's profiler; the input of worker 1
sleeps.

    unshare -u sh -c 'hostname node0; exec python multi_worker.py 0 FOLDER' &
    unshare -u sh -c 'hostname node1; exec python multi_worker.py 1 FOLDER'
"""

import json
import os
import sys
import time

worker, folder = int(sys.argv[1]), sys.argv[2]
os.environ["TF_CONFIG"] = json.dumps({
    "cluster": {"worker": ["127.0.0.1:23451", "127.0.0.1:23452"]},
    "task": {"type": "worker", "index": worker},
})

import numpy as np
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    w = tf.Variable(tf.random.stateless_normal([64, 256], (1, 2)))
    v = tf.Variable(tf.random.stateless_normal([256, 1], (3, 4)))


def row(i):
    if worker == 1:
        time.sleep(0.03)
    return np.float32(i)


def batch(i):
    return tf.ensure_shape(tf.numpy_function(row, [i], tf.float32), []) + tf.ones([16, 64])


@tf.function
def train(x):
    def replica(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.nn.relu(x @ w) @ v) ** 2)
        gradients = tf.distribute.get_replica_context().all_reduce("sum", tape.gradient(loss, [w, v]))
        w.assign_sub(1e-6 * gradients[0])
        v.assign_sub(1e-6 * gradients[1])

    strategy.run(replica, args=(x,))


batches = iter(tf.data.Dataset.range(60).map(batch))
for _ in range(4):
    train(next(batches))
tf.profiler.experimental.start(folder)
for i in range(12):
    with tf.profiler.experimental.Trace("train", step_num=i, _r=1):
        train(next(batches))
tf.profiler.experimental.stop()
