"""Compressed records go through three maps one by one while the device waits: tf.data's tuning is off, prefetch absent."""
import atexit
import os
import shutil
import tempfile

import harness
import numpy as np
import tensorflow as tf

BATCH = 64
COUNT = 1536
POINTS = 128
FOLDER = tempfile.mkdtemp(prefix="ride_logs")
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)

rng = np.random.default_rng(9)
FILES = [os.path.join(FOLDER, f"rides-{part}.gz") for part in range(8)]
for name in FILES:
    with tf.io.TFRecordWriter(name, "GZIP") as writer:
        for _ in range(COUNT // 8):
            track = np.cumsum(rng.integers(-9, 10, (POINTS, 2)), 0).astype("<i2")
            writer.write(tf.train.Example(features=tf.train.Features(feature={
                "track": tf.train.Feature(bytes_list=tf.train.BytesList(value=[track.tobytes()])),
                "fare": tf.train.Feature(float_list=tf.train.FloatList(value=[rng.gamma(3, 4)])),
            })).SerializeToString())
SPEC = {"track": tf.io.FixedLenFeature([], tf.string), "fare": tf.io.FixedLenFeature([], tf.float32)}


def opened(name):
    return tf.data.TFRecordDataset(name, compression_type="GZIP")


def parse(record):
    parsed = tf.io.parse_single_example(record, SPEC)
    return parsed["track"], parsed["fare"]


def decode(track, fare):
    track = tf.reshape(tf.io.decode_raw(track, tf.int16), [POINTS, 2])
    return tf.cast(track, tf.float32) / 1000, fare


def features(track, fare):
    moves = track[1:] - track[:-1]
    lengths = tf.sqrt(tf.reduce_sum(moves * moves, axis=-1) + 1e-9)
    turns = tf.atan2(moves[:, 1], moves[:, 0])
    return tf.stack([lengths, tf.cumsum(lengths), turns], axis=-1), fare


UNTUNED = tf.data.Options()
UNTUNED.autotune.enabled = False


def pipeline():
    files = tf.data.Dataset.from_tensor_slices(FILES).shuffle(len(FILES))
    rides = files.interleave(opened, cycle_length=4)
    rides = rides.shuffle(512).map(parse).map(decode).map(features)
    rides = rides.batch(BATCH, drop_remainder=True)
    return rides.repeat().with_options(UNTUNED)


def ride(record):
    return features(*decode(*parse(record)))


def ride_batch(records):
    parsed = tf.io.parse_example(records, SPEC)
    tracks = tf.reshape(tf.io.decode_raw(parsed["track"], tf.int16), [-1, POINTS, 2])
    tracks = tf.cast(tracks, tf.float32) / 1000
    moves = tracks[:, 1:] - tracks[:, :-1]
    lengths = tf.sqrt(tf.reduce_sum(moves * moves, axis=-1) + 1e-9)
    turns = tf.atan2(moves[..., 1], moves[..., 0])
    return tf.stack([lengths, tf.cumsum(lengths, axis=1), turns], axis=-1), parsed["fare"]


def made(readers=None, cached=None, per_batch=False, calls=None, prefetch=0, maps=1, tuned=False):
    """``cached``: "records" or "rides"; the files are shuffled still, by a shuffle of all the records."""
    files = tf.data.Dataset.from_tensor_slices(FILES)
    if cached is None:
        files = files.shuffle(len(FILES))
    ds = files.interleave(opened, cycle_length=4, num_parallel_calls=readers)
    if cached == "records":
        ds = ds.cache()
    if cached == "rides":
        ds = ds.map(ride, num_parallel_calls=calls).cache()
    ds = ds.shuffle(COUNT if cached else 512)
    if cached != "rides" and not per_batch:
        for function in [ride] if maps == 1 else [parse, decode, features]:
            ds = ds.map(function, num_parallel_calls=calls)
    ds = ds.batch(BATCH, drop_remainder=True)
    if per_batch:
        ds = ds.map(ride_batch, num_parallel_calls=calls)
    ds = ds.repeat()
    ds = ds.prefetch(prefetch) if prefetch else ds
    return ds if tuned else ds.with_options(UNTUNED)


GRID = {
    "as it is, 4 readers and calls": lambda: made(4, calls=4, maps=3),
    "as it is, tuned, autotuned readers and calls":
        lambda: made(tf.data.AUTOTUNE, calls=tf.data.AUTOTUNE, maps=3, tuned=True),
    "as it is, prefetch": lambda: made(prefetch=2, maps=3),
    "one map, prefetch": lambda: made(prefetch=2),
    "rides made per batch": lambda: made(per_batch=True),
    "rides made per batch, prefetch": lambda: made(per_batch=True, prefetch=2),
    "rides cached": lambda: made(cached="rides"),
    "rides cached, prefetch": lambda: made(cached="rides", prefetch=2),
    "records cached, rides made per batch, prefetch": lambda: made(cached="records", per_batch=True, prefetch=2),
}
EPOCH = COUNT // BATCH

if __name__ == "__main__":
    harness.main(pipeline, GRID, EPOCH, device_s=0.005)
