"""Profiles itself in the three ways that TensorFlow offers, and says what each left."""

import os
import re
import sys

import numpy as np
import tensorflow as tf

FOLDER = sys.argv[1]
x = np.ones((160, 8), "float32")
model = tf.keras.Sequential([tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
board = tf.keras.callbacks.TensorBoard(os.path.join(FOLDER, "board"), profile_batch=(4, 8), update_freq=5)
model.fit(x, x[:, :1], batch_size=8, epochs=1, verbose=0, callbacks=[board])


@tf.function
def train(batch):
    return tf.reduce_sum(tf.matmul(batch, tf.transpose(batch)))


train(x)
options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2, python_tracer_level=1)
tf.profiler.experimental.start(os.path.join(FOLDER, "started"), options=options)
for step in range(5):
    with tf.profiler.experimental.Trace("own", step_num=step, _r=1):
        train(x)
tf.profiler.experimental.stop()
with tf.profiler.experimental.Profile(os.path.join(FOLDER, "context")):
    train(x)


def planes(path):
    """(plane, names of its events that say what it is)."""
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    space = xplane_pb2.XSpace()
    with open(path, "rb") as file:
        space.ParseFromString(file.read())
    found = []
    for plane in space.planes:
        names = {plane.event_metadata[e.metadata_id].name.partition(":")[0] for li in plane.lines for e in li.events}
        marks = [m for m in ("own", "MatMul", "train", "PjitFunction(train)") if any(m in n for n in names)]
        ours = [n for n in names if "stepscope" in n]
        found.append((plane.name, sorted(marks), len(plane.lines) > 0, ours))
    return sorted(found)


for folder, _, names in sorted(os.walk(FOLDER)):
    for name in sorted(names):
        path = os.path.join(folder, name)
        told = re.sub(r"\d{4}_\d\d_\d\d_\d\d_\d\d_\d\d(\.\d+)?", "TIME", os.path.relpath(path, FOLDER))
        told = re.sub(r"\.out\.tfevents\..*|events\.out\.\S*", "EVENTS", told)
        print(told, os.path.getsize(path) > 0, *(planes(path) if name.endswith(".xplane.pb") else ()))
