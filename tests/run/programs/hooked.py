"""A MonitoredTrainingSession with a hook that takes its time after every run."""

import tempfile
import time

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
v1.disable_eager_execution()
x = v1.placeholder(tf.float32, [None, 64], name="x")
w = v1.get_variable("w", [64, 64])
loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - 1.0), name="loss")
step = v1.train.get_or_create_global_step()
train = v1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step, name="train")


class Slow(v1.train.SessionRunHook):
    def before_run(self, context):
        return v1.train.SessionRunArgs(loss)

    def after_run(self, context, values):
        context.session.run(w)
        time.sleep(0.01)


batch = np.ones((8, 64), "float32")
with tempfile.TemporaryDirectory() as folder:
    with v1.train.MonitoredTrainingSession(checkpoint_dir=folder, hooks=[Slow()], save_checkpoint_steps=50) as session:
        for _ in range(200):
            session.run(train, {x: batch})
        for _ in range(20):
            session.run(loss, {x: batch})
