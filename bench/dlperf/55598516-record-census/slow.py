"""How many training records are in the shards? (needed for the learning-rate schedule)"""
import json
import pathlib
import shutil
import tempfile
import time

import numpy as np
import tensorflow as tf

SHARDS = 6
PER_SHARD = 20_000
SWEEPS = 1


def write_shards(folder):
    rng = np.random.default_rng(7)
    payload = [
        tf.train.Example(
            features=tf.train.Features(
                feature={
                    "x": tf.train.Feature(float_list=tf.train.FloatList(value=rng.random(16))),
                    "y": tf.train.Feature(int64_list=tf.train.Int64List(value=[int(rng.integers(10))])),
                }
            )
        ).SerializeToString()
        for _ in range(200)
    ]
    for s in range(SHARDS):
        with tf.io.TFRecordWriter(str(folder / f"train-{s:02d}.tfrecord")) as w:
            for i in range(PER_SHARD):
                w.write(payload[i % 200])


def count_examples(files):
    total = 0
    for path in files:
        for _ in tf.data.TFRecordDataset(path):
            total += 1
    return total


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="shards_"))
    try:
        write_shards(folder)
        files = sorted(str(p) for p in folder.glob("*.tfrecord"))
        count_examples(files[:1])
        t0 = time.perf_counter()
        n = 0
        for _ in range(SWEEPS):
            n += count_examples(files)
        seconds = time.perf_counter() - t0
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    steps = n // SWEEPS // 256
    schedule = tf.keras.optimizers.schedules.CosineDecay(1e-3, decay_steps=steps * 10)
    print("records", n // SWEEPS, "steps per epoch", steps, "first rate", float(schedule(0)))
    print(json.dumps({"samples": n, "seconds": seconds}))


main()
