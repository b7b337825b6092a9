"""Keras: fit from tf.data with Python in it, callbacks, own layers, padded sequences, predict, saved weights."""

import os

import fault
import numpy as np

fault.begin()
import tensorflow as tf

keras = tf.keras
keras.utils.set_random_seed(7)
tf.config.experimental.enable_op_determinism()
tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)
rows = [list(range(n % 7 + 1)) for n in range(48)]
X = keras.utils.pad_sequences(rows, maxlen=8).astype("float32") / 8.0
Y = np.random.RandomState(1).rand(48, 1).astype("float32")


def scaled(x):
    return x * np.float32(0.5)


def generate():
    for x, y in zip(X, Y):
        yield x, y


def prepare(x, y):
    x = tf.numpy_function(scaled, [x], tf.float32)
    return tf.ensure_shape(x, [8]), y


class Moment(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        print("epoch", epoch, logs["loss"].hex())
        if epoch == 0:
            fault.moment()


class Scale(keras.layers.Layer):
    def build(self, shape):
        self.scale = self.add_weight(shape=(shape[-1],), initializer="ones")

    def call(self, x):
        return x * self.scale


spec = (tf.TensorSpec([8], tf.float32), tf.TensorSpec([1], tf.float32))
data = tf.data.Dataset.from_generator(generate, output_signature=spec).map(prepare).shuffle(48, seed=3).batch(8)
model = keras.Sequential([keras.Input((8,)), Scale(), keras.layers.Dense(8), keras.layers.Dropout(0.2), keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(data, epochs=3, verbose=0, callbacks=[Moment()])
print("predicted", float(model.predict(X, verbose=0).sum()).hex())
print("evaluated", float(model.evaluate(X, Y, verbose=0)).hex())
print("on batch", float(model.train_on_batch(X[:8], Y[:8])).hex(), float(tf.reduce_sum(model(X[:2]))).hex())
for number, weight in enumerate(model.get_weights()):
    fault.save("weight%d.bin" % number, weight.tobytes())
tf.train.Checkpoint(v=tf.Variable(1.0)).write(os.path.join(fault.OUT, "checkpoint"))
path = os.path.join(os.environ["FAULT_TMP"], "model.keras")
model.save(path)
print("loaded", len(keras.models.load_model(path, custom_objects={"Scale": Scale}).layers))
os.unlink(path)
fault.end(tf.random.uniform([4]).numpy().tobytes())
