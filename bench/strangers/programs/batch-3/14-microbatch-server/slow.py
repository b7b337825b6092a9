"""Ticket triage service: worker threads send texts, a batcher groups them for the model."""
import json
import queue
import threading
import time
import zlib
from concurrent.futures import Future

import numpy as np
import tensorflow as tf

VOCAB = 8192
LENGTH = 128
CLASSES = 24
CLIENTS = 12
REQUESTS = 1050
WARMUP = 10
WORDS = ["printer", "login", "invoice", "refund", "crash", "vpn", "slow", "password", "screen", "order", "late", "box",
         "broken", "update", "mail", "phone", "please", "help", "urgent", "again", "since", "monday", "office", "team"]


class BatcherConfig:
    max_batch_size = 64
    max_wait_s = 0.03
    queue_size = 1024


def build_classifier():
    inputs = tf.keras.Input((LENGTH,), dtype="int32")
    x = tf.keras.layers.Embedding(VOCAB, 96)(inputs)
    for width in (160, 160):
        x = tf.keras.layers.Conv1D(width, 5, padding="same", activation="relu")(x)
    x = tf.keras.layers.GlobalMaxPooling1D()(x)
    outputs = tf.keras.layers.Dense(CLASSES, activation="softmax")(x)
    return tf.keras.Model(inputs, outputs)


class Batcher:
    """Collects requests from many threads and answers them through futures."""

    def __init__(self, model, config):
        self.config = config
        self.requests = queue.Queue(config.queue_size)
        self.batches = []
        self._predict = tf.function(
            lambda ids: model(ids, training=False),
            input_signature=[tf.TensorSpec([None, LENGTH], tf.int32)],
        )
        self._predict(tf.zeros([1, LENGTH], tf.int32))
        self._thread = threading.Thread(target=self._loop, name="batcher", daemon=True)

    def start(self):
        self._thread.start()

    def stop(self):
        self.requests.put(None)
        self._thread.join()

    def submit(self, ids):
        answer = Future()
        self.requests.put((ids, answer))
        return answer

    def _collect(self):
        first = self.requests.get()
        if first is None:
            return None
        group = [first]
        deadline = time.monotonic() + self.config.max_wait_s
        while len(group) < self.config.max_batch_size:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                break
            try:
                item = self.requests.get(timeout=remaining)
            except queue.Empty:
                break
            if item is None:
                self.requests.put(None)
                break
            group.append(item)
        return group

    def _loop(self):
        while True:
            group = self._collect()
            if group is None:
                return
            scores = self._predict(tf.constant(np.stack([ids for ids, _ in group]))).numpy()
            self.batches.append(len(group))
            for row, (_, answer) in zip(scores, group):
                answer.set_result(row)


def encode(text):
    ids = np.zeros(LENGTH, np.int32)
    for i, word in enumerate(text.split()[:LENGTH]):
        ids[i] = 1 + zlib.crc32(word.encode()) % (VOCAB - 1)
    return ids


class Client(threading.Thread):
    """One worker of the mail gateway: reads a ticket, asks for its class, files it, takes the next one."""

    def __init__(self, number, batcher, count):
        super().__init__(name="client-%d" % number)
        self.rng = np.random.default_rng(number)
        self.batcher = batcher
        self.count = count
        self.filed = np.zeros(CLASSES, np.int64)

    def run(self):
        for _ in range(self.count):
            text = " ".join(self.rng.choice(WORDS, size=int(self.rng.integers(20, LENGTH))))
            scores = self.batcher.submit(encode(text)).result()
            self.filed[int(np.argmax(scores))] += 1


def run_clients(batcher, count):
    clients = [Client(i, batcher, count) for i in range(CLIENTS)]
    started = time.perf_counter()
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    return time.perf_counter() - started, sum(client.filed for client in clients)


def main():
    tf.keras.utils.set_random_seed(4)
    batcher = Batcher(build_classifier(), BatcherConfig())
    batcher.start()
    run_clients(batcher, WARMUP)
    batcher.batches.clear()
    seconds, filed = run_clients(batcher, REQUESTS)
    batcher.stop()
    print("tickets per class", filed.tolist())
    print(json.dumps({"samples": CLIENTS * REQUESTS, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
