"""Intent service: request threads hand sentences to one inference thread that groups them."""
import json
import os
import queue
import threading
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

VOCAB = 6000
SEQ_LEN = 40
N_INTENTS = 24
N_CALLERS = 6
CALLS_EACH = 300
WARM_CALLS = 6


class ServiceSettings:
    group_limit = 32
    group_window_s = 0.030
    pad_to = (8, 16, 32)


def build_classifier():
    ids = keras.Input((SEQ_LEN,), dtype="int32")
    x = layers.Embedding(VOCAB, 96, embeddings_initializer="glorot_normal")(ids)
    for width in (128, 128):
        y = layers.Conv1D(width, 5, padding="same", activation="relu")(x)
        x = layers.Concatenate()([x, y])
    x = layers.GlobalMaxPooling1D()(x)
    x = layers.Dense(128, activation="relu")(x)
    out = layers.Dense(N_INTENTS, activation="softmax")(x)
    return keras.Model(ids, out)


class Vocabulary:
    def __init__(self, size):
        self.index = {f"w{i}": i for i in range(1, size)}

    def encode(self, sentence):
        row = np.zeros(SEQ_LEN, np.int32)
        for k, tok in enumerate(sentence.lower().split()[:SEQ_LEN]):
            row[k] = self.index.get(tok, 0)
        return row


class Ticket:
    __slots__ = ("row", "done", "answer", "born")

    def __init__(self, row):
        self.row = row
        self.done = threading.Event()
        self.answer = None
        self.born = time.perf_counter()


class GroupingServer(threading.Thread):
    def __init__(self, model, settings):
        super().__init__(daemon=True)
        self.inbox = queue.Queue()
        self.settings = settings
        self.group_sizes = []
        self.waits = []
        self._forward = tf.function(
            lambda ids: model(ids, training=False),
            input_signature=[tf.TensorSpec((None, SEQ_LEN), tf.int32)],
        )

    def submit(self, row):
        ticket = Ticket(row)
        self.inbox.put(ticket)
        return ticket

    def stop(self):
        self.inbox.put(None)

    def _collect(self):
        first = self.inbox.get()
        if first is None:
            return None
        group = [first]
        close_at = time.perf_counter() + self.settings.group_window_s
        while len(group) < self.settings.group_limit:
            left = close_at - time.perf_counter()
            if left <= 0:
                break
            try:
                nxt = self.inbox.get(timeout=left)
            except queue.Empty:
                break
            if nxt is None:
                self.inbox.put(None)
                break
            group.append(nxt)
        return group

    def _padded(self, group):
        size = next(p for p in self.settings.pad_to if p >= len(group))
        ids = np.zeros((size, SEQ_LEN), np.int32)
        for k, ticket in enumerate(group):
            ids[k] = ticket.row
        return ids

    def run(self):
        while True:
            group = self._collect()
            if group is None:
                return
            now = time.perf_counter()
            probs = self._forward(tf.constant(self._padded(group))).numpy()
            for ticket, p in zip(group, probs):
                self.waits.append(now - ticket.born)
                ticket.answer = (int(p.argmax()), float(p.max()))
                ticket.done.set()
            self.group_sizes.append(len(group))


def utterances(n, seed):
    rng = np.random.default_rng(seed)
    return [" ".join(f"w{i}" for i in rng.zipf(1.3, rng.integers(5, 30)) % VOCAB) for _ in range(n)]


def caller(server, vocab, lines, results, slot):
    got = []
    for line in lines:
        ticket = server.submit(vocab.encode(line))
        ticket.done.wait()
        got.append(ticket.answer)
    results[slot] = got


def drive(server, vocab, calls, seed):
    results = [None] * N_CALLERS
    threads = [
        threading.Thread(target=caller,
                         args=(server, vocab, utterances(calls, seed + k), results, k))
        for k in range(N_CALLERS)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return results


def main():
    keras.utils.set_random_seed(3)
    vocab = Vocabulary(VOCAB)
    server = GroupingServer(build_classifier(), ServiceSettings())
    server.start()
    drive(server, vocab, WARM_CALLS, seed=1)
    server.group_sizes.clear()
    server.waits.clear()

    start = time.perf_counter()
    answers = drive(server, vocab, CALLS_EACH, seed=100)
    elapsed = time.perf_counter() - start
    server.stop()
    server.join()

    given = [a for caller_answers in answers for a in caller_answers]
    print(f"answers {len(given)}, mean confidence {np.mean([a[1] for a in given]):.5f}")
    print(f"mean group {np.mean(server.group_sizes):.1f}, mean wait {1e3 * np.mean(server.waits):.1f} ms")
    print(json.dumps({"samples": len(given), "seconds": round(elapsed, 3)}))


if __name__ == "__main__":
    main()
