"""Churn scores for a call centre: takes customer batches off a queue and answers with the ten riskiest."""
import json
import os
import queue
import tempfile
import threading
import time

import numpy as np
import tensorflow as tf

COLUMNS = 40


def train_and_export(path):
    """Stands for the nightly training job."""
    rng = np.random.default_rng(41)
    x = rng.normal(size=(2048, COLUMNS)).astype("float32")
    y = (x[:, :5].sum(1) + rng.normal(0, 0.5, 2048) > 0).astype("float32")
    inputs = tf.keras.Input((COLUMNS,))
    h = inputs
    for width in (512, 512, 256, 256, 128):
        skip = tf.keras.layers.Dense(width)(h)
        h = tf.keras.layers.Dense(width, activation="relu")(h)
        h = tf.keras.layers.LayerNormalization()(tf.keras.layers.Add()([h, skip]))
    model = tf.keras.Model(inputs, tf.keras.layers.Dense(1, activation="sigmoid")(h))
    model.compile("adam", "binary_crossentropy")
    model.fit(x, y, batch_size=256, epochs=1, verbose=0)
    model.save(path)


class Scorer:
    def __init__(self, path):
        self.model = tf.keras.models.load_model(path)

    def handle(self, customers):
        scores = np.asarray(self.model.predict_on_batch(customers["features"]))[:, 0]
        worst = np.argsort(-scores)[:10]
        return [{"customer": int(customers["id"][i]), "risk": round(float(scores[i]), 4)} for i in worst]


def producer(requests, count, rows):
    rng = np.random.default_rng(7)
    for number in range(count):
        requests.put({"id": np.arange(rows) + number * rows,
                      "features": rng.normal(size=(rows, COLUMNS)).astype("float32")})
    requests.put(None)


def serve(scorer, requests, answers):
    handled = 0
    while (customers := requests.get()) is not None:
        answers.append(json.dumps(scorer.handle(customers)))
        handled += len(customers["id"])
    return handled


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "churn.keras")
        train_and_export(path)
        scorer = Scorer(path)
        rows = 512
        scorer.handle({"id": np.arange(rows), "features": np.zeros((rows, COLUMNS), "float32")})
        requests = queue.Queue(maxsize=16)
        answers = []
        threading.Thread(target=producer, args=(requests, 30, rows), daemon=True).start()
        start = time.perf_counter()
        handled = serve(scorer, requests, answers)
        seconds = time.perf_counter() - start
        print(answers[-1][:120])
    print(json.dumps({"samples": handled, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
