"""TensorFlow op by op: tapes, a tf.function that is traced again, reads, the user's own profiler, an in-process server."""

import os

import fault
import numpy as np

fault.begin()
import tensorflow as tf

tf.keras.utils.set_random_seed(5)
tf.config.experimental.enable_op_determinism()
tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)
w = tf.Variable(tf.random.normal([8, 1]))
x = tf.constant(np.random.rand(16, 8).astype("float32"))


@tf.function
def double(value):
    return value * 2.0


def step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - 1.0))
    w.assign_sub(0.1 * tape.gradient(loss, w))
    return float(loss)


for _ in range(30):
    loss = step()
for size in (2, 3, 4):
    double(tf.ones([size]))
fault.moment()
log = os.path.join(os.environ["FAULT_TMP"], "profile")
if fault.INSIDE == "tf-profiler":
    tf.profiler.experimental.start(log)
for _ in range(30):
    loss = step()
if fault.INSIDE == "tf-profiler":
    tf.profiler.experimental.stop()
    print("profiled", os.path.isdir(log))
solved = tf.ones((8, 1))
for _ in range(40):
    solved = (tf.matmul(tf.eye(8), solved) + solved + solved) / 3.0
print(loss.hex(), float(tf.reduce_sum(solved)).hex())
server = tf.distribute.Server.create_local_server()
print("server", server.target.startswith("grpc://"))
fault.save("w.bin", w.numpy().tobytes())
fault.end(tf.random.uniform([4]).numpy().tobytes())
