"""Twelve ways to write a training step, each run until its graphs were read, then traced for some steps.

Usage: graph_models.py MODEL LOGDIR [STEPS]
"""

import glob
import os
import sys
import time

import numpy as np
import tensorflow as tf

layers = tf.keras.layers
RNG = np.random.default_rng(0)
BATCH = 32


def images(size=32):
    return RNG.random((BATCH, size, size, 3), np.float32), RNG.integers(0, 10, BATCH)


def vectors(width=64):
    return RNG.random((BATCH, width), np.float32), RNG.random((BATCH, 1), np.float32)


def words(length=24, vocabulary=2_000):
    return RNG.integers(0, vocabulary, (BATCH, length)), RNG.integers(0, 2, (BATCH, 1)).astype("float32")


def fitted(model, x, y, loss):
    """A step by Keras: ``train_on_batch``'s compiled function over a dataset that repeats."""
    model.compile("adam", loss)
    data = tf.data.Dataset.from_tensors((x, y)).repeat()
    return lambda steps: model.fit(data, steps_per_epoch=steps, epochs=1, verbose=0)


def repeated(step):
    def run(steps):
        for _ in range(steps):
            step()

    return run


def functional_cnn():
    """Keras functional: convolutions, batch normalisation, residual connections."""
    inputs = tf.keras.Input((32, 32, 3))
    x = layers.Conv2D(32, 3, padding="same")(inputs)
    for _ in range(3):
        y = layers.BatchNormalization()(x)
        y = layers.Conv2D(32, 3, padding="same", activation="relu")(y)
        x = layers.Add()([x, y])
    x = layers.GlobalAveragePooling2D()(x)
    model = tf.keras.Model(inputs, layers.Dense(10)(x))
    return fitted(model, *images(), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))


class Block(layers.Layer):
    def __init__(self, width, **kwargs):
        super().__init__(**kwargs)
        self.dense = layers.Dense(width, activation="relu")
        self.norm = layers.LayerNormalization()

    def call(self, x):
        y = self.norm(self.dense(x))
        return x + tf.tanh(y) * 0.5


class Subclassed(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.first = layers.Dense(256)
        self.blocks = [Block(256) for _ in range(4)]
        self.last = layers.Dense(1)

    def call(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return self.last(x)


def subclassed():
    """Keras subclassed model with layers of the user's own."""
    return fitted(Subclassed(), *vectors(), "mse")


class OwnStep(Subclassed):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            prediction = self(x, training=True)
            loss = tf.reduce_mean(tf.square(y - prediction))
        weights = self.trainable_weights
        gradients, _ = tf.clip_by_global_norm(tape.gradient(loss, weights), 1.0)
        self.optimizer.apply_gradients(zip(gradients, weights))
        return {"loss": loss}


def own_train_step():
    """A train_step of the user's own."""
    return fitted(OwnStep(), *vectors(), "mse")


def lstm():
    """Keras sequential: embedding and a recurrent layer, whose steps are a loop of the graph."""
    model = tf.keras.Sequential(
        [layers.Embedding(2_000, 64), layers.LSTM(64, recurrent_dropout=0.1), layers.Dense(1, activation="sigmoid")]
    )
    return fitted(model, *words(), "binary_crossentropy")


def transformer():
    """Keras functional: two blocks of attention."""
    inputs = tf.keras.Input((24,), dtype="int64")
    x = layers.Embedding(2_000, 64)(inputs)
    for _ in range(2):
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(4, 16)(x, x))
        y = layers.Dense(128, activation="gelu")(x)
        x = layers.LayerNormalization()(x + layers.Dense(64)(y))
    x = layers.GlobalAveragePooling1D()(x)
    model = tf.keras.Model(inputs, layers.Dense(1, activation="sigmoid")(x))
    return fitted(model, *words(), "binary_crossentropy")


class Perceptron(tf.Module):
    def __init__(self, *widths):
        super().__init__()
        self.weights = [tf.Variable(tf.random.normal(pair, stddev=0.1)) for pair in zip(widths[:-1], widths[1:])]

    @tf.function
    def __call__(self, x):
        for weight in self.weights:
            x = tf.nn.relu(tf.matmul(x, weight))
        return x


def custom_loop():
    """A training step as a tf.function, the model as another."""
    model = Perceptron(64, 512, 512, 1)
    x, y = (tf.constant(v) for v in vectors())

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x) - y))
        for variable, gradient in zip(model.trainable_variables, tape.gradient(loss, model.trainable_variables)):
            variable.assign_sub(0.01 * gradient)
        return loss

    return repeated(lambda: step(x, y))


def eager_tape():
    """The model as a tf.function, differentiated in Python."""
    model = Perceptron(64, 512, 512, 1)
    x, y = (tf.constant(v) for v in vectors())

    @tf.function
    def loss_of(x, y):
        return tf.reduce_mean(tf.square(model(x) - y))

    def step():
        with tf.GradientTape() as tape:
            loss = loss_of(x, y)
        for variable, gradient in zip(model.trainable_variables, tape.gradient(loss, model.trainable_variables)):
            variable.assign_sub(0.01 * gradient)

    return repeated(step)


