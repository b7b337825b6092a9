"""DeepONet surrogate of a loaded beam: load profile in, deflection at fixed stations out; many steps per graph call."""
import argparse
import json
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

SENSORS = 128
STATIONS = 129
CASES = 12288
HELD_OUT = 1024
BATCH = 512
STEPS_PER_CALL = 20
RANK = 96


def solve_beams(count, seed=0):
    """Simply supported beam, EI w'''' = q, by sine series; all cases at once."""
    rng = np.random.default_rng(seed)
    modes = np.arange(1, 17)
    amplitude = rng.standard_normal((count, modes.size)) / np.sqrt(modes)
    sensors = np.sin(np.pi * np.outer(modes, np.linspace(0, 1, SENSORS)))
    stations = np.linspace(0, 1, STATIONS)
    shapes = np.sin(np.pi * np.outer(modes, stations))
    stiffness = rng.uniform(0.5, 2.0, (count, 1))
    load = amplitude @ sensors
    deflection = (amplitude / (np.pi * modes) ** 4) @ shapes / stiffness
    inputs = np.concatenate([load, stiffness], axis=1).astype(np.float32)
    deflection /= deflection.std()
    return inputs, deflection.astype(np.float32), stations[:, None].astype(np.float32)


def mlp(in_dim, widths, out_dim, name):
    layers = [keras.layers.Dense(w, activation="relu") for w in widths]
    return keras.Sequential([keras.Input((in_dim,)), *layers, keras.layers.Dense(out_dim)], name=name)


class BeamSurrogate:
    def __init__(self, inputs, targets, stations):
        self.branch = mlp(SENSORS + 1, (384, 384, 384), RANK, "branch")
        self.trunk = mlp(1, (96, 96), RANK, "trunk")
        self.weights = self.branch.trainable_variables + self.trunk.trainable_variables
        schedule = keras.optimizers.schedules.CosineDecay(1e-3, 2000)
        self.optimizer = keras.optimizers.Adam(schedule)
        self.optimizer.build(self.weights)
        self.inputs = tf.constant(inputs)
        self.targets = tf.constant(targets)
        self.stations = tf.constant(stations)

    def deflect(self, inputs, training):
        coefficients = self.branch(inputs, training=training)
        basis = self.trunk(self.stations, training=training)
        return tf.matmul(coefficients, basis, transpose_b=True)

    def step(self, rows):
        inputs = tf.gather(self.inputs, rows)
        targets = tf.gather(self.targets, rows)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self.deflect(inputs, True) - targets))
        grads = tape.gradient(loss, self.weights)
        self.optimizer.apply_gradients(zip(grads, self.weights))
        return loss

    @tf.function(input_signature=[tf.TensorSpec((STEPS_PER_CALL, BATCH), tf.int32)])
    def train_block(self, rows):
        total = tf.constant(0.0)
        for i in tf.range(STEPS_PER_CALL):
            total += self.step(rows[i])
        return total / STEPS_PER_CALL

    @tf.function
    def error(self, inputs, targets):
        guess = self.deflect(inputs, False)
        return tf.norm(guess - targets) / tf.norm(targets)


def row_blocks(count, blocks, seed=1):
    """Shuffled row numbers for one call at a time; epochs run into each other."""
    rng = np.random.default_rng(seed)
    need = STEPS_PER_CALL * BATCH
    pool = np.empty(0, np.int32)
    for _ in range(blocks):
        while pool.size < need:
            pool = np.concatenate([pool, rng.permutation(count).astype(np.int32)])
        yield pool[:need].reshape(STEPS_PER_CALL, BATCH)
        pool = pool[need:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--blocks", type=int, default=42)
    args = parser.parse_args()
    keras.utils.set_random_seed(8)
    inputs, targets, stations = solve_beams(CASES)
    test_inputs, test_targets = tf.constant(inputs[:HELD_OUT]), tf.constant(targets[:HELD_OUT])
    surrogate = BeamSurrogate(inputs[HELD_OUT:], targets[HELD_OUT:], stations)
    warmup = 2
    start = time.perf_counter()
    for block, rows in enumerate(row_blocks(CASES - HELD_OUT, args.blocks)):
        if block == warmup:
            start = time.perf_counter()
        loss = surrogate.train_block(rows)
        if block % 10 == 9:
            print(f"block {block + 1}: loss {float(loss):.6f}", flush=True)
    float(loss)
    seconds = time.perf_counter() - start
    print(f"relative error {float(surrogate.error(test_inputs, test_targets)):.4f}")
    samples = (args.blocks - warmup) * STEPS_PER_CALL * BATCH
    print(json.dumps({"samples": samples, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
