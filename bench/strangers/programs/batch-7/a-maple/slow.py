"""Next-reading forecaster for many meters, plain TensorFlow with a custom loop."""
import json
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(2)
tf.config.threading.set_inter_op_parallelism_threads(2)

SEED = 17
METERS = 150000
SITES = 400
DIM = 32
HISTORY = 24
HORIZON = 4
READINGS = 60000
BATCH = 128
STEPS = 700
WARMUP = 6
L2 = 1e-6


def make_series(rng):
    """One long stream of readings; each reading belongs to a meter and a site."""
    t = np.arange(READINGS, dtype="float32")
    value = np.sin(t / 12) + 0.4 * np.sin(t / 55) + 0.1 * rng.normal(size=READINGS)
    load = np.cos(t / 24) + 0.1 * rng.normal(size=READINGS)
    meter = (rng.pareto(1.1, size=READINGS) * 50).astype("int64") % METERS
    site = meter % SITES
    signal = np.stack([value, load], axis=1).astype("float32")
    return signal, meter.astype("int32"), site.astype("int32")


def windows(signal, meter, site):
    size = HISTORY + HORIZON
    ds = tf.data.Dataset.from_tensor_slices((signal, meter, site))
    ds = ds.window(size, shift=1, drop_remainder=True)
    ds = ds.flat_map(lambda s, m, k: tf.data.Dataset.zip(
        (s.batch(size), m.batch(size), k.batch(size))))
    ds = ds.map(lambda s, m, k: ((s[:HISTORY], m[:HISTORY], k[:HISTORY]), s[HISTORY:, 0]),
                num_parallel_calls=tf.data.AUTOTUNE)
    ds = ds.shuffle(2000, seed=SEED).repeat()
    return ds.batch(BATCH, drop_remainder=True).prefetch(tf.data.AUTOTUNE)


def glorot(rng, *shape):
    limit = np.sqrt(6.0 / (shape[-2] + shape[-1]))
    return tf.Variable(rng.uniform(-limit, limit, size=shape).astype("float32"))


class Forecaster(tf.Module):
    def __init__(self, rng, width=128):
        super().__init__()
        self.meters = tf.Variable(rng.normal(0, 0.05, (METERS, DIM)).astype("float32"))
        self.sites = tf.Variable(rng.normal(0, 0.05, (SITES, DIM)).astype("float32"))
        inputs = 2 + 2 * DIM
        self.conv1 = glorot(rng, 3, inputs, width)
        self.conv2 = glorot(rng, 3, width, width)
        self.hidden = glorot(rng, HISTORY // 4 * width, width)
        self.bias = tf.Variable(tf.zeros([width]))
        self.out = glorot(rng, width, HORIZON)

    def __call__(self, signal, meter, site):
        x = tf.concat([
            signal,
            tf.nn.embedding_lookup(self.meters, meter),
            tf.nn.embedding_lookup(self.sites, site),
        ], axis=-1)
        x = tf.nn.relu(tf.nn.conv1d(x, self.conv1, stride=2, padding="SAME"))
        x = tf.nn.relu(tf.nn.conv1d(x, self.conv2, stride=2, padding="SAME"))
        x = tf.reshape(x, [tf.shape(x)[0], self.hidden.shape[0]])
        x = tf.nn.relu(x @ self.hidden + self.bias)
        return x @ self.out


class Adagrad(tf.Module):
    """Adagrad for everything; rows that were not read keep their slots."""

    def __init__(self, variables, lr):
        super().__init__()
        self.lr = lr
        self.slots = [tf.Variable(tf.fill(v.shape, 0.1), trainable=False) for v in variables]

    def apply(self, grads, variables):
        for g, v, slot in zip(grads, variables, self.slots):
            if isinstance(g, tf.IndexedSlices):
                rows, where = tf.unique(g.indices)
                summed = tf.math.unsorted_segment_sum(g.values, where, tf.size(rows))
                slot.scatter_add(tf.IndexedSlices(summed ** 2, rows))
                scale = tf.math.rsqrt(tf.gather(slot, rows))
                v.scatter_sub(tf.IndexedSlices(self.lr * summed * scale, rows))
            else:
                slot.assign_add(g ** 2)
                v.assign_sub(self.lr * g * tf.math.rsqrt(slot))


def make_step(model, optimizer):
    variables = list(model.trainable_variables)

    @tf.function
    def step(signal, meter, site, target):
        with tf.GradientTape() as tape:
            pred = model(signal, meter, site)
            mse = tf.reduce_mean((pred - target) ** 2)
            penalty = tf.add_n([tf.nn.l2_loss(v) for v in variables])
            loss = mse + L2 * penalty
        grads = tape.gradient(loss, variables)
        optimizer.apply(grads, variables)
        return mse

    return step


def main():
    begin = time.perf_counter()
    rng = np.random.default_rng(SEED)
    tf.random.set_seed(SEED)
    stream = iter(windows(*make_series(rng)))
    model = Forecaster(rng)
    optimizer = Adagrad(model.trainable_variables, lr=0.02)
    step = make_step(model, optimizer)

    running, start = [], None
    for i in range(STEPS + WARMUP):
        if i == WARMUP:
            start = time.perf_counter()
        (signal, meter, site), target = next(stream)
        mse = step(signal, meter, site, target)
        running.append(mse.numpy())
        if (i + 1) % 100 == 0:
            print(f"step {i + 1}: mse {np.mean(running[-100:]):.4f}")
    seconds = time.perf_counter() - start
    print(json.dumps({"units": STEPS, "seconds": round(seconds, 3),
                      "wall": round(time.perf_counter() - begin, 3)}))


if __name__ == "__main__":
    main()
