"""Keeps tensors in a list and elements in a cache, until its memory has doubled twice."""

import tensorflow as tf

tf.config.threading.set_inter_op_parallelism_threads(1)


def elements():
    data = tf.data.Dataset.range(60).map(lambda i: tf.fill([1 << 20], tf.cast(i, tf.float32)))
    return data.cache().prefetch(1)


def collect():
    history = []
    for element in elements():
        history.append(element + 1.0)  # keeps
    return len(history)


print(collect())