def autograph():
    """Loops and branches of AutoGraph over tensors."""
    kernel = tf.Variable(tf.random.normal((128, 128), stddev=0.05))
    x = tf.constant(RNG.random((24, BATCH, 128), np.float32))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            state = tf.zeros((BATCH, 128))
            for t in tf.range(24):
                candidate = tf.tanh(tf.matmul(state, kernel) + x[t])
                if tf.reduce_mean(candidate) > 0.5:
                    state = candidate * 0.5
                else:
                    state = state + candidate
            loss = tf.reduce_mean(tf.square(state))
        kernel.assign_sub(0.001 * tape.gradient(loss, kernel))
        return loss

    return repeated(lambda: step(x))


def unrolled():
    """A loop of Python in a loss."""

    def loss(truth, prediction):
        total = tf.zeros(())
        for shift in range(40):
            total += tf.reduce_mean(tf.abs(truth - prediction * (1.0 + shift / 40.0)))
        return total

    model = tf.keras.Sequential([layers.Dense(256, activation="relu"), layers.Dense(1)])
    return fitted(model, *vectors(), loss)


def mapped():
    """map_fn and a function of numpy in the step."""
    kernel = tf.Variable(tf.random.normal((64, 64), stddev=0.05))
    x = tf.constant(RNG.random((BATCH, 16, 64), np.float32))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            y = tf.map_fn(lambda row: tf.nn.relu(tf.matmul(row, kernel)), x)
            loss = tf.reduce_mean(tf.square(y))
        kernel.assign_sub(0.001 * tape.gradient(loss, kernel))
        return tf.numpy_function(lambda v: np.float32(v * 2.0), [loss], tf.float32)

    return repeated(lambda: step(x))


def data_in_step():
    """A function that goes through a dataset itself."""
    model = Perceptron(64, 512, 512, 1)
    rows = tuple(np.tile(value, (8, 1)) for value in vectors())
    data = tf.data.Dataset.from_tensor_slices(rows).map(lambda x, y: (x * 2.0 - 1.0, y)).batch(BATCH)

    @tf.function
    def epoch():
        total = 0.0
        for x, y in data:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(model(x) - y))
            for variable, gradient in zip(model.trainable_variables, tape.gradient(loss, model.trainable_variables)):
                variable.assign_sub(0.01 * gradient)
            total += loss
        return total

    return repeated(epoch)


def session():
    """compat.v1: a graph, a loop in it, an optimizer, a session."""
    v1 = tf.compat.v1
    graph = tf.Graph()
    x_value, y_value = vectors()
    with graph.as_default():
        x = v1.placeholder(tf.float32, (None, 64), name="x")
        y = v1.placeholder(tf.float32, (None, 1), name="y")
        with v1.variable_scope("hidden"):
            hidden = tf.nn.relu(tf.matmul(x, v1.get_variable("w", (64, 512))) + v1.get_variable("b", (512,)))
        recurrent = v1.get_variable("r", (512, 512))
        _, hidden = v1.while_loop(
            lambda i, _: i < 4, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, recurrent))), (0, hidden)
        )
        output = tf.matmul(hidden, v1.get_variable("o", (512, 1)), name="output")
        loss = tf.reduce_mean(tf.square(output - y), name="loss")
        train = v1.train.AdamOptimizer(0.001).minimize(loss, name="train")
        initial = v1.global_variables_initializer()
    active = v1.Session(graph=graph)
    active.run(initial)
    return repeated(lambda: active.run([train, loss], {x: x_value, y: y_value}))


def inception():
    """InceptionV3 as Keras brings it, random weights."""
    model = tf.keras.applications.InceptionV3(weights=None, input_shape=(96, 96, 3), classes=10)
    x, y = images(96)
    return fitted(model, x[:4], y[:4], tf.keras.losses.SparseCategoricalCrossentropy())


MODELS = {f.__name__: f for f in (
    functional_cnn, subclassed, own_train_step, lstm, transformer, custom_loop, eager_tape, autograph, unrolled, mapped,
    data_in_step, session, inception,
)}  # fmt: skip


def all_read():
    """Whether every graph was read, by the agent's own word; True where there is no agent."""
    run = os.environ.get("STEPSCOPE_RUN")
    logs = glob.glob(os.path.join(run, "procs", "*", "log-*.jsonl")) if run else []
    if not logs:
        return True
    last = ""
    for log in sorted(logs):
        with open(log, encoding="utf-8") as lines:
            last = next((line for line in reversed(lines.readlines()) if line.startswith('{"t":"graphs"')), last)
    return '"left":0' in last


def main():
    run = MODELS[sys.argv[1]]()
    steps = int(sys.argv[3]) if len(sys.argv) > 3 else 10
    run(steps)
    began = time.monotonic()
    while time.monotonic() - began < 3 or (not all_read() and time.monotonic() - began < 120):
        run(steps)
    run(steps)
    tf.profiler.experimental.start(sys.argv[2])
    run(steps)
    tf.profiler.experimental.stop()
    print("steps", steps)


main()
