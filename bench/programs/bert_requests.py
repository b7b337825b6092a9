"""Answers requests of changing size with a model of BERT base's width, and prints a line of JSON for each stretch of
them.

``bert_requests.py ENGINE LAYERS MODEL SHARDS PLAN``: engine tensorflow, onnxruntime or onnxruntime-without-arena; MODEL
is the ONNX file, SHARDS a folder of arrays that are loaded first. PLAN is JSON: stretches, each with ``name``,
``clients`` and ``requests``, a list of [batch, length]. After each line of output it waits for a line of input: whoever
started it may look at its memory meanwhile.
"""

import json
import os
import resource
import sys
import threading
import time
from pathlib import Path

import numpy as np

ENGINE, LAYERS, MODEL, SHARDS, PLAN = sys.argv[1:]
WORDS, PLACES, WIDTH, HEADS, INNER = 30_522, 512, 768, 12, 3_072


def tensorflow_model(layers):
    """The same layers in TensorFlow, for any batch and length."""
    import tensorflow as tf

    rng = np.random.default_rng(0)

    def weight(*shape):
        return tf.Variable(rng.standard_normal(shape, np.float32) * np.float32(0.02))

    def dense(width, out):
        return weight(width, out), weight(out)

    words, places = weight(WORDS, WIDTH), weight(PLACES, WIDTH)
    made = [
        ([dense(WIDTH, WIDTH) for _ in range(4)], dense(WIDTH, INNER), dense(INNER, WIDTH)) for _ in range(layers)
    ]

    def apply(x, pair):
        return tf.matmul(x, pair[0]) + pair[1]

    def norm(x):
        mean, spread = tf.nn.moments(x, [-1], keepdims=True)
        return (x - mean) * tf.math.rsqrt(spread + 1e-12)

    def heads(x):
        shape = tf.shape(x)
        return tf.transpose(tf.reshape(x, [shape[0], shape[1], HEADS, WIDTH // HEADS]), [0, 2, 1, 3])

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int64)] * 2)
    def serve(input_ids, position_ids):
        x = norm(tf.gather(words, input_ids) + tf.gather(places, position_ids))
        for (q, k, v, out), wide, narrow in made:
            scores = tf.matmul(heads(tf.reshape(apply(tf.reshape(x, [-1, WIDTH]), q), tf.shape(x))), 
                               heads(tf.reshape(apply(tf.reshape(x, [-1, WIDTH]), k), tf.shape(x))), transpose_b=True)
            mixed = tf.matmul(tf.nn.softmax(scores * 0.125), heads(tf.reshape(apply(tf.reshape(x, [-1, WIDTH]), v), tf.shape(x))))
            joined = tf.reshape(tf.transpose(mixed, [0, 2, 1, 3]), [-1, WIDTH])
            flat = norm(tf.reshape(x, [-1, WIDTH]) + apply(joined, out))
            inner = apply(flat, wide)
            flat = norm(flat + apply(0.5 * inner * (1.0 + tf.math.erf(inner / 2.0**0.5)), narrow))
            x = tf.reshape(flat, tf.shape(x))
        return x

    return lambda ids, places: serve(tf.constant(ids), tf.constant(places)).numpy()


def onnx_model(arena):
    """A session of ONNX Runtime."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.enable_cpu_mem_arena = arena
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = ort.InferenceSession(MODEL, options, providers=["CPUExecutionProvider"])
    return lambda ids, places: session.run(None, {"input_ids": ids, "position_ids": places})[0]


def counted():
    """Minor faults and CPU time of this process so far, and the wall clock."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_minflt, used.ru_utime + used.ru_stime, time.monotonic()


def tell(name, began, **fields):
    """Print a stretch, and wait to go on."""
    faults, cpu, wall = (now - then for now, then in zip(counted(), began))
    print(json.dumps({"name": name, "faults": faults, "cpu_s": cpu, "wall_s": wall, **fields}), flush=True)
    sys.stdin.readline()


def answer(model, requests, times):
    """Answer requests one after the other."""
    rng = np.random.default_rng(1)
    for batch, length in requests:
        ids = rng.integers(0, WORDS, (batch, length))
        places = np.ascontiguousarray(np.broadcast_to(np.arange(length), (batch, length)))
        start = time.monotonic()
        hidden = model(ids, places)
        times.append(time.monotonic() - start)
        assert hidden.shape == (batch, length, WIDTH)


began = counted()
shards = [np.load(path) for path in sorted(Path(SHARDS).iterdir())]
tell("shards", began, count=len(shards), bytes=sum(shard.nbytes for shard in shards))
began = counted()
for _ in range(5):
    total = sum(float(shard.sum()) for shard in shards)
tell("shards read", began, count=5 * len(shards), bytes=5 * sum(shard.nbytes for shard in shards))
began = counted()
model = tensorflow_model(int(LAYERS)) if ENGINE == "tensorflow" else onnx_model(ENGINE == "onnxruntime")
tell("model", began)
for stretch in json.loads(PLAN):
    times = [[] for _ in range(stretch["clients"])]
    clients = [threading.Thread(target=answer, args=(model, stretch["requests"], mine)) for mine in times]
    began = counted()
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    tell(stretch["name"], began, times=[one for mine in times for one in mine])
os._exit(0)
