"""Keyword spotting on one-second clips (speech commands), log-mel features in tf.data and a small convolution network."""
import json
import os
import shutil
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

RATE = 16000
WORDS = ["yes", "no", "up", "down", "left", "right", "on", "off"]
CLIPS_PER_WORD = 120
VAL_CLIPS_PER_WORD = 12
BATCH = 32
STEPS_PER_EPOCH = 25
EPOCHS = 9
WARMUP_EPOCHS = 2
MELS = 40
FRAME, HOP, FFT = 480, 160, 512


def synth_word(label, rng):
    t = np.arange(RATE) / RATE
    base = 110 * (1 + 0.15 * label) * rng.uniform(0.9, 1.1)
    sweep = base * (1 + (0.3 if label % 2 else -0.3) * t)
    phase = 2 * np.pi * np.cumsum(sweep) / RATE
    voice = sum(np.sin(k * phase) / (k + (k * label) % 5) for k in range(1, 6))
    envelope = np.exp(-((t - rng.uniform(0.35, 0.65)) / 0.18) ** 2)
    return (0.2 * voice * envelope + 0.02 * rng.standard_normal(RATE)).astype(np.float32)


def write_corpus(root, seed=0):
    rng = np.random.default_rng(seed)
    for split, per_word in (("train", CLIPS_PER_WORD), ("val", VAL_CLIPS_PER_WORD)):
        for label, word in enumerate(WORDS):
            folder = os.path.join(root, split, word)
            os.makedirs(folder)
            for i in range(per_word):
                wav = tf.audio.encode_wav(synth_word(label, rng)[:, None], RATE)
                tf.io.write_file(os.path.join(folder, f"{i:05d}_nohash_0.wav"), wav)


def list_clips(root, split, seed=1):
    paths, labels = [], []
    for label, word in enumerate(WORDS):
        folder = os.path.join(root, split, word)
        for name in sorted(os.listdir(folder)):
            paths.append(os.path.join(folder, name))
            labels.append(label)
    order = np.random.default_rng(seed).permutation(len(paths))
    return np.array(paths)[order], np.array(labels, np.int32)[order]


MEL_MATRIX = tf.signal.linear_to_mel_weight_matrix(MELS, FFT // 2 + 1, RATE, 60.0, 7600.0)


def features(path, label):
    audio, _ = tf.audio.decode_wav(tf.io.read_file(path), desired_channels=1, desired_samples=RATE)
    stft = tf.signal.stft(audio[:, 0], FRAME, HOP, FFT)
    mel = tf.matmul(tf.abs(stft), MEL_MATRIX)
    log_mel = tf.math.log(mel + 1e-6)
    log_mel = (log_mel - tf.reduce_mean(log_mel)) / (tf.math.reduce_std(log_mel) + 1e-5)
    return log_mel[..., tf.newaxis], label


def mask_bands(batch, labels):
    n = tf.shape(batch)[0]
    start = tf.random.uniform((n, 1), 0, MELS - 6, dtype=tf.int32)
    band = tf.range(MELS)[tf.newaxis]
    keep = tf.cast((band < start) | (band >= start + 6), tf.float32)
    return batch * keep[:, tf.newaxis, :, tf.newaxis], labels


def training_set(root):
    ds = tf.data.Dataset.from_tensor_slices(list_clips(root, "train"))
    ds = ds.map(features, num_parallel_calls=tf.data.AUTOTUNE)
    ds = ds.cache()
    ds = ds.shuffle(128, seed=4).repeat()
    ds = ds.batch(BATCH, drop_remainder=True).map(mask_bands)
    return ds.prefetch(tf.data.AUTOTUNE)


def validation_set(root):
    ds = tf.data.Dataset.from_tensor_slices(list_clips(root, "val"))
    return ds.map(features, num_parallel_calls=tf.data.AUTOTUNE).batch(BATCH).cache().prefetch(tf.data.AUTOTUNE)


def build_model():
    frames = 1 + (RATE - FRAME) // HOP
    inputs = keras.Input((frames, MELS, 1))
    x = keras.layers.Conv2D(16, (8, 4), strides=(4, 2), padding="same", activation="relu")(inputs)
    x = keras.layers.Conv2D(32, 3, strides=2, padding="same", activation="relu")(x)
    x = keras.layers.Conv2D(32, 3, padding="same", activation="relu")(x)
    x = keras.layers.GlobalAveragePooling2D()(x)
    outputs = keras.layers.Dense(len(WORDS))(keras.layers.Dropout(0.2)(x))
    model = keras.Model(inputs, outputs)
    model.compile(optimizer=keras.optimizers.Adam(1e-3), jit_compile=False,
                  loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return model


class EpochClock(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        now = time.perf_counter()
        if epoch == WARMUP_EPOCHS - 1:
            self.start = now
        elif epoch >= WARMUP_EPOCHS:
            self.seconds = now - self.start


def main():
    keras.utils.set_random_seed(9)
    root = tempfile.mkdtemp(prefix="speech_")
    try:
        write_corpus(root)
        clock = EpochClock()
        model = build_model()
        history = model.fit(training_set(root), validation_data=validation_set(root),
                            epochs=EPOCHS, steps_per_epoch=STEPS_PER_EPOCH, callbacks=[clock], verbose=2)
        print("val accuracy", round(history.history["val_accuracy"][-1], 3))
    finally:
        shutil.rmtree(root, ignore_errors=True)
    samples = (EPOCHS - WARMUP_EPOCHS) * STEPS_PER_EPOCH * BATCH
    print(json.dumps({"samples": samples, "seconds": round(clock.seconds, 3)}))


if __name__ == "__main__":
    main()
