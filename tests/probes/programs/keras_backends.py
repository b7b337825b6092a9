"""Keras on JAX, or else on PyTorch: fit with validation, evaluate, predict; prints results and what JAX compiled."""

import importlib.util
import os

BACKEND = os.environ["KERAS_BACKEND"] = "jax" if importlib.util.find_spec("jax") else "torch"

import hashlib  # noqa: E402 - Keras reads its backend when it is imported

import keras  # noqa: E402
import numpy as np  # noqa: E402

compiled = []
if BACKEND == "jax":
    import jax.monitoring

    jax.monitoring.register_event_duration_secs_listener(lambda event, _, **more: compiled.append((event, str(more))))

keras.utils.set_random_seed(3)
X = np.random.default_rng(0).normal(size=(48, 4)).astype("float32")
Y = X.sum(axis=1, keepdims=True)


class Rows(keras.utils.PyDataset):
    """Batches made in Python."""

    def __len__(self):
        return 6

    def __getitem__(self, at):
        return X[8 * at : 8 * at + 8], Y[8 * at : 8 * at + 8]


class Watch(keras.callbacks.Callback):
    """Asks for the results of each batch."""

    seen = 0.0

    def on_train_batch_end(self, batch, logs=None):
        self.seen += logs["loss"]


def rows():
    """The same from a generator."""
    while True:
        yield from (Rows()[at] for at in range(6))


model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8, activation="relu"), keras.layers.Dense(1)])
model.compile("adam", "mse", steps_per_execution=2 if BACKEND == "jax" else 1)
watch = Watch()
history = model.fit(Rows(), epochs=2, verbose=0, callbacks=[watch], validation_data=(X, Y))  # fit
model.fit(rows(), steps_per_epoch=6, verbose=0)  # generator
results = [*history.history["loss"], watch.seen, model.evaluate(X, Y, batch_size=8, verbose=0)]  # evaluate
predicted = model.predict(X, batch_size=8, verbose=0)  # predict
model.train_on_batch(X[:8], Y[:8])  # on_batch
weights = hashlib.sha256(b"".join(np.asarray(one).tobytes() for one in model.get_weights())).hexdigest()
print([float(one).hex() for one in results], predicted.tobytes().hex()[:64], weights, compiled)
