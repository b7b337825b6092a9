"""One rank of a Horovod job with TensorFlow: ``horovod_rank.py loop|fit [SLOW]``; rank SLOW sleeps 30 ms in each step."""

import sys
import time

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

HOW = sys.argv[1]
SLOW = int(sys.argv[2]) if len(sys.argv) > 2 else -1
BATCH = 32


class Sleeps(tf.keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        time.sleep(0.03)


def rows():
    x = np.random.default_rng(hvd.rank()).random((1024, 64), np.float32)
    return tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(BATCH, drop_remainder=True).repeat()


def layers():
    return [tf.keras.layers.Dense(256, "relu") for _ in range(3)] + [tf.keras.layers.Dense(1)]


def loop():
    model = tf.keras.Sequential([tf.keras.layers.Input((64,)), *layers()])
    optimizer = tf.keras.optimizers.SGD(0.01)

    @tf.function
    def train_step(x, y, first):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
        tape = hvd.DistributedGradientTape(tape)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        if first:
            hvd.broadcast_variables(model.variables, root_rank=0)
        return loss

    for number, (x, y) in enumerate(rows().take(300)):
        if hvd.rank() == SLOW:
            time.sleep(0.03)
        train_step(x, y, number == 0)


def fit():
    import horovod.keras as hvd_keras

    model = tf.keras.Sequential([tf.keras.layers.Input((64,)), *layers()])
    model.compile(hvd_keras.DistributedOptimizer(tf.keras.optimizers.SGD(0.01)), "mse")
    callbacks = [hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0)]
    if hvd.rank() == SLOW:
        callbacks.append(Sleeps())
    model.fit(rows(), steps_per_epoch=75, epochs=4, verbose=0, callbacks=callbacks)


hvd.init()
loop() if HOW == "loop" else fit()
