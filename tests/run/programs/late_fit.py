"""A job that starts slowly: it imports TensorFlow when its second file exists, and trains until the first one does."""

import os
import sys
import time

print("ready", flush=True)
while not os.path.exists(sys.argv[2]):
    time.sleep(0.05)

import numpy as np
from tensorflow import keras


class UntilTold(keras.callbacks.Callback):
    """Ends the training when it may."""

    def on_train_batch_end(self, batch, logs=None):
        if os.path.exists(sys.argv[1]):
            self.model.stop_training = True


model = keras.Sequential([keras.layers.Dense(64, activation="relu"), keras.layers.Dense(1)])
model.compile("sgd", "mse")
features = np.ones((256, 64), "float32")
while not os.path.exists(sys.argv[1]):
    model.fit(features, features[:, :1], batch_size=8, epochs=10, verbose=0, callbacks=[UntilTold()])
print("done", flush=True)
