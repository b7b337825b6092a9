"""SimCLR pre-training on small image tiles with a custom train_step; checkpoint and CSV log once an epoch."""
import json
import os
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import tensorflow as tf
import keras
from keras import layers

SIDE = 48
CROP = 40
BATCH = 64
TRAIN, VALID = 6 * BATCH, 2 * BATCH
EPOCHS = 2


def make_tiles(n, seed):
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, size=(n, 6, 6, 3)).astype(np.uint8)
    tiles = coarse.repeat(SIDE // 6, axis=1).repeat(SIDE // 6, axis=2)
    noise = rng.integers(0, 20, size=tiles.shape, dtype=np.uint8)
    return tiles // 2 + noise


def one_view(images):
    """Random crop, mirror and colour shift; uint8 until the pixels are few."""
    x = tf.image.random_crop(images, [BATCH, CROP, CROP, 3])
    flip = tf.random.uniform([BATCH, 1, 1, 1]) < 0.5
    x = tf.where(flip, tf.reverse(x, axis=[2]), x)
    gain = tf.random.uniform([BATCH, 1, 1, 3], 0.6, 1.4) / 127.5
    return tf.cast(x, tf.float32) * gain - 1.0


def pipeline(tiles, training):
    ds = tf.data.Dataset.from_tensor_slices(tiles)
    if training:
        ds = ds.shuffle(len(tiles))
    ds = ds.batch(BATCH, drop_remainder=True)
    ds = ds.map(lambda x: (one_view(x), one_view(x)), num_parallel_calls=tf.data.AUTOTUNE)
    return ds.prefetch(tf.data.AUTOTUNE)


def backbone():
    inp = keras.Input((CROP, CROP, 3))
    x = layers.Conv2D(32, 3, strides=2, padding="same", activation="relu")(inp)
    x = layers.Conv2D(64, 3, padding="same", activation="relu")(x)
    x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(128, 3, padding="same", activation="relu")(x)
    x = layers.Conv2D(128, 3, padding="same", activation="relu")(x)
    x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(256, 3, padding="same", activation="relu")(x)
    return keras.Model(inp, layers.GlobalAveragePooling2D()(x), name="backbone")


class SimCLR(keras.Model):
    def __init__(self, temperature=0.2):
        super().__init__()
        self.encoder = backbone()
        self.head = keras.Sequential([keras.Input((256,)), layers.Dense(128),
                                      layers.BatchNormalization(), layers.ReLU(), layers.Dense(64)])
        self.temperature = temperature
        self.tracker = keras.metrics.Mean(name="loss")

    @property
    def metrics(self):
        return [self.tracker]

    def call(self, x, training=False):
        return self.head(self.encoder(x, training=training), training=training)

    def nt_xent(self, a, b, training):
        z = tf.math.l2_normalize(self(tf.concat([a, b], axis=0), training=training), axis=1)
        sim = tf.matmul(z, z, transpose_b=True) / self.temperature
        sim = tf.linalg.set_diag(sim, tf.fill([2 * BATCH], -1e9))
        partner = tf.concat([tf.range(BATCH, 2 * BATCH), tf.range(BATCH)], axis=0)
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=partner, logits=sim))

    def train_step(self, data):
        with tf.GradientTape() as tape:
            loss = self.nt_xent(*data, training=True)
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        self.tracker.update_state(loss)
        return {"loss": self.tracker.result()}

    def test_step(self, data):
        self.tracker.update_state(self.nt_xent(*data, training=False))
        return {"loss": self.tracker.result()}


def main():
    keras.utils.set_random_seed(12)
    train = pipeline(make_tiles(TRAIN, 1), training=True)
    valid = pipeline(make_tiles(VALID, 2), training=False)
    model = SimCLR()
    model(tf.zeros([2 * BATCH, CROP, CROP, 3]))
    model.compile(optimizer=keras.optimizers.Adam(5e-4), jit_compile=False)
    model.fit(train.take(2), validation_data=valid.take(1), epochs=1, verbose=0)
    with tempfile.TemporaryDirectory() as out:
        callbacks = [
            keras.callbacks.ModelCheckpoint(os.path.join(out, "best.weights.h5"), save_best_only=True,
                                            save_weights_only=True, monitor="val_loss"),
            keras.callbacks.CSVLogger(os.path.join(out, "log.csv")),
        ]
        start = time.perf_counter()
        hist = model.fit(train, validation_data=valid, epochs=EPOCHS, verbose=0, callbacks=callbacks)
        seconds = time.perf_counter() - start
    print("val_loss", ["%.4f" % v for v in hist.history["val_loss"]])
    print(json.dumps({"samples": EPOCHS * TRAIN, "seconds": round(seconds, 4)}))


if __name__ == "__main__":
    main()
