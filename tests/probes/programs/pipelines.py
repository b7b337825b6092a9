"""tf.data pipelines with the user's Python at every place it can stand. Lines end in a comment that names them."""

import functools
import time

import numpy as np
import tensorflow as tf

keras = tf.keras
X = np.random.RandomState(0).rand(64, 4).astype("float32")
Y = np.random.RandomState(1).rand(64, 1).astype("float32")
SPEC = (tf.TensorSpec([8, 4], tf.float32), tf.TensorSpec([8, 1], tf.float32))


def slow(x):  # numpy user
    time.sleep(0.001)
    return x


def slower(scale, x):  # partial user
    return x * scale


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)

    return wrapper


@decorated
def eager_user(x):  # eager user
    return tf.math.sin(x)


def through_numpy(x, y):  # map function
    x = tf.numpy_function(slow, [x], tf.float32)  # put numpy
    x.set_shape([4])
    return x, y


def through_eager(x, y):
    x = tf.py_function(eager_user, [x], tf.float32)  # put eager
    x = tf.numpy_function(functools.partial(slower, np.float32(2.0)), [x], tf.float32)  # put partial
    x = tf.numpy_function(lambda v: v + np.float32(1.0), [x], tf.float32)  # put lambda
    x.set_shape([4])
    return x, y


def batches():  # generator user
    for start in range(0, 64, 8):
        time.sleep(0.0005)
        yield X[start : start + 8], Y[start : start + 8]


def padded():
    short = keras.utils.pad_sequences([range(1, 11)] * 64, maxlen=80, padding="post")  # pads
    print("padded", sum(int(tf.reduce_sum(x)) for x in tf.data.Dataset.from_tensor_slices(short)))
    by_hand = np.zeros((64, 96), "int64")
    by_hand[:, :5] = 7
    print("by hand", len(list(tf.data.Dataset.from_tensor_slices((by_hand, Y)))))  # pads by hand


def make_dataset():
    data = tf.data.Dataset.from_tensor_slices((X, Y))  # slices
    data = data.map(through_numpy, num_parallel_calls=2)  # map numpy
    data = data.filter(lambda x, y: tf.reduce_sum(x) > -1.0)  # filter
    data = data.shuffle(16, seed=1)  # shuffle
    data = data.map(through_eager)  # map eager
    return data.batch(8).prefetch(tf.data.AUTOTUNE)  # batch


class Items(keras.utils.Sequence):
    def __len__(self):
        return 8

    def __getitem__(self, index):  # item user
        time.sleep(0.0005)
        return X[index * 8 : index * 8 + 8], Y[index * 8 : index * 8 + 8]


class MoreItems(Items):
    pass


def endless():  # endless user
    while True:
        yield X[:8], Y[:8]


def cardinalities():
    base = tf.data.Dataset.range(2, 20, 3)
    slices = tf.data.Dataset.from_tensor_slices(X)
    for data in (
        base,
        slices.batch(10),
        slices.batch(10, drop_remainder=True),
        slices.repeat(),
        slices.repeat(3).take(100),
        slices.skip(60),
        slices.skip(70),
        slices.map(tf.identity).cache().prefetch(1),
        tf.data.Dataset.zip((slices, slices.batch(4))),
        slices.filter(lambda x: True),
    ):
        print("cardinality", int(data.cardinality()))


@tf.function
def loop_in_graph(data):
    total = tf.constant(0.0)
    for x, _ in data:
        total += tf.reduce_sum(x)
    return total


def main():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    data = make_dataset()
    model.fit(data, epochs=2, verbose=0)  # fit data
    seen = 0
    for x, _ in data:  # python loop
        seen += len(x)
    iterator = iter(data.take(2))
    iterator.get_next()
    print("seen", seen)
    generated = tf.data.Dataset.from_generator(batches, output_signature=SPEC)  # from generator
    model.fit(generated, verbose=0)  # fit generated
    model.fit(MoreItems(), verbose=0)  # fit items
    model.fit(endless(), steps_per_epoch=4, verbose=0)  # fit endless
    loop_in_graph(tf.data.Dataset.from_tensor_slices((X, Y)).batch(8))  # graph loop
    cardinalities()
    padded()

    def sleepy():
        for _ in range(150):
            time.sleep(0.006)
            yield X[:8], Y[:8]

    known = tf.data.Dataset.from_generator(sleepy, output_signature=SPEC)
    model.fit(known, verbose=0)  # fit known
    quick = tf.data.Dataset.from_tensors((X[:8], Y[:8])).repeat(150).prefetch(8)

    class Rests(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            time.sleep(0.004)

    model.fit(quick, verbose=0, callbacks=[Rests()])  # fit quick
    options = tf.data.Options()
    options.autotune.enabled = False
    model.fit(quick.with_options(options), verbose=0, callbacks=[Rests()])  # fit untuned


main()
