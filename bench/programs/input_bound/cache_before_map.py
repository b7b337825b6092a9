"""Cache: it stands before the work, and keeps what costs nothing."""

import harness
import numpy as np
import tensorflow as tf

clips = np.random.default_rng(1).standard_normal((400, 8000)).astype("float32")


def spectrum(clip):
    frames = tf.signal.stft(clip, frame_length=256, frame_step=128)
    return tf.math.log(tf.abs(frames)[:, :64] + 1e-6)


def pipeline():
    dataset = tf.data.Dataset.from_tensor_slices(clips)
    return dataset.cache().map(spectrum, num_parallel_calls=tf.data.AUTOTUNE).batch(20).repeat().prefetch(2)


def made(cache, calls):
    dataset = tf.data.Dataset.from_tensor_slices(clips)
    if cache == "before":
        dataset = dataset.cache()
    dataset = dataset.map(spectrum, num_parallel_calls=calls)
    if cache == "after map":
        dataset = dataset.cache()
    dataset = dataset.batch(20)
    if cache == "after batch":
        dataset = dataset.cache()
    return dataset.repeat().prefetch(2)


GRID = {
    f"cache={cache} calls={calls}": lambda cache=cache, calls=calls: made(cache, calls)
    for cache in ("no", "before", "after map", "after batch")
    for calls in (None, tf.data.AUTOTUNE)
}

if __name__ == "__main__":
    harness.main(pipeline, GRID, 20)
