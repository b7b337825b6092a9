"""Message passing on small molecules: predicts a solubility-like property from atoms and bonds."""
import argparse
import json
import time

import keras
import numpy as np
import tensorflow as tf

ATOM_KINDS = 9
BOND_KINDS = 4
MAX_ATOMS = 24
MAX_BONDS = 40


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--molecules", type=int, default=2000)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--hidden", type=int, default=32)
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("--steps", type=int, default=180)
    p.add_argument("--warmup", type=int, default=15)
    p.add_argument("--debug", type=int, default=1, help="step through the model and the input functions")
    return p.parse_args()


def configure(args):
    if args.debug:
        tf.config.run_functions_eagerly(True)
        tf.data.experimental.enable_debug_mode()


def make_molecules(n, seed=17):
    rng = np.random.default_rng(seed)
    atoms = rng.integers(1, ATOM_KINDS, (n, MAX_ATOMS)).astype("int32")
    size = rng.integers(8, MAX_ATOMS + 1, n)
    atoms[np.arange(MAX_ATOMS)[None] >= size[:, None]] = 0
    src = (rng.random((n, MAX_BONDS)) * size[:, None]).astype("int32")
    dst = (rng.random((n, MAX_BONDS)) * size[:, None]).astype("int32")
    kind = rng.integers(0, BOND_KINDS, (n, MAX_BONDS)).astype("int32")
    y = (atoms == 3).sum(1) - 0.5 * (atoms == 5).sum(1) + 0.2 * (kind == 2).sum(1)
    y = (y - y.mean()) / y.std() + rng.normal(0, 0.1, n)
    return atoms, src, dst, kind, y.astype("float32")


def both_directions(atoms, src, dst, kind, y):
    return (atoms, tf.concat([src, dst], -1), tf.concat([dst, src], -1), tf.concat([kind, kind], -1)), y


def jitter(inputs, y):
    return inputs, y + tf.random.normal(tf.shape(y), stddev=0.02)


def make_dataset(args):
    ds = tf.data.Dataset.from_tensor_slices(make_molecules(args.molecules))
    ds = ds.map(both_directions).shuffle(args.molecules, seed=1).repeat()
    ds = ds.map(jitter)
    return ds.batch(args.batch, drop_remainder=True).prefetch(2)


class MessagePassing(keras.layers.Layer):
    def __init__(self, hidden):
        super().__init__()
        self.message = keras.layers.Dense(hidden, activation="relu")
        self.update = keras.layers.GRUCell(hidden)
        self.hidden = hidden

    def build(self, shape):
        self.message.build((None, None, 2 * self.hidden))
        self.update.build((None, self.hidden))
        super().build(shape)

    def call(self, h, src, dst, bond):
        batch = tf.shape(h)[0]
        offset = tf.range(batch)[:, None] * MAX_ATOMS
        flat = tf.reshape(h, (-1, self.hidden))
        sent = self.message(tf.concat([tf.gather(flat, src + offset), bond], -1))
        inbox = tf.math.unsorted_segment_sum(
            tf.reshape(sent, (-1, self.hidden)), tf.reshape(dst + offset, [-1]), batch * MAX_ATOMS
        )
        new, _ = self.update(inbox, [flat])
        return tf.reshape(new, tf.shape(h))


class Net(keras.Model):
    def __init__(self, hidden, rounds):
        super().__init__()
        self.atom = keras.layers.Embedding(ATOM_KINDS, hidden)
        self.bond = keras.layers.Embedding(BOND_KINDS, hidden)
        self.rounds = [MessagePassing(hidden) for _ in range(rounds)]
        self.readout = keras.layers.Dense(hidden, activation="relu")
        self.out = keras.layers.Dense(1)

    def call(self, inputs):
        atoms, src, dst, kind = inputs
        mask = tf.cast(atoms > 0, tf.float32)[..., None]
        h, bond = self.atom(atoms), self.bond(kind)
        for layer in self.rounds:
            h = h + layer(h, src, dst, bond) * mask
        return self.out(self.readout(tf.reduce_sum(h * mask, 1) / tf.reduce_sum(mask, 1)))[:, 0]


def make_step(model, optimizer):
    @tf.function
    def step(inputs, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(y - model(inputs)))
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        return loss

    return step


def main():
    args = parse_args()
    configure(args)
    keras.utils.set_random_seed(4)
    batches = iter(make_dataset(args))
    model = Net(args.hidden, args.rounds)
    model(next(batches)[0])
    optimizer = keras.optimizers.Adam(1e-3)
    optimizer.build(model.trainable_variables)
    step = make_step(model, optimizer)
    for _ in range(args.warmup):
        loss = step(*next(batches))
    print("mse after warm-up %.4f" % float(loss))
    t0 = time.perf_counter()
    for _ in range(args.steps):
        loss = step(*next(batches))
    final = float(loss)
    seconds = time.perf_counter() - t0
    print("mse %.4f" % final)
    print(json.dumps({"samples": args.steps * args.batch, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
