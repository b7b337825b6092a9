"""compat.v1: a session with hooks that writes checkpoints and summaries."""

import os

import fault
import numpy as np

fault.begin()
import tensorflow as tf

v1 = tf.compat.v1
v1.disable_eager_execution()
v1.set_random_seed(3)
x = v1.placeholder(tf.float32, [None, 4], name="x")
w = v1.get_variable("w", [4, 1], initializer=v1.random_normal_initializer(seed=2))
loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - 1.0), name="loss")
step = v1.train.get_or_create_global_step()
train = v1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
drawn = tf.random.uniform([2], seed=4)
batch = np.ones((8, 4), "float32")
one = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)


class Watch(v1.train.SessionRunHook):
    seen = 0

    def after_run(self, context, values):
        Watch.seen += 1


with v1.train.MonitoredTrainingSession(
    checkpoint_dir=os.environ["FAULT_TMP"], hooks=[Watch()], save_checkpoint_steps=20, config=one
) as monitored:
    for number in range(60):
        _, value = monitored.run([train, loss], feed_dict={x: batch})
        if number == 30:
            fault.moment()
with v1.Session(config=one) as session:
    session.run(v1.global_variables_initializer())
    for _ in range(40):
        session.run(train, feed_dict={x: batch})
    fault.save("w.bin", session.run(w).tobytes())
    print(float(value).hex(), Watch.seen, session.run(drawn).tolist())
fault.end()
