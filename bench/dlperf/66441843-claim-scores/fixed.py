"""Score a table of insurance claims with a trained model and write the result."""
import io
import json
import time

import numpy as np
import keras

keras.utils.set_random_seed(0)
CLAIMS = 60
COLS = 30


def train():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, COLS)).astype("float32")
    y = (x[:, 0] * x[:, 1] > 0).astype("float32")
    m = keras.Sequential(
        [
            keras.layers.Input((COLS,)),
            keras.layers.BatchNormalization(),
            keras.layers.Dense(128, activation="relu"),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    m.compile("adam", "binary_crossentropy")
    m.fit(x, y, epochs=1, batch_size=100, verbose=0)
    return m


def score(model, table):
    return model.predict(table, batch_size=1024, verbose=0)[:, 0].tolist()


def main():
    model = train()
    rng = np.random.default_rng(5)
    table = rng.normal(size=(CLAIMS, COLS)).astype("float32")
    score(model, table[:4])
    t0 = time.perf_counter()
    scores = score(model, table)
    seconds = time.perf_counter() - t0
    sink = io.StringIO()
    for i, s in enumerate(scores):
        sink.write(f"{i},{s:.4f}\n")
    print("bytes written", len(sink.getvalue()), "mean score", sum(scores) / len(scores))
    print(json.dumps({"samples": CLAIMS, "seconds": seconds}))


main()
