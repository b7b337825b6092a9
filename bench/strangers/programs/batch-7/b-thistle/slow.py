"""Click and purchase model of an ad log: TFRecord shards, two heads, purchase weight rising per round."""
import json
import os
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
import tensorflow as tf
from keras import layers

DENSE = [f"n{i:02d}" for i in range(20)]
SPARSE = {f"c{i:02d}": 200 * (i + 1) for i in range(12)}
BATCH = 384
STEPS_PER_ROUND = 150
ROUNDS = 5
SHARDS = 2


def write_shards(folder, rows, seed=0):
    rng = np.random.default_rng(seed)
    paths = [os.path.join(folder, f"log-{i:03d}.tfrecord") for i in range(SHARDS)]
    writers = [tf.io.TFRecordWriter(p) for p in paths]
    numbers = rng.gamma(1.5, 2.0, (rows, len(DENSE)))
    cats = {k: rng.integers(0, v, rows) for k, v in SPARSE.items()}
    click = (rng.random(rows) < 0.1 + 0.2 * (numbers[:, 0] > 3)).astype(int)
    buy = click * (rng.random(rows) < 0.3)
    for row in range(rows):
        feature = {k: tf.train.Feature(float_list=tf.train.FloatList(value=[numbers[row, i]])) for i, k in enumerate(DENSE)}
        feature.update({k: tf.train.Feature(int64_list=tf.train.Int64List(value=[int(c[row])])) for k, c in cats.items()})
        feature["click"] = tf.train.Feature(int64_list=tf.train.Int64List(value=[int(click[row])]))
        feature["buy"] = tf.train.Feature(int64_list=tf.train.Int64List(value=[int(buy[row])]))
        example = tf.train.Example(features=tf.train.Features(feature=feature))
        writers[row % SHARDS].write(example.SerializeToString())
    for writer in writers:
        writer.close()
    return paths


SPEC = {k: tf.io.FixedLenFeature([1], tf.float32) for k in DENSE}
SPEC.update({k: tf.io.FixedLenFeature([1], tf.int64) for k in SPARSE})
SPEC.update({k: tf.io.FixedLenFeature([1], tf.int64) for k in ("click", "buy")})


def to_inputs(row):
    dense = tf.concat([tf.math.log1p(row[k]) for k in DENSE], axis=-1)
    sparse = tf.concat([row[k] for k in SPARSE], axis=-1)
    labels = {k: tf.cast(row[k], tf.float32) for k in ("click", "buy")}
    return {"numbers": dense, "codes": sparse}, labels


def make_dataset(paths):
    files = tf.data.Dataset.from_tensor_slices(paths)
    data = files.interleave(tf.data.TFRecordDataset, cycle_length=SHARDS, deterministic=False)
    data = data.shuffle(4 * BATCH, seed=1).repeat()
    data = data.map(lambda r: to_inputs(tf.io.parse_single_example(r, SPEC)), num_parallel_calls=tf.data.AUTOTUNE)
    data = data.batch(BATCH, drop_remainder=True)
    return data.prefetch(2)


def cross_layer(x0, x):
    return layers.Add()([layers.Multiply()([x0, layers.Dense(x0.shape[-1])(x)]), x])


def build_model():
    dense = keras.Input((len(DENSE),), name="numbers")
    sparse = keras.Input((len(SPARSE),), dtype="int64", name="codes")
    parts = [layers.BatchNormalization()(dense)]
    for i, size in enumerate(SPARSE.values()):
        parts.append(layers.Embedding(size, 8)(sparse[:, i]))
    x0 = layers.Concatenate()(parts)
    x = x0
    for _ in range(2):
        x = cross_layer(x0, x)
    deep = x0
    for units in (128, 64):
        deep = layers.Dropout(0.1)(layers.Dense(units, activation="relu")(deep))
    x = layers.Concatenate()([x, deep])
    click = layers.Dense(1, activation="sigmoid", name="click")(layers.Dense(32, activation="relu")(x))
    buy = layers.Dense(1, activation="sigmoid", name="buy")(layers.Dense(32, activation="relu")(x))
    return keras.Model({"numbers": dense, "codes": sparse}, {"click": click, "buy": buy})


def buy_weight(number):
    return 0.1 + 0.9 * min(1.0, number / (ROUNDS - 1))


class RoundLog(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.rows = []

    def on_epoch_end(self, epoch, logs=None):
        row = {k: float(v) for k, v in (logs or {}).items()}
        row["lr"] = float(keras.ops.convert_to_numpy(self.model.optimizer.learning_rate))
        self.rows.append(row)
        print(f"round {epoch} loss {row['loss']:.4f} lr {row['lr']:.5f}")


def train(model, data):
    schedule = keras.optimizers.schedules.CosineDecay(2e-3, ROUNDS * STEPS_PER_ROUND, alpha=0.1)
    optimizer = keras.optimizers.Adam(schedule, clipnorm=5.0)
    log = RoundLog()
    started = None
    for number in range(ROUNDS):
        if number == 1:
            started = time.perf_counter()
        model.compile(
            optimizer=optimizer,
            loss={"click": "binary_crossentropy", "buy": "binary_crossentropy"},
            loss_weights={"click": 1.0, "buy": buy_weight(number)},
            metrics={"click": [keras.metrics.AUC(name="auc")], "buy": [keras.metrics.AUC(name="auc")]},
        )
        model.fit(
            data,
            steps_per_epoch=STEPS_PER_ROUND,
            initial_epoch=number,
            epochs=number + 1,
            callbacks=[log, keras.callbacks.TerminateOnNaN()],
            shuffle=False,
            verbose=0,
        )
    return (ROUNDS - 1) * STEPS_PER_ROUND, time.perf_counter() - started, log.rows


def main():
    begun = time.perf_counter()
    keras.utils.set_random_seed(0)
    tf.config.threading.set_intra_op_parallelism_threads(2)
    with tempfile.TemporaryDirectory() as folder:
        paths = write_shards(folder, 26 * BATCH)
        model = build_model()
        print(f"{model.count_params():,} parameters, written after {time.perf_counter() - begun:.1f} s")
        units, seconds, rows = train(model, make_dataset(paths))
        model.save(os.path.join(folder, "ads.keras"))
    print(f"last loss {rows[-1]['loss']:.4f}")
    print(json.dumps({"units": units, "seconds": round(seconds, 4), "wall": round(time.perf_counter() - begun, 3)}))


if __name__ == "__main__":
    main()
