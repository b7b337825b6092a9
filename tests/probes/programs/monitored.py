"""compat.v1: hooks of MonitoredTrainingSession, callables, InteractiveSession."""

import os
import sys
import time

import numpy as np
import tensorflow as tf

FOLDER = sys.argv[1]
v1 = tf.compat.v1
v1.disable_eager_execution()

x = v1.placeholder(tf.float32, [None, 4], name="x")
w = v1.get_variable("w", [4, 1], initializer=v1.zeros_initializer())
loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - 1.0), name="loss")
step = v1.train.get_or_create_global_step()
train = v1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step, name="train")
v1.summary.scalar("loss", loss)
batch = np.ones((8, 4), "float32")


class Watch(v1.train.SessionRunHook):
    def begin(self):
        self.seen = 0

    def before_run(self, context):  # watch before
        return v1.train.SessionRunArgs(loss)

    def after_run(self, context, values):  # watch after
        self.seen += 1
        time.sleep(0.0005)


class Quiet(Watch):
    pass


class Often(v1.train.LoggingTensorHook):
    def after_run(self, context, values):
        super().after_run(context, values)
        time.sleep(0.0005)


watch, quiet = Watch(), Quiet()
often = Often([loss], every_n_iter=4)
with v1.train.MonitoredTrainingSession(
    checkpoint_dir=os.path.join(FOLDER, "train"),
    hooks=[watch, quiet, often],
    save_checkpoint_steps=5,
    save_summaries_steps=5,
) as monitored:
    for number in range(12):
        monitored.run([train, loss], feed_dict={x: batch})  # hooked
        if number % 3 == 0:
            monitored.run(loss, feed_dict={x: batch})  # looked
    for _ in range(3):
        monitored.run([train, loss], feed_dict={x: batch})  # again
print("seen", watch.seen, quiet.seen)

with v1.Session() as session:
    session.run(v1.global_variables_initializer())
    evaluate = session.make_callable(loss, [x])
    for _ in range(7):
        evaluate(batch)  # fed
    read = session.make_callable(w)
    for _ in range(5):
        read()  # callable
    read = session.make_callable(w, accept_options=True)
    for _ in range(3):
        read(options=v1.RunOptions())  # options

interactive = v1.InteractiveSession()
v1.global_variables_initializer().run()
for _ in range(6):
    loss.eval({x: batch})  # interactive
interactive.close()
