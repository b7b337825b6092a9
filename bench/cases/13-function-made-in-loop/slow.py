"""Physics-informed network for the heat equation; collocation points are drawn anew for each patch."""
import json
import time

import numpy as np
import tensorflow as tf


class HeatNet(tf.Module):
    def __init__(self, widths=(2, 64, 64, 64, 1), seed=4):
        super().__init__()
        rng = np.random.default_rng(seed)
        self.layers = [(tf.Variable(rng.normal(0, 1 / np.sqrt(a), (a, b)).astype("float32")),
                        tf.Variable(tf.zeros((b,)))) for a, b in zip(widths, widths[1:])]

    def __call__(self, x, t):
        h = tf.stack([x, t], 1)
        for kernel, bias in self.layers[:-1]:
            h = tf.tanh(h @ kernel + bias)
        kernel, bias = self.layers[-1]
        return (h @ kernel + bias)[:, 0]


def residual(net, x, t):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape(persistent=True) as inner:
            inner.watch((x, t))
            u = net(x, t)
        u_x, u_t = inner.gradient(u, x), inner.gradient(u, t)
    return u_t - 0.1 * outer.gradient(u_x, x)


def descend(net, x, t, rate):
    with tf.GradientTape() as tape:
        start = net(x, tf.zeros_like(t)) - tf.sin(np.pi * x)
        loss = tf.reduce_mean(tf.square(residual(net, x, t))) + tf.reduce_mean(tf.square(start))
    for variable, gradient in zip(net.trainable_variables, tape.gradient(loss, net.trainable_variables)):
        variable.assign_sub(rate * gradient)
    return loss


def solve(net, patches, inner_steps, points, rng):
    seen = 0
    began = time.perf_counter()
    for patch in range(patches):
        @tf.function
        def update(x, t):
            return descend(net, x, t, 0.01)

        for _ in range(inner_steps):
            x = tf.constant(rng.uniform(0, 1, points).astype("float32"))
            t = tf.constant(rng.uniform(patch / patches, (patch + 1) / patches, points).astype("float32"))
            loss = update(x, t)
            seen += points
    print(f"residual {float(loss):.5f}")
    return seen, time.perf_counter() - began


def main():
    net = HeatNet()
    rng = np.random.default_rng(4)
    solve(net, 1, 2, 512, rng)
    samples, seconds = solve(net, 50, 10, 512, rng)
    print(json.dumps({"samples": samples, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
