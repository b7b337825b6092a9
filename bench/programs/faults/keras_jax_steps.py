"""Keras on JAX: a fit whose batches Python makes, with a callback that asks for each batch's results."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import fault
import numpy as np

fault.begin()
import keras

keras.utils.set_random_seed(3)
x = np.random.RandomState(2).rand(64, 8).astype("float32")


class Rows(keras.utils.PyDataset):
    def __len__(self):
        return 16

    def __getitem__(self, at):
        return x[4 * at : 4 * at + 4], x[4 * at : 4 * at + 4, :1]


class Watch(keras.callbacks.Callback):
    seen = 0

    def on_train_batch_end(self, batch, logs=None):
        self.seen += 1
        if self.seen == 30:
            fault.moment()


model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
history = model.fit(Rows(), epochs=4, verbose=0, callbacks=[Watch()])
fault.save("w.bin", b"".join(np.asarray(one).tobytes() for one in model.get_weights()))
print([float(one).hex() for one in history.history["loss"]])
fault.end(np.asarray(keras.random.SeedGenerator(3).state.value).tobytes())
