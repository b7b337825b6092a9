"""tf.functions called, traced and traced again, each for one reason. Lines end in a comment that names them."""

import sys

import numpy as np
import tensorflow as tf

FOLDER = sys.argv[1]
tf.keras.utils.set_random_seed(7)


@tf.function
def scalar(x, rate):  # scalar
    return x * rate


@tf.function
def shaped(x):
    return tf.reduce_sum(x)


@tf.function
def typed(x):
    return x + x


@tf.function
def structured(parts):
    return tf.add_n(tf.nest.flatten(parts))


@tf.function
def listed(x, values):
    return x * float(values[0])


@tf.function
def with_object(x, thing):
    return x + 1.0


@tf.function
def steady(x, y):
    return tf.reduce_mean(x * y)


weight = tf.Variable(1.0)


@tf.function
def passed(x, y, training):
    loss = tf.reduce_mean((x * weight - y) ** 2)
    if training:
        weight.assign_sub(0.1 * loss)
    return loss


@tf.function
def inner(x):
    return x + 1.0


@tf.function
def outer(x):
    for _ in tf.range(3):
        x = inner(x)
    return x


class Thing:
    pass


def retraces():
    x = tf.ones([4])
    for step in range(6):
        scalar(x, 0.1 * step)  # python value
    for size in range(3, 7):
        shaped(tf.ones([size, 2]))  # shape
    for dtype in (tf.float32, tf.float64, tf.int32):
        typed(tf.ones([2], dtype))  # dtype
    structured([tf.ones(2)])
    structured([tf.ones(2), tf.ones(2)])  # structure
    structured({"a": tf.ones(2)})
    for step in range(3):
        listed(x, [step, 1])  # list value
    for _ in range(3):
        with_object(x, Thing())  # object
    for value in (np.float32(1.0), np.float32(2.0), tf.constant(3.0)):
        scalar(x, value)  # numpy value
    for step in range(4):

        @tf.function
        def in_loop(x):  # in loop
            return x * 2.0

        in_loop(x)
    for _ in range(40):
        steady(tf.ones([8, 4]), tf.ones([8, 4]))  # steady
    steady(tf.ones([3, 4]), tf.ones([3, 4]))
    outer(tf.constant(0.0))  # nested
    for _ in range(2):
        for _ in range(3):
            passed(x, x, True)  # trained
        for _ in range(4):
            passed(x, x, False)  # evaluated


def gan():
    generator = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(4)])
    critic = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
    optimizers = [tf.keras.optimizers.SGD(0.1), tf.keras.optimizers.SGD(0.1)]

    @tf.function
    def generator_step(noise):  # generator step
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(critic(generator(noise)))
        weights = generator.trainable_variables
        optimizers[0].apply_gradients(zip(tape.gradient(loss, weights), weights))
        return loss

    @tf.function
    def critic_step(images, noise):  # critic step
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(critic(images)) - tf.reduce_mean(critic(generator(noise)))
        weights = critic.trainable_variables
        optimizers[1].apply_gradients(zip(tape.gradient(loss, weights), weights))
        return loss

    data = tf.data.Dataset.from_tensor_slices(np.ones((24, 4), "float32")).batch(4)  # gan data
    total = 0.0
    for images in data:  # gan loop
        noise = tf.ones([4, 4])
        total += float(critic_step(images, noise))
        total += float(generator_step(noise))
    print(round(total, 4))


def served():
    module = tf.Module()
    module.double = tf.function(lambda x: 2.0 * x, input_signature=[tf.TensorSpec([None], tf.float32)])
    tf.saved_model.save(module, FOLDER, signatures={"double": module.double})
    loaded = tf.saved_model.load(FOLDER)
    for _ in range(3):
        loaded.double(tf.ones([5]))  # restored
    signature = loaded.signatures["double"]
    for _ in range(3):
        signature(tf.ones([5]))  # signature
    concrete = steady.get_concrete_function(tf.TensorSpec([8, 4]), tf.TensorSpec([8, 4]))
    for _ in range(3):
        concrete(tf.ones([8, 4]), tf.ones([8, 4]))  # concrete


def failing():
    @tf.function
    def broken(x):
        raise ValueError("on purpose")

    try:
        broken(tf.ones(2))
    except ValueError as error:
        print(type(error).__name__)
    print("traces", scalar.experimental_get_tracing_count(), shaped.experimental_get_tracing_count())


retraces()
gan()
served()
failing()
