"""Multi-label risk model on tabular TFRecords, trained with Keras fit."""
import argparse
import os
import pathlib
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
import keras
from keras import layers

NUMERIC = [f"num_{i:02d}" for i in range(24)]
CATEGORICAL = {f"cat_{i:02d}": 200 * (i + 1) for i in range(8)}
LABELS = 10
BATCH = 1024
ROWS = BATCH * 20
SHARDS = 4
AUTOTUNE = tf.data.AUTOTUNE


def write_shards(root, seed):
    rng = np.random.default_rng(seed)
    num = rng.normal(size=(ROWS, len(NUMERIC))).astype(np.float32)
    cats = {k: rng.integers(0, size, ROWS) for k, size in CATEGORICAL.items()}
    w = rng.normal(size=(len(NUMERIC), LABELS)) * 0.5
    prob = 1.0 / (1.0 + np.exp(-(num @ w - 1.5)))
    labels = (rng.random(prob.shape) < prob).astype(np.float32)
    files = []
    for s in range(SHARDS):
        path = str(root / f"part-{s:02d}.tfrecord")
        with tf.io.TFRecordWriter(path) as out:
            for i in range(s, ROWS, SHARDS):
                feature = {k: tf.train.Feature(float_list=tf.train.FloatList(value=[num[i, j]]))
                           for j, k in enumerate(NUMERIC)}
                for k, v in cats.items():
                    feature[k] = tf.train.Feature(int64_list=tf.train.Int64List(value=[v[i]]))
                feature["labels"] = tf.train.Feature(float_list=tf.train.FloatList(value=labels[i]))
                out.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
        files.append(path)
    return files


SPEC = {k: tf.io.FixedLenFeature([], tf.float32) for k in NUMERIC}
SPEC.update({k: tf.io.FixedLenFeature([], tf.int64) for k in CATEGORICAL})
SPEC["labels"] = tf.io.FixedLenFeature([LABELS], tf.float32)


def parse(serialized):
    row = tf.io.parse_example(serialized, SPEC)
    labels = row.pop("labels")
    dense = tf.stack([row[k] for k in NUMERIC], axis=-1)
    cats = tf.stack([row[k] for k in CATEGORICAL], axis=-1)
    return {"dense": tf.clip_by_value(dense, -5.0, 5.0), "cats": cats}, labels


def dataset(files):
    ds = tf.data.Dataset.from_tensor_slices(files)
    ds = ds.interleave(tf.data.TFRecordDataset, cycle_length=SHARDS, block_length=64,
                       num_parallel_calls=AUTOTUNE)
    ds = ds.repeat().shuffle(4096)
    ds = ds.batch(BATCH, drop_remainder=True)
    ds = ds.map(parse, num_parallel_calls=AUTOTUNE)
    return ds.prefetch(AUTOTUNE)


def build_model():
    dense = keras.Input((len(NUMERIC),), name="dense_in")
    cats = keras.Input((len(CATEGORICAL),), dtype="int64", name="cats_in")
    parts = [layers.BatchNormalization()(dense)]
    for i, size in enumerate(CATEGORICAL.values()):
        parts.append(layers.Embedding(size, 8)(cats[:, i]))
    x = layers.Concatenate()(parts)
    for width in (512, 256, 128):
        x = layers.Dense(width, activation="relu")(x)
        x = layers.Dropout(0.1)(x)
    out = layers.Dense(LABELS, activation="sigmoid")(x)
    return keras.Model({"dense": dense, "cats": cats}, out)


def risk_metrics():
    return [
        keras.metrics.AUC(num_thresholds=500, curve="PR", name="pr"),
        keras.metrics.BinaryAccuracy(threshold=0.5, name="acc"),
        keras.metrics.Precision(thresholds=0.8, name="p80"),
    ]


class StepClock(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.times = []
        self.last = None

    def on_epoch_begin(self, epoch, logs=None):
        self.last = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        now = time.perf_counter()
        self.times.append(now - self.last)
        self.last = now


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=14)
    args = ap.parse_args()
    t0 = time.perf_counter()
    keras.utils.set_random_seed(8)
    with tempfile.TemporaryDirectory() as tmp:
        files = write_shards(pathlib.Path(tmp), seed=4)
        setup = time.perf_counter() - t0
        model = build_model()
        model.compile(optimizer=keras.optimizers.Adam(2e-3), loss="binary_crossentropy",
                      metrics=risk_metrics())
        clock = StepClock()
        model.fit(dataset(files), steps_per_epoch=25, epochs=args.epochs, verbose=2,
                  callbacks=[clock, keras.callbacks.TerminateOnNaN(),
                             keras.callbacks.ReduceLROnPlateau(monitor="loss", patience=3)])
        model.save(os.path.join(tmp, "risk.keras"))
    t = clock.times
    print(f"steps={len(t)} mean_step={np.mean(t):.4f} median_step={np.median(t):.4f} setup={setup:.1f} "
          f"wall={time.perf_counter() - t0:.1f} cpu={time.process_time():.1f}")


if __name__ == "__main__":
    main()
