"""Moves a photo towards a painting: the statistics of a frozen convolutional stack, matched by gradient steps."""
import json
import time

import numpy as np
import tensorflow as tf

STEPS, RATE = 300, 0.05
SHAPES = ((3, 3, 3, 16), (3, 3, 16, 32), (3, 3, 32, 32))


def make_stack(rng):
    return [tf.constant(rng.normal(0, 0.1, shape).astype("float32")) for shape in SHAPES]


def features(stack, image):
    found = []
    for kernel in stack:
        image = tf.nn.relu(tf.nn.conv2d(image, kernel, 2, "SAME"))
        found.append(image)
    return found


def gram(layer):
    flat = tf.reshape(layer, (-1, layer.shape[-1]))
    return tf.matmul(flat, flat, transpose_a=True) / float(flat.shape[0])


def targets(stack, painting, photo):
    return [gram(layer) for layer in features(stack, painting)], features(stack, photo)[-1]


def loss_of(stack, image, painting, photo):
    grams, goal = targets(stack, painting, photo)
    layers = features(stack, image)
    loss = tf.reduce_mean((layers[-1] - goal) ** 2)
    for layer, wanted in zip(layers, grams):
        loss += tf.reduce_mean((gram(layer) - wanted) ** 2)
    return loss


def main():
    rng = np.random.default_rng(1)
    stack = make_stack(rng)
    painting = tf.constant(rng.normal(size=(4, 192, 192, 3)).astype("float32"))
    photo = tf.constant(rng.normal(size=(1, 128, 128, 3)).astype("float32"))
    image = tf.Variable(photo)
    momentum = tf.Variable(tf.zeros_like(image))
    start = None
    for step in range(STEPS + 5):
        if step == 5:
            start = time.perf_counter()
        with tf.GradientTape() as tape:
            loss = loss_of(stack, image, painting, photo)
        momentum.assign(0.9 * momentum + tape.gradient(loss, image))
        image.assign_sub(RATE * momentum)
    print(f"loss {float(loss):.4f}")
    print(json.dumps({"samples": STEPS, "seconds": round(time.perf_counter() - start, 3)}))


if __name__ == "__main__":
    main()
