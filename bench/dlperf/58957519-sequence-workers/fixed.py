"""Image classifier fed by a keras Sequence with worker processes."""
import json
import time

import numpy as np
from tensorflow import keras

N, SIDE, BATCH = 2048, 48, 32
EPOCHS = 2


class Augmented(keras.utils.Sequence):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.x = rng.random((n, SIDE, SIDE, 3), dtype="float32")
        self.y = rng.integers(0, 5, size=n)
        for img, c in zip(self.x, self.y):
            img[:, c * 9:c * 9 + 9] += 0.5

    def __len__(self):
        return len(self.x) // BATCH

    def __getitem__(self, i):
        x = self.x[i * BATCH:(i + 1) * BATCH]
        x = x[:, :, ::-1] if i % 2 else x
        return np.clip(x * 1.1 - 0.05, 0, 1), self.y[i * BATCH:(i + 1) * BATCH]


def build():
    m = keras.Sequential(
        [
            keras.layers.Input((SIDE, SIDE, 3)),
            keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
            keras.layers.Conv2D(32, 3, strides=2, activation="relu"),
            keras.layers.Flatten(),
            keras.layers.Dense(5, activation="softmax"),
        ]
    )
    m.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return m


def main():
    keras.utils.set_random_seed(0)
    train, val = Augmented(N, 0), Augmented(256, 1)
    model = build()
    model.train_on_batch(*train[0])
    t0 = time.perf_counter()
    hist = model.fit(train, validation_data=val, epochs=EPOCHS, workers=2, use_multiprocessing=False, max_queue_size=10, verbose=0)
    seconds = time.perf_counter() - t0
    print("val accuracy", hist.history["val_accuracy"])
    print(json.dumps({"samples": N * EPOCHS, "seconds": seconds}))


if __name__ == "__main__":
    main()
