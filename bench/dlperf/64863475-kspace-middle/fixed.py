"""Unrolled MRI reconstruction: data are (batch, height, width, coil)."""
import json
import time

import numpy as np
import tensorflow as tf

tf.random.set_seed(1)
B, H, W, COILS = 4, 64, 64, 32
STEPS = 24
WARMUP = 2


def phantom(n):
    rng = np.random.default_rng(1)
    yy, xx = np.mgrid[-1:1:H * 1j, -1:1:W * 1j]
    out = np.zeros((n, H, W, COILS), "complex64")
    for i in range(n):
        r = 0.3 + 0.5 * rng.random()
        body = ((yy**2 + xx**2) < r).astype("float32")
        phase = rng.random((COILS,)) * 2 * np.pi
        out[i] = body[..., None] * np.exp(1j * (phase + yy[..., None] * rng.normal(size=COILS)))
    return out


def to_kspace(images):
    planes = tf.signal.fft2d(tf.transpose(images, [0, 3, 1, 2]))
    return tf.transpose(planes, [0, 2, 3, 1])


mask = tf.constant((np.random.default_rng(0).random((1, H, W, 1)) < 0.35).astype("complex64"))
weights = tf.Variable(tf.random.normal((1, 1, COILS, COILS)) / COILS)
opt_rate = 0.05


def step(images):
    measured = to_kspace(images) * mask
    with tf.GradientTape() as tape:
        real = tf.nn.conv2d(tf.abs(images), weights, 1, "SAME")
        guess = tf.complex(real, tf.zeros_like(real))
        err = to_kspace(guess) * mask - measured
        loss = tf.reduce_mean(tf.square(tf.abs(err)) + 1e-9)
    grad = tape.gradient(loss, weights)
    weights.assign_sub(opt_rate * grad / (tf.norm(grad) + 1e-6))
    return loss


def main():
    data = phantom(B * 4)
    for i in range(STEPS + WARMUP):
        if i == WARMUP:
            t0 = time.perf_counter()
        j = (i % 4) * B
        loss = float(step(tf.constant(data[j:j + B])))
    seconds = time.perf_counter() - t0
    print("loss", loss)
    print(json.dumps({"samples": STEPS * B, "seconds": seconds}))


main()
