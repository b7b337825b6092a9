"""Exceptions of the user's code pass through every kind of wrapper; each traceback is printed."""

import os
import sys
import traceback

import numpy as np
import tensorflow as tf

keras = tf.keras
X = np.ones((16, 4), "float32")
Y = np.ones((16, 1), "float32")
OURS = os.environ.get("STEPSCOPE_RUN", "/nowhere")


class Fails(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        raise KeyError("callback")


class FailingItems(keras.utils.Sequence):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        raise LookupError("item")


@tf.function
def failing(x):
    raise ValueError("function")


def generator():
    yield X[:4], Y[:4]
    raise RuntimeError("generator")


def attempt(label, function):
    try:
        function()
    except Exception as error:
        frames = [f.name for f in traceback.extract_tb(error.__traceback__)]
        files = [f.filename for f in traceback.extract_tb(error.__traceback__)]
        print(label, type(error).__name__, frames, sum(name.startswith(OURS) for name in files))


def main():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    attempt("callback", lambda: model.fit(X, Y, verbose=0, callbacks=[Fails()]))
    attempt("function", lambda: failing(tf.ones(2)))
    attempt("item", lambda: model.fit(FailingItems(), verbose=0))
    attempt("generator", lambda: model.fit(generator(), verbose=0))
    attempt("shape", lambda: model.predict(np.ones((4, 3), "float32"), verbose=0))
    attempt("model", lambda: model(np.ones((4, 3), "float32")))
    attempt("map", lambda: tf.data.Dataset.range(3).map(lambda x: x.nothing))
    attempt("save", lambda: model.save("/proc/nowhere/model.keras"))
    attempt("bool", lambda: bool(tf.ones([2])))
    attempt("next", lambda: next(iter(tf.data.Dataset.range(0))))
    attempt("apply", lambda: keras.optimizers.SGD().apply_gradients([(None, None)]))
    model.fit(X, Y, verbose=0, callbacks=[Fails()])


sys.exit(main())
