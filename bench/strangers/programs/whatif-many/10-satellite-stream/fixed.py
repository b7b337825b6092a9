"""Cloud masks from satellite tiles: tiles are streamed from the object store, one random tile and crop per sample."""
import json
import time
import zlib

import keras
import numpy as np
import tensorflow as tf
from keras import layers

TILE = 96
CROP = 64
BANDS = 4
BATCH = 16
STEPS_PER_EPOCH = 24
EPOCHS = 6


class ObjectStore:
    """Stands for the bucket client: compressed tiles and the round trip to the other region."""

    def __init__(self, tiles=120, round_trip=0.012, seed=31):
        rng = np.random.default_rng(seed)
        self.round_trip = round_trip
        self.objects = {}
        for i in range(tiles):
            scene = rng.normal(0, 1, (TILE // 8, TILE // 8, BANDS))
            scene = np.kron(scene, np.ones((8, 8, 1)))
            mask = (scene.mean(-1) > 0.2).astype("float32")
            scene = scene + mask[..., None] * 0.8 + rng.normal(0, 0.2, scene.shape)
            tile = np.concatenate([scene, mask[..., None]], -1).astype("float16")
            self.objects[f"tiles/{i:05d}"] = zlib.compress(tile.tobytes(), 1)

    def get(self, key):
        time.sleep(self.round_trip)
        return self.objects[key]

    def keys(self):
        return sorted(self.objects)


STORE = ObjectStore()


def download(key):
    raw = zlib.decompress(STORE.get(key.decode()))
    return np.frombuffer(raw, "float16").reshape(TILE, TILE, BANDS + 1).astype("float32")


def fetch_tile(key):
    tile = tf.numpy_function(download, [key], tf.float32)
    return tf.ensure_shape(tile, (TILE, TILE, BANDS + 1))


def crop_and_flip(tile):
    tile = tf.image.random_crop(tile, (CROP, CROP, BANDS + 1))
    tile = tf.image.random_flip_left_right(tile)
    return tile[..., :BANDS], tile[..., BANDS:]


def pipeline_options():
    options = tf.data.Options()
    options.deterministic = False
    options.threading.private_threadpool_size = 16
    return options


def make_dataset(keys):
    ds = tf.data.Dataset.from_tensor_slices(keys).shuffle(len(keys), seed=3).repeat()
    ds = ds.map(fetch_tile, num_parallel_calls=16)
    ds = ds.map(crop_and_flip, num_parallel_calls=tf.data.AUTOTUNE)
    ds = ds.batch(BATCH, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
    return ds.with_options(pipeline_options())


def down(x, filters):
    x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
    return x, layers.MaxPooling2D()(x)


def up(x, skip, filters):
    x = layers.Concatenate()([layers.UpSampling2D()(x), skip])
    return layers.Conv2D(filters, 3, padding="same", activation="relu")(x)


def build_unet():
    inp = keras.Input((CROP, CROP, BANDS))
    s1, x = down(inp, 8)
    s2, x = down(x, 12)
    x = layers.Conv2D(16, 3, padding="same", activation="relu")(x)
    x = up(x, s2, 12)
    x = up(x, s1, 8)
    return keras.Model(inp, layers.Conv2D(1, 1, activation="sigmoid")(x))


class Clock(keras.callbacks.Callback):
    seconds = 0.0

    def on_epoch_begin(self, epoch, logs=None):
        self.t0 = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        if epoch > 0:
            self.seconds += time.perf_counter() - self.t0


def main():
    keras.utils.set_random_seed(6)
    model = build_unet()
    model.compile(keras.optimizers.Adam(2e-3), "binary_crossentropy", metrics=["accuracy"])
    clock = Clock()
    hist = model.fit(
        make_dataset(STORE.keys()),
        steps_per_epoch=STEPS_PER_EPOCH,
        epochs=EPOCHS,
        callbacks=[clock],
        verbose=0,
    )
    print("accuracy", [round(a, 3) for a in hist.history["accuracy"]])
    samples = (EPOCHS - 1) * STEPS_PER_EPOCH * BATCH
    print(json.dumps({"samples": samples, "seconds": round(clock.seconds, 3)}))


if __name__ == "__main__":
    main()
