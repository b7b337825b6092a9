"""Small wav files are read and transformed in every pass before those of other kinds are dropped; no prefetch."""
import atexit
import os
import shutil
import tempfile

import harness
import numpy as np
import tensorflow as tf

BATCH = 16
KINDS = ["crow", "finch", "gull", "heron", "owl", "robin"]
WANTED = ["finch", "robin"]
SAMPLES = 4000
BINS = 129
FOLDER = tempfile.mkdtemp(prefix="bird_calls")
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)

rng = np.random.default_rng(3)
for number in range(480):
    sound = np.sin(np.arange(SAMPLES) * rng.uniform(0.1, 1.5)) * 0.5 + rng.normal(0, 0.1, SAMPLES)
    wav = tf.audio.encode_wav(np.clip(sound, -1, 1).astype(np.float32)[:, None], 16000)
    tf.io.write_file(os.path.join(FOLDER, f"{number:04d}-{KINDS[number % 6]}.wav"), wav)


def label_of(path):
    kind = tf.strings.regex_replace(path, r".*-(\w+)\.wav", r"\1")
    return tf.argmax(tf.cast(tf.equal(kind, KINDS), tf.int32))


def load(path):
    sound, _ = tf.audio.decode_wav(tf.io.read_file(path), desired_channels=1, desired_samples=SAMPLES)
    return sound[:, 0], label_of(path)


def spectrogram(sound, label):
    stft = tf.signal.stft(sound, frame_length=256, frame_step=128)
    return tf.math.log(tf.abs(stft) + 1e-3), label


def wanted(_, label):
    return tf.reduce_any([label == KINDS.index(kind) for kind in WANTED])


def mask(spec, label):
    start = tf.random.uniform([], 0, BINS - 16, tf.int32)
    bins = tf.range(BINS)
    hidden = (bins >= start) & (bins < start + 16)
    return tf.where(hidden, 0.0, spec), label


def pipeline():
    return (
        tf.data.Dataset.list_files(FOLDER + "/*.wav")
        .map(load)
        .map(spectrogram)
        .filter(wanted)
        .map(mask)
        .batch(BATCH)
        .repeat()
    )


def mask_batch(specs, labels):
    start = tf.random.uniform([tf.shape(specs)[0], 1, 1], 0, BINS - 16, tf.int32)
    bins = tf.range(BINS)
    hidden = (bins >= start) & (bins < start + 16)
    return tf.where(hidden, 0.0, specs), labels


def made(filtered="late", cached=None, masked="sound", calls=None, prefetch=False):
    """``cached``: "sounds" or "spectrograms", shuffled after."""
    ds = tf.data.Dataset.list_files(FOLDER + "/*.wav", shuffle=not cached)
    if filtered == "paths":
        ds = ds.filter(lambda path: wanted(None, label_of(path)))
    ds = ds.map(load, num_parallel_calls=calls)
    if filtered == "sounds":
        ds = ds.filter(wanted)
    if cached == "sounds":
        ds = ds.cache().shuffle(480)
    ds = ds.map(spectrogram, num_parallel_calls=calls)
    if filtered == "late":
        ds = ds.filter(wanted)
    if cached == "spectrograms":
        ds = ds.cache().shuffle(480)
    if masked == "sound":
        ds = ds.map(mask, num_parallel_calls=calls)
    ds = ds.batch(BATCH)
    if masked == "batch":
        ds = ds.map(mask_batch, num_parallel_calls=calls)
    ds = ds.repeat()
    return ds.prefetch(tf.data.AUTOTUNE) if prefetch else ds


GRID = {
    "as it is, 4 calls": lambda: made(calls=4),
    "as it is, autotuned calls, prefetch": lambda: made(calls=tf.data.AUTOTUNE, prefetch=True),
    "paths filtered": lambda: made("paths"),
    "paths filtered, autotuned calls, prefetch": lambda: made("paths", calls=tf.data.AUTOTUNE, prefetch=True),
    "paths filtered, sounds cached, prefetch": lambda: made("paths", "sounds", prefetch=True),
    "paths filtered, spectrograms cached": lambda: made("paths", "spectrograms"),
    "paths filtered, spectrograms cached, prefetch": lambda: made("paths", "spectrograms", prefetch=True),
    "paths filtered, spectrograms cached, masked per batch, prefetch":
        lambda: made("paths", "spectrograms", "batch", prefetch=True),
}
EPOCH = 160 // BATCH

if __name__ == "__main__":
    harness.main(pipeline, GRID, EPOCH, device_s=0.004)
