"""Density estimate of posterior samples with a stack of masked autoregressive maps."""
import json
import os
import sys
import time

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import tensorflow as tf
import keras

DIMS = 6
MAPS = 5
HIDDEN = 64
BATCH = 512
SAMPLES = 20_480
EPOCHS = 9
WARM_STEPS = 6
PATIENCE = 8


def posterior_samples(rng, count):
    """Curved, correlated samples like those of a small cosmology fit."""
    base = rng.standard_normal((count, DIMS))
    mixing = np.eye(DIMS) + 0.4 * np.tril(rng.standard_normal((DIMS, DIMS)), -1)
    theta = base @ mixing.T
    theta[:, 1] += 0.35 * theta[:, 0] ** 2
    theta[:, 3] = np.sinh(0.6 * theta[:, 3])
    weights = np.exp(-0.05 * np.abs(theta[:, 0]))
    return theta.astype(np.float32), weights.astype(np.float32)


def whiten(theta):
    mean = theta.mean(axis=0)
    spread = theta.std(axis=0)
    return (theta - mean) / spread, mean, spread


def degree_masks(dims, hidden):
    """Masks that let output k see only the inputs before k."""
    inputs = np.arange(1, dims + 1)
    middle = 1 + np.arange(hidden) % (dims - 1)
    first = (middle[None, :] >= inputs[:, None]).astype(np.float32)
    second = (middle[None, :] >= middle[:, None]).astype(np.float32)
    last = (inputs[None, :] > middle[:, None]).astype(np.float32)
    return first, second, np.concatenate([last, last], axis=1)


class MaskedDense(keras.layers.Layer):
    def __init__(self, mask, activation=None, **kwargs):
        super().__init__(**kwargs)
        self.pattern = tf.constant(mask)
        self.activation = keras.activations.get(activation)

    def build(self, shape):
        rows, columns = self.pattern.shape
        self.kernel = self.add_weight(shape=(rows, columns), initializer="glorot_uniform")
        self.bias = self.add_weight(shape=(columns,), initializer="zeros")

    def call(self, inputs):
        kernel = tf.convert_to_tensor(self.kernel) * self.pattern
        return self.activation(tf.matmul(inputs, kernel) + self.bias)


class FlowStack(keras.Model):
    """Several masked networks in a row, the order of the inputs turned in between."""

    def __init__(self):
        super().__init__()
        first, second, last = degree_masks(DIMS, HIDDEN)
        self.nets = [
            keras.Sequential(
                [MaskedDense(first, "tanh"), MaskedDense(second, "tanh"), MaskedDense(last)]
            )
            for _ in range(MAPS)
        ]

    def call(self, theta):
        z = theta
        total = tf.zeros(tf.shape(theta)[0])
        for net in self.nets:
            shift, log_scale = tf.split(net(z), 2, axis=1)
            log_scale = 2.0 * tf.tanh(log_scale / 2.0)
            z = (z - shift) * tf.exp(-log_scale)
            total -= tf.reduce_sum(log_scale, axis=1)
            z = tf.reverse(z, axis=[1])
        normal = -0.5 * tf.reduce_sum(z**2, axis=1) - 0.5 * DIMS * np.log(2 * np.pi)
        return normal + total


def negative_log_density(model, theta, weights):
    return -tf.reduce_sum(weights * model(theta)) / tf.reduce_sum(weights)


class Fitter:
    """Trains a flow on weighted samples and remembers the best state."""

    def __init__(self, model, learning_rate):
        self.model = model
        self.optimizer = keras.optimizers.Adam(learning_rate)
        self.best = np.inf
        self.best_weights = None
        self.since_best = 0

    @tf.function
    def train_step(self, theta, weights):
        with tf.GradientTape() as tape:
            loss = negative_log_density(self.model, theta, weights)
        gradients = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables))
        return loss

    def check(self, theta, weights):
        held = float(negative_log_density(self.model, theta, weights))
        if held < self.best:
            self.best, self.since_best = held, 0
            self.best_weights = self.model.get_weights()
        else:
            self.since_best += 1
        return held


def main():
    begin = time.perf_counter()
    keras.utils.set_random_seed(17)
    rng = np.random.default_rng(17)
    theta, weights = posterior_samples(rng, SAMPLES)
    theta, _, _ = whiten(theta)
    cut = SAMPLES * 9 // 10
    feed = tf.data.Dataset.from_tensor_slices((theta[:cut], weights[:cut]))
    feed = feed.cache().shuffle(cut, seed=17).batch(BATCH, drop_remainder=True).prefetch(2)
    held_theta, held_weights = tf.constant(theta[cut:]), tf.constant(weights[cut:])

    model = FlowStack()
    model(held_theta[:4])
    fitter = Fitter(model, 1e-3)
    fitter.optimizer.build(model.trainable_variables)

    for some_theta, some_weights in feed.take(WARM_STEPS):
        fitter.train_step(some_theta, some_weights)

    spent, steps = 0.0, 0
    for epoch in range(EPOCHS):
        started = time.perf_counter()
        losses = []
        for some_theta, some_weights in feed:
            losses.append(float(fitter.train_step(some_theta, some_weights)))
        spent += time.perf_counter() - started
        steps += len(losses)
        held = fitter.check(held_theta, held_weights)
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}  held out {held:.4f}", file=sys.stderr)
        if fitter.since_best >= PATIENCE:
            break

    model.set_weights(fitter.best_weights)
    wall = time.perf_counter() - begin
    print(json.dumps({"units": steps, "seconds": round(spent, 3), "wall": round(wall, 3)}))


if __name__ == "__main__":
    main()
