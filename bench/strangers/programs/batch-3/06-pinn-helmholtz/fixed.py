"""Physics informed network for the Helmholtz equation on the unit square."""
import json
import time

import numpy as np
import tensorflow as tf
import keras

DTYPE = tf.float32

A1, A2 = 1, 2
K = 1.0
N_INTERIOR = 1500
N_EDGE = 100
WIDTH = 64
DEPTH = 4
GRID = 91
WARMUP = 10
STEPS = 90
REPORT_EVERY = 30


def exact(x, y):
    return np.sin(A1 * np.pi * x) * np.sin(A2 * np.pi * y)


def source(x, y):
    factor = K ** 2 - (A1 * np.pi) ** 2 - (A2 * np.pi) ** 2
    return factor * exact(x, y)


def collocation_points(rng):
    xy = rng.uniform(0.0, 1.0, (N_INTERIOR, 2))
    rhs = source(xy[:, :1], xy[:, 1:])
    return tf.constant(xy, DTYPE), tf.constant(rhs, DTYPE)


def edge_points(rng):
    t = rng.uniform(0.0, 1.0, (4, N_EDGE, 1))
    zero, one = np.zeros((N_EDGE, 1)), np.ones((N_EDGE, 1))
    edges = np.concatenate([
        np.hstack([t[0], zero]),
        np.hstack([t[1], one]),
        np.hstack([zero, t[2]]),
        np.hstack([one, t[3]]),
    ])
    return tf.constant(edges, DTYPE)


def build_network():
    net = keras.Sequential([keras.Input((2,))])
    for _ in range(DEPTH):
        net.add(keras.layers.Dense(WIDTH, activation="tanh", kernel_initializer="glorot_normal"))
    net.add(keras.layers.Dense(1))
    return net


def residual(net, xy, rhs):
    x, y = xy[:, :1], xy[:, 1:]
    with tf.GradientTape() as tape_xx, tf.GradientTape() as tape_yy:
        tape_xx.watch(x)
        tape_yy.watch(y)
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            u = net(tf.concat([x, y], axis=1))
        u_x, u_y = tape.gradient(u, [x, y])
    u_xx = tape_xx.gradient(u_x, x)
    u_yy = tape_yy.gradient(u_y, y)
    return u_xx + u_yy + K ** 2 * u - rhs


class HelmholtzSolver:
    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.net = build_network()
        schedule = keras.optimizers.schedules.ExponentialDecay(2e-3, 500, 0.9)
        self.optimizer = keras.optimizers.Adam(schedule)
        self.xy, self.rhs = collocation_points(rng)
        self.edges = edge_points(rng)
        axis = np.linspace(0.0, 1.0, GRID)
        gx, gy = np.meshgrid(axis, axis)
        self.grid = tf.constant(np.stack([gx.ravel(), gy.ravel()], axis=1), DTYPE)
        self.truth = exact(gx, gy).reshape(-1, 1)
        self.history = []

    @tf.function
    def train_step(self):
        with tf.GradientTape() as tape:
            pde = tf.reduce_mean(tf.square(residual(self.net, self.xy, self.rhs)))
            boundary = tf.reduce_mean(tf.square(self.net(self.edges)))
            loss = pde + 100.0 * boundary
        weights = self.net.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return loss

    @tf.function
    def field(self):
        return self.net(self.grid)

    def relative_error(self):
        u = self.field().numpy()
        return float(np.linalg.norm(u - self.truth) / np.linalg.norm(self.truth))

    def run(self, steps):
        for step in range(1, steps + 1):
            loss = float(self.train_step())
            if step % REPORT_EVERY == 0:
                error = self.relative_error()
                self.history.append((step, loss, error))
                print(f"step {step:5d}  loss {loss:10.4f}  rel. L2 error {error:.4f}")


def main():
    keras.utils.set_random_seed(17)
    solver = HelmholtzSolver(seed=17)
    solver.run(WARMUP)
    solver.relative_error()

    start = time.perf_counter()
    solver.run(STEPS)
    seconds = time.perf_counter() - start
    print(json.dumps({"samples": STEPS * N_INTERIOR, "seconds": round(seconds, 4)}))


if __name__ == "__main__":
    main()
