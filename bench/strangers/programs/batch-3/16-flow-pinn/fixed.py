"""Physics-informed network for stationary heat and flow in a cavity (velocity u, v, pressure p, temperature T)."""
import json
import math
import time

import numpy as np
import tensorflow as tf

POINTS = 32
WALL_POINTS = 1536
STEPS = 1600
WARMUP = 15
LOG_EVERY = 150
WIDTH = 96
DEPTH = 4
NU = 0.05
KAPPA = 0.08
BUOYANCY = 1.0


class CavityNet(tf.Module):
    """Plain tanh network (x, y) -> (u, v, p, T) plus heat flux (qx, qy), first order form."""

    OUTPUTS = 6

    def __init__(self, seed=0):
        super().__init__()
        rng = np.random.default_rng(seed)
        sizes = [2] + [WIDTH] * DEPTH + [self.OUTPUTS]
        self.layers = []
        for fan_in, fan_out in zip(sizes[:-1], sizes[1:]):
            limit = math.sqrt(6.0 / (fan_in + fan_out))
            kernel = tf.Variable(rng.uniform(-limit, limit, (fan_in, fan_out)).astype(np.float32))
            self.layers.append((kernel, tf.Variable(tf.zeros([fan_out]))))

    def __call__(self, xy):
        h = 2.0 * xy - 1.0
        for kernel, bias in self.layers[:-1]:
            h = tf.tanh(tf.matmul(h, kernel) + bias)
        kernel, bias = self.layers[-1]
        return tf.matmul(h, kernel) + bias


def fields_and_slopes(net, xy):
    """Network outputs [N, 6] and their derivatives by x and y [N, 6, 2]."""
    with tf.GradientTape() as tape:
        tape.watch(xy)
        out = net(xy)
    slopes = tape.batch_jacobian(out, xy)
    return out, slopes


def residuals(net, xy):
    out, slopes = fields_and_slopes(net, xy)
    u, v, _, temperature, qx, qy = tf.unstack(out, axis=1)
    d_dx, d_dy = slopes[:, :, 0], slopes[:, :, 1]
    continuity = d_dx[:, 0] + d_dy[:, 1]
    # vorticity form of the momentum balance, closed with a linear drag
    momentum_x = u * d_dx[:, 0] + v * d_dy[:, 0] + d_dx[:, 2] + NU * u
    momentum_y = u * d_dx[:, 1] + v * d_dy[:, 1] + d_dy[:, 2] + NU * v - BUOYANCY * temperature
    flux_x = qx + KAPPA * d_dx[:, 3]
    flux_y = qy + KAPPA * d_dy[:, 3]
    energy = u * d_dx[:, 3] + v * d_dy[:, 3] + d_dx[:, 4] + d_dy[:, 5]
    return tf.stack([continuity, momentum_x, momentum_y, flux_x, flux_y, energy])


def wall_loss(net, walls):
    """No slip on all walls, hot on the left, cold on the right."""
    out = net(walls)
    slip = tf.reduce_mean(out[:, 0] ** 2 + out[:, 1] ** 2)
    left = tf.cast(walls[:, 0] < 1e-6, tf.float32)
    right = tf.cast(walls[:, 0] > 1 - 1e-6, tf.float32)
    heat = tf.reduce_mean(left * (out[:, 3] - 1.0) ** 2 + right * out[:, 3] ** 2)
    return slip + heat


def sample_points(rng):
    inside = rng.random((POINTS, 2), dtype=np.float32)
    walls = rng.random((WALL_POINTS, 2), dtype=np.float32)
    side = np.arange(WALL_POINTS) % 4
    walls[side == 0, 0], walls[side == 1, 0] = 0.0, 1.0
    walls[side == 2, 1], walls[side == 3, 1] = 0.0, 1.0
    return tf.constant(inside), tf.constant(walls)


def make_step(net, optimizer):
    variables = net.trainable_variables

    @tf.function
    def step(inside, walls):
        with tf.GradientTape() as tape:
            physics = tf.reduce_mean(residuals(net, inside) ** 2)
            boundary = wall_loss(net, walls)
            loss = physics + 5.0 * boundary
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return physics, boundary

    return step


def main():
    net = CavityNet()
    schedule = tf.keras.optimizers.schedules.CosineDecay(2e-3, WARMUP + STEPS)
    step = make_step(net, tf.keras.optimizers.Adam(schedule))
    rng = np.random.default_rng(1)
    for i in range(WARMUP + STEPS):
        if i == WARMUP:
            started = time.perf_counter()
        physics, boundary = step(*sample_points(rng))
        if i % LOG_EVERY == 0:
            print(f"step {i:5d}  physics {float(physics):.5f}  walls {float(boundary):.5f}")
    final = float(physics)
    seconds = time.perf_counter() - started
    print("final residual", round(final, 6))
    print(json.dumps({"samples": STEPS * POINTS, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
