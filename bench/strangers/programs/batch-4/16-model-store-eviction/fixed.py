"""Text scoring service: one exported model per request kind, requests handled one after another from a recorded stream."""
import collections
import json
import os
import shutil
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

KINDS = {"spam": 2, "topic": 12, "toxicity": 6, "language": 20}
MIX = {"spam": 0.34, "topic": 0.30, "toxicity": 0.22, "language": 0.14}
VOCAB = 4000
LENGTH = 64
MAX_ROWS = 16
REQUESTS = 1100
WARMUP = 60
MAX_RESIDENT = len(KINDS)


def build_scorer(classes):
    tokens = keras.Input((LENGTH,), dtype="int32")
    x = keras.layers.Embedding(VOCAB, 48)(tokens)
    x = keras.layers.Conv1D(96, 5, padding="same", activation="relu")(x)
    x = keras.layers.Conv1D(96, 5, padding="same", activation="relu")(x)
    x = keras.layers.GlobalMaxPooling1D()(x)
    x = keras.layers.Dense(64, activation="relu")(x)
    return keras.Model(tokens, keras.layers.Dense(classes, activation="softmax")(x))


def export_models(root):
    for kind, classes in KINDS.items():
        model = build_scorer(classes)
        archive = keras.export.ExportArchive()
        archive.track(model)
        archive.add_endpoint(name="score", fn=model.call,
                             input_signature=[tf.TensorSpec((MAX_ROWS, LENGTH), tf.int32)])
        archive.write_out(os.path.join(root, kind), verbose=False)


class ModelStore:
    """Keeps the most recently used models ready."""

    def __init__(self, root, limit=MAX_RESIDENT):
        self.root = root
        self.limit = limit
        self.models = collections.OrderedDict()
        self.loads = 0

    def get(self, kind):
        if kind in self.models:
            self.models.move_to_end(kind)
            return self.models[kind]
        model = tf.saved_model.load(os.path.join(self.root, kind))
        self.loads += 1
        self.models[kind] = model
        while len(self.models) > self.limit:
            self.models.popitem(last=False)
        return model


def pad_rows(rows):
    """Fixed shape, whatever the number of texts and their lengths."""
    tokens = np.zeros((MAX_ROWS, LENGTH), np.int32)
    for i, row in enumerate(rows):
        tokens[i, :len(row)] = row[:LENGTH]
    return tokens


class ScoringService:
    def __init__(self, store):
        self.store = store
        self.handled = collections.Counter()
        self.latency = collections.defaultdict(list)

    def handle(self, request):
        begin = time.perf_counter()
        model = self.store.get(request["kind"])
        tokens = pad_rows(request["rows"])
        scores = model.score(tf.constant(tokens)).numpy()[:len(request["rows"])]
        reply = {"id": request["id"], "labels": scores.argmax(axis=1).tolist(),
                 "confidence": [round(float(s), 4) for s in scores.max(axis=1)]}
        self.handled[request["kind"]] += 1
        self.latency[request["kind"]].append(time.perf_counter() - begin)
        return json.dumps(reply)


def record_stream(count, seed=0):
    """Clients send in bursts: the kind stays the same for a while."""
    rng = np.random.default_rng(seed)
    kinds, weights = list(MIX), list(MIX.values())
    kind = kinds[0]
    stream = []
    for i in range(count):
        if rng.random() < 0.12:
            kind = str(rng.choice(kinds, p=weights))
        rows = [rng.integers(1, VOCAB, rng.integers(5, LENGTH)) for _ in range(rng.integers(4, MAX_ROWS + 1))]
        stream.append({"id": i, "kind": kind, "rows": rows})
    return stream


def main():
    keras.utils.set_random_seed(0)
    root = tempfile.mkdtemp(prefix="models_")
    try:
        export_models(root)
        store = ModelStore(root)
        service = ScoringService(store)
        stream = record_stream(REQUESTS)
        for kind in KINDS:
            store.get(kind)
        size, rows = 0, 0
        for i, request in enumerate(stream):
            if i == WARMUP:
                start = time.perf_counter()
            size += len(service.handle(request))
            if i >= WARMUP:
                rows += len(request["rows"])
        seconds = time.perf_counter() - start
    finally:
        shutil.rmtree(root, ignore_errors=True)
    for kind, times in service.latency.items():
        print(f"{kind}: {service.handled[kind]} requests, median {1e3 * np.median(times):.2f} ms, "
              f"p99 {1e3 * np.percentile(times, 99):.1f} ms")
    print("loads", store.loads, "bytes sent", size)
    print(json.dumps({"samples": rows, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
