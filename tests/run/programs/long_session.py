"""A MonitoredTrainingSession with two tasks and a hook, that goes on until the file that it is given exists."""

import os
import sys

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()


class Watches(tf.train.SessionRunHook):
    """Fetches the number of steps, too, and looks at what its run was asked for."""

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(steps)

    def after_run(self, run_context, run_values):
        assert run_values.options.trace_level == tf.RunOptions.NO_TRACE, "the hook sees options of ours"
        assert not run_values.run_metadata.HasField("step_stats"), "the hook sees a trace of ours"


with tf.Graph().as_default():
    x = tf.placeholder(tf.float32, [None, 32], name="x")
    weights = tf.get_variable("weights", [32, 1])
    loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) - 1.0), name="loss")
    steps = tf.train.get_or_create_global_step()
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss, steps, name="train")
    accuracy = tf.reduce_max(weights, name="accuracy")
    batch = np.ones((16, 32), np.float32)
    runs = 0
    with tf.train.MonitoredTrainingSession(hooks=[Watches()]) as session:
        while not os.path.exists(sys.argv[1]):
            session.run(train, {x: batch})
            if runs % 10 == 0:
                session.run(accuracy)
            runs += 1
            if runs == 50:
                print("ready", flush=True)
print("done", flush=True)
