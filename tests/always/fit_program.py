"""A Keras fit that runs until the file `stop` exists."""

FIT = """
import os, sys, time
import numpy as np, tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Dense(8), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
class Until(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.005)
        if os.path.exists("stop"): self.model.stop_training = True
x = np.random.rand(256, 4).astype("f4")
print("ready", flush=True)
model.fit(x, x[:, :1], batch_size=16, epochs=1_000_000, verbose=0, callbacks=[Until()])
print("done", flush=True)
"""
