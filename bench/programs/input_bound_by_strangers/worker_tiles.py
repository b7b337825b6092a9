"""A worker augments the tiles of all the workers, one by one, and takes its own share afterwards."""
import harness
import numpy as np
import tensorflow as tf

BATCH = 32
WORKERS, WORKER = 4, 1
SIZE = 48

rng = np.random.default_rng(7)
TILES = rng.integers(0, 256, (1024, SIZE, SIZE, 1)).astype(np.uint8)
COVER = rng.integers(0, 9, 1024).astype(np.int64)
line = np.array([1, 4, 6, 4, 1], np.float32) / 16
KERNEL = (line[:, None] * line)[:, :, None, None]


def augment(tile, cover):
    tile = tf.cast(tile, tf.float32) / 255
    tile += tf.random.normal(tf.shape(tile), stddev=0.05)
    tile = tf.clip_by_value(tile, 0.0, 1.0)
    tile = tf.nn.conv2d(tile[None], KERNEL, 1, "SAME")[0]
    return tile, tf.one_hot(cover, 9)


def pipeline():
    ds = tf.data.Dataset.from_tensor_slices((TILES, COVER))
    ds = ds.map(augment, num_parallel_calls=tf.data.AUTOTUNE)
    ds = ds.shard(WORKERS, WORKER)
    ds = ds.shuffle(64)
    ds = ds.batch(BATCH)
    ds = ds.repeat()
    return ds.prefetch(tf.data.AUTOTUNE)


def augment_batch(tiles, cover):
    tiles = tf.cast(tiles, tf.float32) / 255
    tiles += tf.random.normal(tf.shape(tiles), stddev=0.05)
    tiles = tf.clip_by_value(tiles, 0.0, 1.0)
    tiles = tf.nn.conv2d(tiles, KERNEL, 1, "SAME")
    return tiles, tf.one_hot(cover, 9)


def made(sharded="late", augmented="early", calls=tf.data.AUTOTUNE, prefetch=True):
    """``augmented``: "early", "shuffled" (after the shuffle) or "batch"."""
    ds = tf.data.Dataset.from_tensor_slices((TILES, COVER))
    if sharded == "first":
        ds = ds.shard(WORKERS, WORKER)
    if augmented == "early":
        ds = ds.map(augment, num_parallel_calls=calls)
    if sharded == "late":
        ds = ds.shard(WORKERS, WORKER)
    ds = ds.shuffle(64)
    if augmented == "shuffled":
        ds = ds.map(augment, num_parallel_calls=calls)
    ds = ds.batch(BATCH)
    if augmented == "batch":
        ds = ds.map(augment_batch, num_parallel_calls=calls)
    ds = ds.repeat()
    return ds.prefetch(tf.data.AUTOTUNE) if prefetch else ds


GRID = {
    "as it is, no calls": lambda: made(calls=None),
    "as it is, 4 calls": lambda: made(calls=4),
    "sharded first": lambda: made("first"),
    "sharded first, no calls": lambda: made("first", calls=None),
    "sharded first, augmented after the shuffle": lambda: made("first", "shuffled"),
    "sharded first, augmented per batch": lambda: made("first", "batch"),
    "sharded first, augmented per batch, no calls": lambda: made("first", "batch", calls=None),
    "sharded first, augmented per batch, no calls, no prefetch": lambda: made("first", "batch", None, False),
}
EPOCH = 256 // BATCH

if __name__ == "__main__":
    harness.main(pipeline, GRID, EPOCH)
