"""Character language model trained with a learning-rate plan that the research group ships as a curve."""
import json
import os
import tempfile
import time

import keras
import numpy as np
import tensorflow as tf

TEXT = 200_000
ALPHABET = 48
CONTEXT = 24
BATCH = 16
WARMUP = 20
STEPS = 2400
PLANNED_STEPS = 3_000_000


def write_plan(path):
    """One learning rate for every step of the whole run: warm-up, restarts, cool-down."""
    step = np.arange(0, PLANNED_STEPS, dtype="float64")
    warm = np.minimum(1.0, (step + 50) / 2000)
    cycle = 0.55 + 0.45 * np.cos(2 * np.pi * (step % 250_000) / 500_000)
    cool = np.clip((PLANNED_STEPS - step) / 100_000, 0.02, 1.0)
    np.savez(path, step=step.astype("float32"), rate=(2e-3 * warm * cycle * cool).astype("float32"))


class PlannedRate(keras.optimizers.schedules.LearningRateSchedule):
    """Piecewise linear through the points of a plan."""

    def __init__(self, path):
        with np.load(path) as plan:
            self.knots = plan["step"]
            self.rates = plan["rate"]
        self.path = path
        self.spacing = float(self.knots[1] - self.knots[0])

    def __call__(self, step):
        at = tf.cast(step, tf.float32) / self.spacing
        left = tf.minimum(tf.cast(at, tf.int32), len(self.rates) - 2)
        part = at - tf.cast(left, tf.float32)
        return (1.0 - part) * tf.gather(self.rates, left) + part * tf.gather(self.rates, left + 1)

    def get_config(self):
        return {"path": self.path}


def make_text(seed=37):
    rng = np.random.default_rng(seed)
    successors = rng.integers(0, ALPHABET, (ALPHABET, 4))
    text = np.empty(TEXT, "int32")
    c = 0
    choice = rng.integers(0, 4, TEXT)
    for i in range(TEXT):
        text[i] = c
        c = successors[c, choice[i]]
    return text


def make_dataset(text):
    offsets = tf.range(CONTEXT + 1)

    def cut(_):
        at = tf.random.uniform((BATCH, 1), 0, TEXT - CONTEXT - 1, tf.int32)
        piece = tf.gather(text, at + offsets)
        return piece[:, :-1], piece[:, 1:]

    return tf.data.Dataset.range(1).repeat().map(cut, num_parallel_calls=2).prefetch(4)


def build_model():
    chars = keras.Input((CONTEXT,), dtype="int32")
    x = keras.layers.Embedding(ALPHABET, 32)(chars)
    for dilation in (1, 2, 4):
        h = keras.layers.Conv1D(64, 2, padding="causal", dilation_rate=dilation, activation="relu")(x)
        x = keras.layers.Concatenate()([x, h])
    x = keras.layers.Dense(96, activation="relu")(x)
    return keras.Model(chars, keras.layers.Dense(ALPHABET)(x))


def make_step(model, opt, loss_fn):
    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_fn(y, model(x, training=True))
        opt.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    return step


def main():
    keras.utils.set_random_seed(38)
    plan = os.path.join(tempfile.mkdtemp(prefix="plan-"), "lr_plan.npz")
    write_plan(plan)
    model = build_model()
    opt = keras.optimizers.Adam(PlannedRate(plan))
    opt.build(model.trainable_variables)
    step = make_step(model, opt, keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    batches = iter(make_dataset(make_text()))
    for _ in range(WARMUP):
        loss = step(*next(batches))
    print("loss after warm-up %.4f" % float(loss))

    t0 = time.perf_counter()
    for i in range(STEPS):
        loss = step(*next(batches))
        if i % 300 == 299:
            print("step %d loss %.4f" % (i + 1, float(loss)))
    final = float(loss)
    seconds = time.perf_counter() - t0
    print("final loss %.4f" % final)
    print(json.dumps({"samples": STEPS * BATCH, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
