"""A training loop whose input comes from a server, a disk or memory, as the arguments say; prints its rate."""

import argparse
import json
import os
import random
import socket
import threading
import time
import zlib

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context

parser = argparse.ArgumentParser()
parser.add_argument("--source", choices=("stream", "pieces", "ahead", "file", "memory"), default="memory")
parser.add_argument("--address", default="")
parser.add_argument("--path", default="")
parser.add_argument("--record-bytes", type=int, default=50_000)
parser.add_argument("--piece-bytes", type=int, default=8_000_000)
parser.add_argument("--batch", type=int, default=4)
parser.add_argument("--step-ms", type=float, default=15.0)
parser.add_argument("--decode-ms", type=float, default=0.0)
parser.add_argument("--upload", action="store_true")
parser.add_argument("--flush-s", type=float, default=0.0)
parser.add_argument("--random-reads", action="store_true")
parser.add_argument("--load-s", type=float, default=0.0)
parser.add_argument("--gpu-live", type=int, default=0, help="answer as with a GPU on which so many bytes live")
parser.add_argument("--seconds", type=float, default=24.0)
args = parser.parse_args()
WIDTH = 1024


def connect(word):
    host, port = args.address.split(":")
    connection = socket.create_connection((host, int(port)))
    connection.sendall(word)
    return connection


def receive(connection, size):
    data = bytearray(size)
    view = memoryview(data)
    while view:
        view = view[connection.recv_into(view) :]
    return data


def from_stream():
    connection = connect(b"stream\n")
    while True:
        yield receive(connection, args.record_bytes)


def records_of(piece):
    for at in range(0, len(piece) - args.record_bytes + 1, args.record_bytes):
        yield piece[at : at + args.record_bytes]


def from_pieces():
    ask = b"piece %d\n" % args.piece_bytes
    connection = connect(b"")
    while True:
        connection.sendall(ask)
        yield from records_of(receive(connection, args.piece_bytes))


def from_file():
    size = os.stat(args.path).st_size or int(open(f"/sys/class/block/{os.path.basename(args.path)}/size").read()) * 512
    file = os.open(args.path, os.O_RDONLY)
    if args.random_reads:
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
    count = size // args.record_bytes
    order = list(range(count))
    while True:
        if args.random_reads:
            random.shuffle(order)
        for index in order:
            yield os.pread(file, args.record_bytes, index * args.record_bytes)


def from_memory():
    record = bytes(args.record_bytes)
    while True:
        yield record


SOURCES = {"stream": from_stream, "pieces": from_pieces, "ahead": from_pieces, "file": from_file, "memory": from_memory}


def decoded():
    packed = zlib.compress(np.random.default_rng(0).bytes(60_000))
    for record in SOURCES[args.source]():
        until = time.perf_counter() + args.decode_ms / 1000
        while time.perf_counter() < until:
            zlib.decompress(packed)
        yield np.frombuffer(record, np.uint8, 4 * WIDTH)[:WIDTH].astype(np.float32)


def upload_now_and_then():
    connection = connect(b"upload\n")
    block = bytes(100_000)
    while True:
        until = time.monotonic() + 5
        while time.monotonic() < until:
            connection.sendall(block)
            time.sleep(0.01)
        time.sleep(5)


def initialize(self, real=context.Context._initialize_logical_devices):
    real(self)
    gpu = type("Device", (), {"name": "/device:GPU:0", "device_type": "GPU"})
    self._logical_devices = [*self._logical_devices, gpu()]


if args.gpu_live:
    context.Context._initialize_logical_devices = initialize
    context.Context.get_memory_info = lambda self, device: {"current": args.gpu_live // 2, "peak": args.gpu_live}


weights = tf.Variable(tf.random.normal((WIDTH, WIDTH), stddev=0.01))
optimizer = tf.keras.optimizers.SGD(1e-3)


@tf.function(jit_compile=False)
def train_step(batch, times):
    with tf.GradientTape() as tape:
        hidden = batch
        for _ in tf.range(times):
            hidden = tf.tanh(hidden @ weights)
        loss = tf.reduce_mean(hidden**2)
    optimizer.apply_gradients([(tape.gradient(loss, weights), weights)])
    return loss


def times_of(step_ms):
    batch = tf.zeros((args.batch, WIDTH))
    train_step(batch, tf.constant(4))
    began = time.perf_counter()
    for _ in range(20):
        train_step(batch, tf.constant(20)).numpy()
    return tf.constant(max(1, int(20 * step_ms / ((time.perf_counter() - began) / 20 * 1000))))


def main():
    time.sleep(args.load_s)
    dataset = tf.data.Dataset.from_generator(decoded, output_signature=tf.TensorSpec((WIDTH,), tf.float32))
    ahead = args.source == "ahead" or args.upload
    dataset = dataset.batch(args.batch)
    if args.source in {"pieces", "ahead"}:
        dataset = dataset.prefetch(4 * args.piece_bytes // (args.record_bytes * args.batch) if ahead else 1)
    times = times_of(args.step_ms)
    if args.upload:
        threading.Thread(target=upload_now_and_then, daemon=True).start()
    steps, began, flushed = 0, time.monotonic(), time.monotonic()
    for batch in dataset:
        train_step(batch, times)
        steps += 1
        if args.flush_s and time.monotonic() - flushed > args.flush_s:
            time.sleep(1.8)
            flushed = time.monotonic()
        seconds = time.monotonic() - began
        if seconds > args.seconds:
            break
    print(json.dumps({"steps": steps, "seconds": seconds, "samples_per_s": steps * args.batch / seconds}), flush=True)


main()
