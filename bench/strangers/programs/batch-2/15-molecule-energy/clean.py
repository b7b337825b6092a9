"""Energy regression on small molecules of a fixed size: dense message passing, custom training loop."""
import json
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf

ATOMS = 24
SPECIES = 6
FEATURES = 192
LAYERS = 3
MOLECULES = 2048
VALIDATION = 256
BATCH = 64
EPOCHS = 5


def make_molecules(rng, count):
    species = rng.integers(0, SPECIES, (count, ATOMS)).astype(np.int32)
    position = rng.uniform(0.0, 6.0, (count, ATOMS, 3)).astype(np.float32)
    delta = position[:, :, None] - position[:, None]
    distance = np.sqrt((delta ** 2).sum(-1) + 1e-6).astype(np.float32)
    charge = np.linspace(-1.0, 1.0, SPECIES)[species]
    pair = charge[:, :, None] * charge[:, None] * np.exp(-distance) * (1.0 - np.eye(ATOMS))
    energy = pair.sum((1, 2)).astype(np.float32)[:, None]
    cutoff = np.where(distance < 4.0, 0.5 * (np.cos(np.pi * distance / 4.0) + 1.0), 0.0)
    coupling = (cutoff * (1.0 - np.eye(ATOMS))).astype(np.float32)
    return species, coupling, energy


class MessageLayer(tf.keras.layers.Layer):
    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.message = tf.keras.layers.Dense(units, use_bias=False)
        self.hidden = tf.keras.layers.Dense(units, activation="relu")
        self.out = tf.keras.layers.Dense(units)

    def call(self, inputs):
        atoms, coupling = inputs
        gathered = tf.matmul(coupling, self.message(atoms))
        return atoms + self.out(self.hidden(tf.concat([atoms, gathered], -1)))


def build_model():
    species = tf.keras.Input((ATOMS,), dtype="int32")
    coupling = tf.keras.Input((ATOMS, ATOMS))
    atoms = tf.keras.layers.Embedding(SPECIES, FEATURES)(species)
    for _ in range(LAYERS):
        atoms = MessageLayer(FEATURES)([atoms, coupling])
    pooled = tf.keras.layers.GlobalAveragePooling1D()(atoms)
    hidden = tf.keras.layers.Dense(FEATURES, activation="relu")(pooled)
    return tf.keras.Model([species, coupling], tf.keras.layers.Dense(1)(hidden))


def make_dataset(arrays, training):
    ds = tf.data.Dataset.from_tensor_slices(arrays)
    if training:
        ds = ds.shuffle(MOLECULES, seed=15)
    return ds.batch(BATCH, drop_remainder=True).prefetch(tf.data.AUTOTUNE)


def make_steps(model, optimizer):
    @tf.function
    def train_step(species, coupling, energy):
        with tf.GradientTape() as tape:
            error = model([species, coupling], training=True) - energy
            loss = tf.reduce_mean(tf.square(error))
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        return loss

    @tf.function
    def eval_step(species, coupling, energy):
        return tf.reduce_mean(tf.abs(model([species, coupling], training=False) - energy))

    return train_step, eval_step


def main():
    tf.keras.utils.set_random_seed(15)
    rng = np.random.default_rng(15)
    train = make_dataset(make_molecules(rng, MOLECULES), training=True)
    valid = make_dataset(make_molecules(rng, VALIDATION), training=False)
    model = build_model()
    optimizer = tf.keras.optimizers.SGD(1e-3, momentum=0.9)
    train_step, eval_step = make_steps(model, optimizer)

    started = time.perf_counter()
    for epoch in range(EPOCHS):
        if epoch == 1:
            started = time.perf_counter()
        for batch in train:
            loss = train_step(*batch)
        mae = np.mean([float(eval_step(*batch)) for batch in valid])
        print(f"epoch {epoch} loss {float(loss):.4f} val mae {mae:.4f}")
    seconds = time.perf_counter() - started
    samples = (EPOCHS - 1) * (MOLECULES // BATCH) * BATCH
    print(json.dumps({"samples": samples, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
