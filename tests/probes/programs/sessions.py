"""compat.v1: Session, MonitoredSession, Saver, FileWriter, one-shot iterator."""

import os
import sys

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
summary = v1.summary.scalar("loss", loss)
data = v1.data.Dataset.from_tensor_slices(np.ones((32, 4), "float32")).batch(8).repeat()
element = v1.data.make_one_shot_iterator(data).get_next()
saver = v1.train.Saver()

with v1.Session() as session:
    session.run(v1.global_variables_initializer())
    writer = v1.summary.FileWriter(FOLDER, session.graph)
    for number in range(20):
        batch = session.run(element)  # next
        _, value = session.run([train, loss], feed_dict={x: batch})  # train
        if number % 5 == 0:
            writer.add_summary(session.run(summary, {x: batch}), number)
    saver.save(session, os.path.join(FOLDER, "model"))  # save
    writer.flush()
    for number in range(300):
        session.run(loss * float(number), {x: batch})  # many
    for number in range(6):
        session.run(["".join(("loss", ":0"))], {"".join(("x", ":0")): batch})  # by-name
    options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
    for traced in (True, True, False, True):
        session.run(loss, {x: batch}, options=options if traced else None, run_metadata=v1.RunMetadata())  # traced
    print("loss", round(float(value), 5))

with v1.train.MonitoredSession() as monitored:
    for _ in range(5):
        monitored.run(train, feed_dict={x: batch})  # monitored
