"""Fine-tunes a wide text classifier on a spot machine that may vanish at any time."""
import json
import os
import shutil
import tempfile
import time

import numpy as np
import tensorflow as tf

keras = tf.keras
SAVE_EVERY = 4
EPOCHS = 1


def bags(count, width, seed):
    rng = np.random.default_rng(seed)
    x = (rng.random((count, width)) < 0.02).astype("float32")
    return x, (x[:, :40].sum(1) > x[:, 40:80].sum(1)).astype("float32")


def wide_net(width):
    model = keras.Sequential([
        keras.layers.Input((width,)),
        keras.layers.Dense(768, activation="relu"),
        keras.layers.Dropout(0.2),
        keras.layers.Dense(384, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ])
    model.compile(keras.optimizers.Adam(5e-4), "binary_crossentropy", metrics=["accuracy"])
    return model


def train(folder):
    x, y = bags(9600, 4000, 13)
    model = wide_net(4000)
    model.train_on_batch(x[:32], y[:32])
    saver = keras.callbacks.ModelCheckpoint(os.path.join(folder, "last.weights.h5"), save_weights_only=True,
                                            save_freq=SAVE_EVERY)
    began = time.perf_counter()
    model.fit(x, y, batch_size=32, epochs=EPOCHS, callbacks=[saver], verbose=2)
    return EPOCHS * len(x), time.perf_counter() - began


if __name__ == "__main__":
    keras.utils.set_random_seed(13)
    folder = tempfile.mkdtemp(prefix="spot-")
    try:
        samples, seconds = train(folder)
    finally:
        shutil.rmtree(folder)
    print(json.dumps({"samples": samples, "seconds": round(seconds, 3)}))
