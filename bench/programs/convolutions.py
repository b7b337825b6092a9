"""A training that spends its time in code that oneDNN generates, until it is ended: convolutions and matrix products.

Keras fit of a small image network; then the same matrix product again and again, eagerly and in a tf.function, of sizes
that change, so that new kernels are generated while windows of native stacks go on.
"""

import numpy as np
import tensorflow as tf

SIZE, BATCH, STEPS = 32, 16, 10


@tf.function(reduce_retracing=True)
def products(left, right):
    """A traced matrix product and what is fused with it."""
    return tf.nn.relu(tf.matmul(left, right) + 1.0)


def dense(number):
    """Matrix products of a size of their own."""
    rows = 192 + 16 * (number % 9)
    left = tf.random.normal((rows, 256))
    right = tf.random.normal((256, 320))
    for _ in range(20):
        products(left, right)
        tf.linalg.matmul(left, right)


rng = np.random.default_rng(1)
x = rng.standard_normal((BATCH * 4, SIZE, SIZE, 3)).astype("float32")
y = rng.integers(0, 10, BATCH * 4)
data = tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(BATCH).prefetch(2)
layers = tf.keras.layers
model = tf.keras.Sequential(
    [
        tf.keras.Input((SIZE, SIZE, 3)),
        layers.Conv2D(32, 3, activation="relu"),
        layers.Conv2D(64, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.DepthwiseConv2D(3),
        layers.Conv2D(64, 1),
        layers.Flatten(),
        layers.Dense(128, "relu"),
        layers.Dense(10),
    ]
)
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
number = 0
while True:
    number += 1
    model.fit(data, steps_per_epoch=STEPS, epochs=1, verbose=0)
    dense(number)
