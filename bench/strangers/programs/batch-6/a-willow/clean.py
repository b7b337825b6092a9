"""Plant-survey image regressor with a custom Keras train_step, per-epoch report and checkpointing."""
import argparse
import gc
import os
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
import keras
from keras import layers

SIDE = 64
BATCH = 32
EPOCH_STEPS = 30
AUTOTUNE = tf.data.AUTOTUNE


def make_plots(n, seed):
    rng = np.random.default_rng(seed)
    cover = rng.random(n).astype(np.float32)
    images = rng.integers(0, 160, (n, SIDE, SIDE, 3), dtype=np.uint8)
    green = rng.random((n, SIDE, SIDE)) < cover[:, None, None]
    images[..., 1][green] = 220
    return images, cover[:, None]


def region_weight(labels):
    return np.where(labels > 0.8, 1.5, 1.0).astype(np.float32)


def to_batch(images, labels):
    images = tf.cast(images, tf.float32) / 255.0
    flip = tf.random.uniform([]) > 0.5
    images = tf.cond(flip, lambda: tf.reverse(images, axis=[2]), lambda: images)
    weight = tf.numpy_function(region_weight, [labels], tf.float32)
    weight.set_shape(labels.shape)
    return images, labels, weight


def train_data(images, labels):
    ds = tf.data.Dataset.from_tensor_slices((images, labels))
    ds = ds.cache().shuffle(512, reshuffle_each_iteration=True).repeat()
    ds = ds.batch(BATCH, drop_remainder=True)
    return ds.map(to_batch, num_parallel_calls=AUTOTUNE).prefetch(AUTOTUNE)


class CoverModel(keras.Model):
    def __init__(self, net, **kw):
        super().__init__(**kw)
        self.net = net
        self.grad_norm = keras.metrics.Mean(name="grad_norm")
        self.loss_mean = keras.metrics.Mean(name="loss")
        self.mae = keras.metrics.MeanAbsoluteError(name="mae")
        self.traces = 0

    @property
    def metrics(self):
        return [self.loss_mean, self.grad_norm, self.mae]

    def call(self, x, training=False):
        return self.net(x, training=training)

    def train_step(self, data):
        self.traces += 1
        print("building train step for", data[0].shape)
        x, y, w = data
        with tf.GradientTape(persistent=True) as tape:
            pred = self(x, training=True)
            loss = tf.reduce_mean(w * tf.square(pred - y))
        grads = tape.gradient(loss, self.trainable_variables)
        del tape
        for g, v in zip(grads, self.trainable_variables):
            tf.debugging.assert_shapes([(g, v.shape)])
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        self.grad_norm.update_state(tf.linalg.global_norm(grads))
        self.loss_mean.update_state(loss)
        self.mae.update_state(y, pred)
        return {m.name: m.result() for m in self.metrics}

    def test_step(self, data):
        x, y = data
        pred = self(x, training=False)
        self.loss_mean.update_state(tf.reduce_mean(tf.square(pred - y)))
        self.mae.update_state(y, pred)
        return {"loss": self.loss_mean.result(), "mae": self.mae.result()}


def build_net():
    inp = keras.Input((SIDE, SIDE, 3))
    x = inp
    for width in (24, 48, 72):
        x = layers.Conv2D(width, 3, padding="same", activation="relu")(x)
        x = layers.Conv2D(width, 3, strides=2, padding="same", activation="relu")(x)
    x = layers.GlobalAveragePooling2D()(x)
    x = layers.Lambda(lambda t: t * 1.0)(x)
    return keras.Model(inp, layers.Dense(1, activation="sigmoid")(x))


class EpochReport(keras.callbacks.Callback):
    def __init__(self, probe):
        super().__init__()
        self.probe = probe
        self.times = []
        self.last = None

    def on_epoch_begin(self, epoch, logs=None):
        self.last = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        now = time.perf_counter()
        self.times.append(now - self.last)
        self.last = now

    def on_epoch_end(self, epoch, logs=None):
        for image in self.probe[:3]:
            self.model(image[None], training=False).numpy()
        total = sum(float(np.abs(w).sum()) for w in self.model.get_weights())
        gc.collect()
        print(f"epoch {epoch + 1} weight mass {total:.1f}")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=6)
    args = ap.parse_args()
    t0 = time.perf_counter()
    keras.backend.clear_session()
    keras.utils.set_random_seed(31)
    images, labels = make_plots(BATCH * EPOCH_STEPS, seed=1)
    vx, vy = make_plots(96, seed=2)
    vx = vx.astype(np.float32) / 255.0
    model = CoverModel(build_net())
    model.compile(optimizer=keras.optimizers.Adam(2e-3))
    report = EpochReport(vx)
    with tempfile.TemporaryDirectory() as tmp:
        saver = keras.callbacks.ModelCheckpoint(os.path.join(tmp, "e{epoch:02d}.weights.h5"),
                                                save_weights_only=True)
        model.fit(train_data(images, labels), steps_per_epoch=EPOCH_STEPS, epochs=args.epochs, verbose=2,
                  validation_data=(vx, vy), validation_batch_size=96, callbacks=[report, saver])
        print(len(os.listdir(tmp)), "checkpoints,", model.traces, "trace(s)")
    t = report.times
    print(f"steps={len(t)} mean_step={np.mean(t):.4f} median_step={np.median(t):.4f} "
          f"wall={time.perf_counter() - t0:.1f} cpu={time.process_time():.1f}")


if __name__ == "__main__":
    main()
