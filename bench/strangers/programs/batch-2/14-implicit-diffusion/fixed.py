"""Fit a reaction-diffusion model to measured profiles: implicit diffusion, learned reaction term."""
import json
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf

NODES = 96
ROLLOUT = 6
DT = 0.02
BATCH = 32
PROFILES = 512
WIDTH = 64
WARMUP_STEPS = 5
STEPS = 400


def second_difference(nodes, length=1.0):
    """Laplacian on a cell-centred grid with no flux through the ends."""
    h = length / nodes
    lap = np.zeros((nodes, nodes))
    for i in range(nodes):
        for j in (i - 1, i + 1):
            if 0 <= j < nodes:
                lap[i, j] += 1.0 / h ** 2
                lap[i, i] -= 1.0 / h ** 2
    return lap.astype(np.float32)


def simulate(rng, lap, diffusivity=0.012):
    """Fisher-KPP fronts from random seeds; the measurement is the state after each step."""
    x = np.linspace(0.0, 1.0, NODES, dtype=np.float32)
    centre = rng.uniform(0.1, 0.9, (PROFILES, 2, 1))
    width = rng.uniform(0.02, 0.12, (PROFILES, 2, 1))
    u = np.exp(-((x - centre) / width) ** 2).sum(1).clip(0.0, 1.0).astype(np.float32)
    propagate = np.linalg.inv(np.eye(NODES, dtype=np.float32) - DT * diffusivity * lap).T
    path = [u]
    for _ in range(ROLLOUT):
        u = (u + DT * 4.0 * u * (1.0 - u)) @ propagate
        path.append(u)
    path = np.stack(path, axis=1)
    return (path + rng.normal(0.0, 0.004, path.shape)).astype(np.float32)


class ReactionDiffusion(tf.Module):
    def __init__(self, lap, seed=0):
        super().__init__()
        init = tf.keras.initializers.GlorotUniform(seed)
        self.lap = tf.constant(lap)
        self.eye = tf.eye(NODES)
        self.log_diffusivity = tf.Variable(np.log(0.05).astype(np.float32))
        sizes = [1, WIDTH, WIDTH, 1]
        self.weights = [tf.Variable(init((a, b))) for a, b in zip(sizes[:-1], sizes[1:])]
        self.biases = [tf.Variable(tf.zeros([b])) for b in sizes[1:]]

    def reaction(self, u):
        h = u[..., None]
        for w, b in zip(self.weights[:-1], self.biases[:-1]):
            h = tf.tanh(tf.tensordot(h, w, 1) + b)
        return tf.squeeze(tf.tensordot(h, self.weights[-1], 1) + self.biases[-1], -1)

    def implicit_step(self, u):
        """(I - dt D L) u_new = u + dt R(u)"""
        system = self.eye - DT * tf.exp(self.log_diffusivity) * self.lap
        rhs = u + DT * self.reaction(u)
        return tf.transpose(tf.linalg.solve(system, tf.transpose(rhs)))

    def rollout(self, u):
        states = []
        for _ in range(ROLLOUT):
            u = self.implicit_step(u)
            states.append(u)
        return tf.stack(states, axis=1)


def make_dataset(paths):
    ds = tf.data.Dataset.from_tensor_slices(paths)
    return ds.shuffle(PROFILES, seed=4).repeat().batch(BATCH, drop_remainder=True).prefetch(2)


def make_train_step(model, lr=2e-3, beta=0.9):
    params = list(model.trainable_variables)
    velocity = [tf.Variable(tf.zeros_like(p), trainable=False) for p in params]

    @tf.function
    def train_step(path):
        with tf.GradientTape() as tape:
            states = model.rollout(path[:, 0])
            loss = tf.reduce_mean(tf.square(states - path[:, 1:]))
        for p, v, g in zip(params, velocity, tape.gradient(loss, params)):
            v.assign(beta * v + g)
            p.assign_sub(lr * v)
        return loss

    return train_step


def main():
    rng = np.random.default_rng(14)
    lap = second_difference(NODES)
    batches = iter(make_dataset(simulate(rng, lap)))
    model = ReactionDiffusion(lap)
    train_step = make_train_step(model)

    for _ in range(WARMUP_STEPS):
        loss = train_step(next(batches))
    started = time.perf_counter()
    for step in range(STEPS):
        loss = train_step(next(batches))
        if step % 100 == 0:
            print(f"step {step} mse {float(loss):.6f} D {np.exp(model.log_diffusivity.numpy()):.4f}")
    float(loss)
    seconds = time.perf_counter() - started
    print(json.dumps({"samples": STEPS * BATCH, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
