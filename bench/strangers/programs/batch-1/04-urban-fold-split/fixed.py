"""Environmental sound classifier: 4 s wav files, five folds in a metadata table, log-mel CNN trained with fit."""
import csv
import json
import os
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
import keras
from keras import layers

RATE = 22050
SECONDS = 4
CLIP = RATE * SECONDS
N_MELS = 64
CLASSES = 6
N_CLIPS = 250
BATCH = 20
EPOCHS = 3
TRAIN_FOLDS = 3          # folds 1-3 train, 4 validation, 5 is the held-out test fold


def synth(label, rng):
    t = np.arange(CLIP, dtype=np.float32) / RATE
    base = 150.0 * 1.7 ** label
    sig = np.sin(2 * np.pi * base * t + 3 * np.sin(2 * np.pi * (1 + label) * t))
    sig *= np.abs(np.sin(2 * np.pi * rng.uniform(0.5, 2.0) * t))
    return (0.4 * sig + rng.normal(0, 0.08, CLIP)).astype(np.float32)


def write_corpus(root, seed=0):
    rng = np.random.default_rng(seed)
    meta = os.path.join(root, "meta.csv")
    with open(meta, "w", newline="") as fh:
        out = csv.writer(fh)
        out.writerow(["filename", "fold", "target"])
        for i in range(N_CLIPS):
            label = int(rng.integers(CLASSES))
            name = f"{i % 5 + 1}-{i:05d}-{label}.wav"
            wav = tf.audio.encode_wav(np.clip(synth(label, rng), -1, 1)[:, None], RATE)
            tf.io.write_file(os.path.join(root, name), wav)
            out.writerow([name, i % 5 + 1, label])
    return meta


def load_meta(meta):
    root = os.path.dirname(meta)
    with open(meta) as fh:
        rows = list(csv.DictReader(fh))
    files = [os.path.join(root, r["filename"]) for r in rows]
    return files, [int(r["target"]) for r in rows], [int(r["fold"]) for r in rows]


MEL = tf.constant(tf.signal.linear_to_mel_weight_matrix(N_MELS, 513, RATE, 40.0, 10000.0))


def load_clip(path):
    audio, _ = tf.audio.decode_wav(tf.io.read_file(path), desired_channels=1, desired_samples=CLIP)
    audio = tf.squeeze(audio, -1)
    shift = tf.random.uniform((), 0, RATE, tf.int32)
    audio = tf.roll(audio, shift, 0) * tf.random.uniform((), 0.7, 1.2)
    return audio


def log_mel(audio):
    spec = tf.abs(tf.signal.stft(audio, frame_length=1024, frame_step=256))
    return tf.math.log(tf.matmul(spec, MEL) + 1e-4)[..., tf.newaxis]


def make_datasets(meta):
    files, targets, folds = load_meta(meta)
    ds = tf.data.Dataset.from_tensor_slices((files, targets, folds))

    train_ds = ds.filter(lambda f, y, k: k <= TRAIN_FOLDS)
    val_ds = ds.filter(lambda f, y, k: k == TRAIN_FOLDS + 1)
    test_ds = ds.filter(lambda f, y, k: k == TRAIN_FOLDS + 2)

    def finish(d):
        d = d.map(lambda f, y, k: (load_clip(f), y), num_parallel_calls=tf.data.AUTOTUNE)
        d = d.map(lambda a, y: (log_mel(a), y), num_parallel_calls=tf.data.AUTOTUNE)
        return d.batch(BATCH).prefetch(tf.data.AUTOTUNE)

    return finish(train_ds.shuffle(150)), finish(val_ds), finish(test_ds)


def build_model(example_shape):
    return keras.Sequential([
        keras.Input(example_shape),
        layers.Conv2D(12, 5, strides=(4, 2), padding="same", activation="relu"),
        layers.Conv2D(24, 3, strides=2, padding="same", activation="relu"),
        layers.BatchNormalization(momentum=0.8),
        layers.Conv2D(48, 3, strides=2, padding="same", activation="relu"),
        layers.GlobalAveragePooling2D(),
        layers.Dense(CLASSES),
    ])


def main():
    keras.utils.set_random_seed(1)
    with tempfile.TemporaryDirectory() as root:
        train_ds, val_ds, test_ds = make_datasets(write_corpus(root))
        model = build_model((1 + (CLIP - 1024) // 256, N_MELS, 1))
        model.compile(
            optimizer=keras.optimizers.Adam(2e-3),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
        )
        model.fit(train_ds, validation_data=val_ds, epochs=1, verbose=0)

        start = time.perf_counter()
        hist = model.fit(train_ds, validation_data=val_ds, epochs=EPOCHS, verbose=0)
        seconds = time.perf_counter() - start
        test = model.evaluate(test_ds, verbose=0, return_dict=True)

    print("val", [round(v, 3) for v in hist.history["val_accuracy"]], "test", round(test["accuracy"], 3))
    n = N_CLIPS // 5 * (TRAIN_FOLDS + 1)
    print(json.dumps({"samples": EPOCHS * n, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
