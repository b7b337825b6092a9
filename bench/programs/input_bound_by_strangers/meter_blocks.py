"""Blocks of rows are taken apart, worked on row by row, and put together again, in every pass."""
import atexit
import os
import shutil
import tempfile

import harness
import numpy as np
import tensorflow as tf

BATCH = 256
ROWS = 32
WIDTH = 9
BLOCKS = 160
FOLDER = tempfile.mkdtemp(prefix="meter_blocks")
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)

rng = np.random.default_rng(8)
FILES = [os.path.join(FOLDER, f"day{day}.bin") for day in range(5)]
for name in FILES:
    rng.gamma(2, 40, (BLOCKS // 5, ROWS, WIDTH)).astype("<f4").tofile(name)


def decode(data):
    return tf.reshape(tf.io.decode_raw(data, tf.float32), [ROWS, WIDTH])


def prepare(row):
    load = tf.math.log1p(row[..., :-1])
    load -= tf.reduce_mean(load, axis=-1, keepdims=True)
    return load, row[..., -1] / 100


def jitter(load, price):
    return load + tf.random.normal(tf.shape(load), stddev=0.02), price


def pipeline():
    blocks = tf.data.FixedLengthRecordDataset(FILES, ROWS * WIDTH * 4).map(decode)
    rows = blocks.shuffle(BLOCKS).unbatch()
    rows = rows.map(prepare).map(jitter)
    return rows.batch(BATCH).repeat().prefetch(2)


def made(cached=None, prepared="row", jittered="row", joined="rows", calls=None, prefetch=True):
    """``prepared``: per "row", "batch" or "block"; ``joined``: by unbatch and batch ("rows") or by "rebatch"."""
    ds = tf.data.FixedLengthRecordDataset(FILES, ROWS * WIDTH * 4).map(decode, num_parallel_calls=calls)
    if prepared == "block":
        ds = ds.map(prepare, num_parallel_calls=calls)
    if cached == "blocks":
        ds = ds.cache()
    ds = ds.shuffle(BLOCKS)
    if joined == "rows":
        ds = ds.unbatch()
        if prepared == "row":
            ds = ds.map(prepare, num_parallel_calls=calls)
        if jittered == "row":
            ds = ds.map(jitter, num_parallel_calls=calls)
        ds = ds.batch(BATCH)
    elif joined == "rebatch":
        ds = ds.rebatch(BATCH)
    if prepared == "batch":
        ds = ds.map(prepare, num_parallel_calls=calls)
    if jittered == "batch":
        ds = ds.map(jitter, num_parallel_calls=calls)
    ds = ds.repeat()
    return ds.prefetch(2) if prefetch else ds


GRID = {
    "as it is, 2 calls": lambda: made(calls=2),
    "as it is, 8 calls": lambda: made(calls=8),
    "prepared and jittered per batch": lambda: made(None, "batch", "batch"),
    "blocks cached, the rest as it is": lambda: made("blocks"),
    "rebatched, the rest per batch": lambda: made(None, "batch", "batch", "rebatch"),
    "blocks prepared and cached, unbatched, jittered per batch": lambda: made("blocks", "block", "batch"),
    "blocks prepared and cached, rebatched, jittered per batch": lambda: made("blocks", "block", "batch", "rebatch"),
    "blocks cached, rebatched, the rest per batch": lambda: made("blocks", "batch", "batch", "rebatch"),
}
EPOCH = BLOCKS * ROWS // BATCH

if __name__ == "__main__":
    harness.main(pipeline, GRID, EPOCH)
