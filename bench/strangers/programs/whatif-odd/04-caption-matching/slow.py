"""Caption matching: image features and captions are pulled together by their similarity, custom training loop."""
import json
import time

import keras
import numpy as np
import tensorflow as tf

IMAGE_DIM = 256
VOCAB = 3000
CAPTION = 16
EMBED = 128
BATCH = 192
WARMUP = 8
STEPS = 360


def make_pairs(n=6000, seed=23):
    rng = np.random.default_rng(seed)
    topic = rng.integers(0, 100, n)
    centers = rng.normal(0, 1, (100, IMAGE_DIM))
    images = centers[topic] + rng.normal(0, 0.5, (n, IMAGE_DIM))
    words = topic[:, None] * 30 + rng.integers(0, 30, (n, CAPTION))
    noise = rng.random(words.shape) < 0.4
    words[noise] = rng.integers(0, VOCAB, noise.sum())
    return images.astype("float32"), words.astype("int32")


def make_dataset(images, words):
    ds = tf.data.Dataset.from_tensor_slices((images, words))
    return ds.shuffle(6000, seed=4).repeat().batch(BATCH, drop_remainder=True).prefetch(2)


def image_head():
    inp = keras.Input((IMAGE_DIM,))
    x = keras.layers.Dense(512, activation="relu")(inp)
    x = keras.layers.Dense(256, activation="relu")(x)
    return keras.Model(inp, keras.layers.Dense(EMBED)(x))


def caption_head():
    inp = keras.Input((CAPTION,), dtype="int32")
    x = keras.layers.Embedding(VOCAB, 128)(inp)
    x = keras.layers.Conv1D(128, 3, activation="relu", padding="same")(x)
    x = keras.layers.GlobalMaxPooling1D()(x)
    return keras.Model(inp, keras.layers.Dense(EMBED)(x))


def similarity(a, b):
    """Negative smoothed L1 distance of every row of a to every row of b."""
    gap = tf.abs(a[:, None, :] - b[None, :, :])
    huber = tf.where(gap < 1.0, 0.5 * gap * gap, gap - 0.5)
    return -tf.reduce_mean(huber, axis=-1)


def matching_loss(image_vecs, caption_vecs):
    scores = similarity(image_vecs, caption_vecs)
    matched = tf.linalg.diag_part(scores)
    return -tf.reduce_mean(matched), matched


def spread_loss(vecs):
    """Keeps the dimensions of a head alive and uncorrelated."""
    centred = vecs - tf.reduce_mean(vecs, axis=0)
    std = tf.sqrt(tf.reduce_mean(tf.square(centred), axis=0) + 1e-4)
    cov = tf.matmul(centred, centred, transpose_a=True) / BATCH
    off = cov - tf.linalg.diag(tf.linalg.diag_part(cov))
    return tf.reduce_mean(tf.nn.relu(1.0 - std)) + 0.01 * tf.reduce_mean(tf.square(off))


class Matcher:
    def __init__(self):
        self.image = image_head()
        self.caption = caption_head()
        self.weights = self.image.trainable_variables + self.caption.trainable_variables
        self.opt = keras.optimizers.Adam(1e-3)
        self.opt.build(self.weights)
        self.mean_match = keras.metrics.Mean()

    @tf.function
    def step(self, images, words):
        with tf.GradientTape() as tape:
            u = self.image(images, training=True)
            v = self.caption(words, training=True)
            match, matched = matching_loss(u, v)
            loss = match + spread_loss(u) + spread_loss(v)
        grads = tape.gradient(loss, self.weights)
        self.opt.apply_gradients(zip(grads, self.weights))
        self.mean_match.update_state(matched)
        return loss


def main():
    keras.utils.set_random_seed(24)
    batches = iter(make_dataset(*make_pairs()))
    matcher = Matcher()
    for _ in range(WARMUP):
        loss = matcher.step(*next(batches))
    print("warm-up loss %.4f" % float(loss))
    matcher.mean_match.reset_state()
    t0 = time.perf_counter()
    for i in range(STEPS):
        loss = matcher.step(*next(batches))
        if i % 100 == 99:
            print("step %d loss %.4f match %.4f" % (i + 1, float(loss), float(matcher.mean_match.result())))
    final = float(loss)
    seconds = time.perf_counter() - t0
    print("final loss %.4f" % final)
    print(json.dumps({"samples": STEPS * BATCH, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
