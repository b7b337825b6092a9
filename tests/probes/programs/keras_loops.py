"""Keras in its usual ways. Lines that a test asks for end in a comment that names them."""

import os
import pickle
import sys
import time

import numpy as np
import tensorflow as tf

keras = tf.keras
keras.utils.set_random_seed(7)
FOLDER = sys.argv[1]
X = np.random.RandomState(0).rand(40, 4).astype("float32")
Y = np.random.RandomState(1).rand(40, 1).astype("float32")
DATA = tf.data.Dataset.from_tensor_slices((X, Y)).batch(4)


def build(**settings):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(1)])
    model.compile("sgd", "mse", **settings)  # compile
    return model


class OnEpoch(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        time.sleep(0.0005)


class OnBatch(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.0005)


class Quiet(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        self.last = batch


class Inherits(OnBatch):
    def on_train_batch_end(self, batch, logs=None):
        super().on_train_batch_end(batch, logs)


class Heir(OnBatch):
    pass


class Evaluates(keras.callbacks.Callback):
    def __init__(self, every):
        super().__init__()
        self.every = every

    def on_train_batch_end(self, batch, logs=None):
        if batch % self.every == 0:
            self.model.evaluate(X, Y, verbose=0)  # evaluate in a callback


class OwnStep(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(1)

    def call(self, x):
        return self.dense(x)

    def train_step(self, data):
        return super().train_step(data)


class OwnMake(OwnStep):
    def make_train_function(self, force=False):
        def own(iterator):
            return {"loss": tf.reduce_mean(next(iterator)[0])}

        self.train_function = own
        return own


class OwnFit(OwnStep):
    def fit(self, *args, **kwargs):
        return super().fit(*args, **kwargs)  # fit of a subclass


def main():
    model = build()
    model.fit(DATA.take(1), verbose=0)  # warm
    callbacks = [OnEpoch(), OnBatch(), Quiet(), Inherits(), Heir()]
    model.fit(DATA, epochs=2, verbose=0, callbacks=callbacks)  # plain fit
    flags = [0]

    def count(epoch, logs):
        flags[0] += 1

    model.fit(DATA, epochs=3, verbose=0, callbacks=[keras.callbacks.LambdaCallback(on_epoch_end=count)])  # lambda fit
    print("lambda callback ran", flags[0])

    several = build(steps_per_execution=4)
    several.fit(DATA, epochs=2, verbose=0)  # several per execution
    eager = build(run_eagerly=True)
    eager.fit(DATA, epochs=1, verbose=0)  # eager fit

    model.fit(X, Y, batch_size=16, epochs=1, verbose=0, validation_data=(X[:8], Y[:8]))  # arrays fit
    model.fit(DATA, epochs=1, verbose=0, callbacks=[Evaluates(4)])  # evaluating fit
    print(model.predict(X, verbose=0).sum().round(4))  # predict
    for _ in range(3):
        model.train_on_batch(X[:8], Y[:8])  # train on batch
    print(np.round(model.evaluate(X, Y, verbose=0), 5))  # evaluate

    own = OwnStep()
    own.compile("sgd", "mse")
    own.fit(X, Y, batch_size=8, verbose=0)  # own step
    made = OwnMake()
    made.compile("sgd", "mse", run_eagerly=False)
    made.build((None, 4))
    made.fit(DATA, verbose=0)  # own make
    fits = OwnFit()
    fits.compile("sgd", "mse")
    fits.fit(X, Y, batch_size=8, verbose=0)  # own fit

    path = os.path.join(FOLDER, "model.keras")
    model.save(path)  # save
    loaded = keras.models.load_model(path)
    loaded.fit(DATA, verbose=0)
    model.save_weights(os.path.join(FOLDER, "w.weights.h5"))  # save weights
    clone = keras.models.clone_model(model)
    again = pickle.loads(pickle.dumps(model))
    print("pickled", np.allclose(again.get_weights()[0], model.get_weights()[0]), len(clone.layers))
    checkpoint = tf.train.Checkpoint(model=model)
    manager = tf.train.CheckpointManager(checkpoint, FOLDER, 2)
    for _ in range(2):
        manager.save()  # manager
    checkpoint.write(os.path.join(FOLDER, "own"))  # write
    print(sorted(name for name, _ in tf.train.list_variables(os.path.join(FOLDER, "own")))[:3])
    module = tf.Module()
    module.f = tf.function(lambda x: x + 1.0, input_signature=[tf.TensorSpec([None], tf.float32)])
    tf.saved_model.save(module, os.path.join(FOLDER, "saved"))  # saved model
    model.fit(DATA, verbose=0, callbacks=[keras.callbacks.ModelCheckpoint(path)])  # checkpointing fit
    writer = tf.summary.create_file_writer(FOLDER)
    with writer.as_default():
        for step in range(5):
            tf.summary.write("value", tf.zeros([64, 64]), step=step)  # summary
        writer.flush()  # flush
    for _ in range(3):
        model(X[:2])  # eager call
    optimizer = keras.optimizers.SGD()
    variable = tf.Variable(1.0)
    for _ in range(3):
        optimizer.apply_gradients([(tf.constant(0.5), variable)])  # apply
    print(float(variable))  # short read
    digest = [float(np.round(np.abs(w).sum(), 4)) for w in model.get_weights()]
    print(digest)
    big = tf.zeros([1500, 1500])
    big.numpy()  # big copy
    tf.profiler.experimental.start(FOLDER)
    tf.profiler.experimental.stop()
    with tf.profiler.experimental.Profile(FOLDER):
        pass


main()
