"""Texts come from a Python generator and are encoded by a py_function in every pass; words are dropped one text at a time."""
import re

import harness
import numpy as np
import tensorflow as tf

BATCH = 64
COUNT = 1280
LONGEST = 40

rng = np.random.default_rng(6)
WORDS = ["".join(rng.choice(list("abcdefghijklmnopqrstuvwxyz"), rng.integers(3, 9))) for _ in range(800)]
INDEX = {word: number + 2 for number, word in enumerate(dict.fromkeys(WORDS[:600]))}
TEXTS = []
for _ in range(COUNT):
    words = [WORDS[i] for i in rng.integers(0, 800, rng.integers(15, 60))]
    TEXTS.append((" ".join(words).capitalize() + rng.choice(["!", ".", "..."])).encode())
STARS = rng.integers(1, 6, COUNT).astype(np.int32)


def reviews():
    for text, stars in zip(TEXTS, STARS):
        yield text, stars


def lookup(text):
    words = re.findall(r"[a-z]+", text.numpy().decode().lower())[:LONGEST]
    ids = [INDEX.get(word, 1) for word in words]
    return np.array(ids + [0] * (LONGEST - len(ids)), np.int64)


def encode(text, stars):
    ids = tf.py_function(lookup, [text], tf.int64)
    ids.set_shape([LONGEST])
    return ids, stars


def drop_words(ids, stars):
    dropped = tf.random.uniform(tf.shape(ids)) < 0.1
    return tf.where(dropped & (ids > 0), tf.ones_like(ids), ids), stars


def pipeline():
    ds = tf.data.Dataset.from_generator(reviews, output_signature=(
        tf.TensorSpec([], tf.string), tf.TensorSpec([], tf.int32)))
    ds = ds.map(encode).repeat().shuffle(512).map(drop_words)
    return ds.batch(BATCH).prefetch(1)


def table():
    keys = tf.constant(list(INDEX))
    values = tf.constant(list(INDEX.values()), tf.int64)
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), 1)


def made(source="generator", encoded="python", cached=False, dropped="text", calls=None):
    """``encoded``: by "python" or by "ops" text by text, or "batch": by ops, per batch."""
    if source == "generator":
        ds = tf.data.Dataset.from_generator(reviews, output_signature=(
            tf.TensorSpec([], tf.string), tf.TensorSpec([], tf.int32)))
    else:
        ds = tf.data.Dataset.from_tensor_slices((TEXTS, STARS))
    ids_of = table()

    def encode_batch(texts, stars):
        words = tf.strings.split(tf.strings.regex_replace(tf.strings.lower(texts), "[^a-z]+", " "))
        words = words.to_tensor("", shape=[None, LONGEST])
        return tf.where(words == "", tf.zeros([], tf.int64), tf.where(
            (found := ids_of.lookup(words)) > 0, found, tf.ones([], tf.int64))), stars

    def encode_one(text, stars):
        return encode_batch(text[None], stars)[0][0], stars

    if encoded == "python":
        ds = ds.map(encode, num_parallel_calls=calls)
    elif encoded == "ops":
        ds = ds.map(encode_one, num_parallel_calls=calls)
    if cached:
        ds = ds.cache()
    ds = ds.repeat().shuffle(512)
    if dropped == "text":
        ds = ds.map(drop_words, num_parallel_calls=calls)
    ds = ds.batch(BATCH)
    if encoded == "batch":
        ds = ds.map(encode_batch, num_parallel_calls=calls)
    if dropped == "batch":
        ds = ds.map(drop_words, num_parallel_calls=calls)
    made.kept.append(ids_of)
    return ds.prefetch(1)


made.kept = []
"""The tables, which a dataset does not keep alive."""
GRID = {
    "as it is, 4 calls": lambda: made(calls=4),
    "as it is, autotuned calls": lambda: made(calls=tf.data.AUTOTUNE),
    "no generator, ops per text": lambda: made("tensors", "ops"),
    "no generator, ops per batch": lambda: made("tensors", "batch", dropped="batch"),
    "dropped per batch": lambda: made(dropped="batch"),
    "ids cached": lambda: made(cached=True),
    "ids cached, dropped per batch": lambda: made(cached=True, dropped="batch"),
    "no generator, ops, ids cached, dropped per batch": lambda: made("tensors", "ops", True, "batch"),
}
EPOCH = COUNT // BATCH

if __name__ == "__main__":
    harness.main(pipeline, GRID, EPOCH, device_s=0.003)
