"""Graphs of all kinds, kept alive until they were read. Lines end in a comment that names them."""

import glob
import os
import sys
import time

import numpy as np
import tensorflow as tf

FOLDER = sys.argv[1]
tf.keras.utils.set_random_seed(3)
layers = tf.keras.layers


class Block(layers.Layer):
    def __init__(self, width):
        super().__init__()
        self.inside = layers.Dense(width, name="inside")  # built-inside

    def call(self, x):
        y = self.inside(x)  # calls-inside
        return x + tf.tanh(y)  # tanh


def summed(truth, prediction):
    total = 0.0
    for power in range(5):
        total += tf.reduce_mean(tf.abs(truth - prediction) ** (power + 1.0))  # unrolled
    return total


inputs = tf.keras.Input((8,))
outputs = layers.Dense(1, name="last")(Block(8)(inputs))  # built
model = tf.keras.Model(inputs, outputs)
model.compile("adam", summed)  # built-optimizer
x, y = np.ones((16, 8), "float32"), np.zeros((16, 1), "float32")
model.fit(x, y, batch_size=4, verbose=0, shuffle=False)

area = tf.keras.metrics.Mean(name="area")  # built-metric
kernel = tf.Variable(tf.ones((8, 8)) * 0.1)


@tf.function
def called(v):
    return tf.matmul(v, kernel)  # matmul


@tf.function
def looped(v):
    for _ in tf.range(3):
        if tf.reduce_sum(v) > 0.0:
            v = called(v) * 0.5  # in-branch
        else:
            v = v - 1.0
    return tf.reduce_sum(v)  # after-loop


held = tf.ones((16, 16))


@tf.function
def shifted(v):
    return tf.matmul(v, held)  # captured


shifted(tf.ones((2, 16)))
edges, nothing = tf.eye(512), tf.zeros((512, 512))


@tf.function
def spread(v):
    return tf.matmul(edges, tf.matmul(nothing, v))  # spread


spread(tf.ones((512, 2)))


def differentiated():
    with tf.GradientTape() as tape:
        loss = looped(tf.constant(x))
    return tape.gradient(loss, kernel)  # gradient


grad = differentiated()


def logged(folder):
    logs = glob.glob(os.path.join(folder, "procs", "*", "log-*.jsonl"))
    return [line for log in logs for line in open(log, encoding="utf-8") if line.startswith('{"t":"graph')]


def wait_for(done):
    deadline = time.monotonic() + 100
    while "STEPSCOPE_RUN" in os.environ and time.monotonic() < deadline:
        if done(logged(os.environ["STEPSCOPE_RUN"])):
            break
        model.train_on_batch(x, y)


@tf.function
def later(v):
    return tf.reduce_sum(v * kernel)  # later


print("loss", round(float(model.evaluate(x, y, verbose=0)), 4))
later(tf.constant(x[:8]))
read = later.get_concrete_function(tf.constant(x[:8])).graph.name
wait_for(lambda lines: any('"%s"' % read in line for line in lines))
with tf.GradientTape() as tape:  # of a function that has been read
    sum_later = later(tf.constant(x[:8]))
grad_later = tape.gradient(sum_later, kernel)

for _ in range(20):
    fresh = tf.function(lambda v: v + 1.0)
    fresh(tf.constant(1.0))
del fresh

graph = tf.Graph()
with graph.as_default():
    fed = tf.compat.v1.placeholder(tf.float32, (None, 8), name="fed")
    product = tf.matmul(fed, tf.constant(np.eye(8, dtype="float32")), name="product")  # product
session = tf.compat.v1.Session(graph=graph)
session.run(product, {fed: x})


nodes = [op.name for op in looped.get_concrete_function(tf.constant(x)).graph.get_operations()]


def all_read(lines):
    return any('"role":"session"' in line for line in lines) and '"left":0}' in lines[-1]


wait_for(all_read)

print("gradient", round(float(tf.reduce_sum(grad + grad_later)), 4), len(nodes), nodes[-1])
