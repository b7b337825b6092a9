"""Sliding windows are made by window() and flat_map(), element by element, anew in every pass."""
import harness
import numpy as np
import tensorflow as tf

LENGTH = 48
BATCH = 128
COUNT = 2560

rng = np.random.default_rng(1)
hours = np.arange(COUNT + LENGTH)
SERIES = np.stack([np.sin(hours / p) * a for p, a in ((1.98, 3.0), (3.82, 1.2), (24.0, 0.4))], 1)
SERIES = (SERIES + rng.normal(0, 0.1, SERIES.shape)).astype(np.float32)


def split(window):
    past, future = window[:-1], window[-1]
    mean = tf.reduce_mean(past, axis=0)
    std = tf.math.reduce_std(past, axis=0) + 1e-3
    return (past - mean) / std, (future - mean) / std


def pipeline():
    ds = tf.data.Dataset.from_tensor_slices(SERIES)
    ds = ds.window(LENGTH + 1, shift=1, drop_remainder=True)
    ds = ds.flat_map(lambda window: window.batch(LENGTH + 1, drop_remainder=True))
    ds = ds.map(split)
    ds = ds.repeat()
    ds = ds.shuffle(512)
    return ds.batch(BATCH)


def split_batch(windows):
    past, future = windows[:, :-1], windows[:, -1]
    mean = tf.reduce_mean(past, axis=1, keepdims=True)
    std = tf.math.reduce_std(past, axis=1, keepdims=True) + 1e-3
    return (past - mean) / std, (future - mean[:, 0]) / std[:, 0]


def made(source="window", cached=False, per_batch=False, calls=None, prefetch=False):
    if source == "starts":
        series = tf.constant(SERIES)
        ds = tf.data.Dataset.range(COUNT).repeat().shuffle(512).batch(BATCH)
        steps = tf.range(LENGTH + 1, dtype=tf.int64)
        ds = ds.map(lambda starts: split_batch(tf.gather(series, starts[:, None] + steps)), num_parallel_calls=calls)
    elif source == "table":
        past, future = split_batch(tf.signal.frame(SERIES, LENGTH + 1, 1, axis=0))
        ds = tf.data.Dataset.range(COUNT).repeat().shuffle(512).batch(BATCH)
        ds = ds.map(lambda starts: (tf.gather(past, starts), tf.gather(future, starts)), num_parallel_calls=calls)
    else:
        ds = tf.data.Dataset.from_tensor_slices(SERIES)
        ds = ds.window(LENGTH + 1, shift=1, drop_remainder=True)
        ds = ds.flat_map(lambda window: window.batch(LENGTH + 1, drop_remainder=True))
        if not per_batch:
            ds = ds.map(split, num_parallel_calls=calls)
        if cached:
            ds = ds.cache()
        ds = ds.repeat().shuffle(512).batch(BATCH)
        if per_batch:
            ds = ds.map(split_batch, num_parallel_calls=calls)
    return ds.prefetch(tf.data.AUTOTUNE) if prefetch else ds


GRID = {
    "as it is, 4 calls": lambda: made(calls=4),
    "as it is, autotuned calls, prefetch": lambda: made(calls=tf.data.AUTOTUNE, prefetch=True),
    "split per batch": lambda: made(per_batch=True),
    "cached": lambda: made(cached=True),
    "cached, prefetch": lambda: made(cached=True, prefetch=True),
    "cached windows, split per batch": lambda: made(cached=True, per_batch=True),
    "starts shuffled, windows gathered per batch": lambda: made("starts"),
    "starts shuffled, split windows gathered per batch": lambda: made("table"),
}
EPOCH = COUNT // BATCH

if __name__ == "__main__":
    harness.main(pipeline, GRID, EPOCH)
