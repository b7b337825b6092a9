"""Two dozen steps of a small model, with the number of the step as a tensor."""

import json
import time

import tensorflow as tf

tf.keras.utils.set_random_seed(1)
model = tf.keras.Sequential([tf.keras.Input((16,)), tf.keras.layers.Dense(32, "relu"), tf.keras.layers.Dense(1)])
x = tf.random.stateless_normal([24, 32, 16], seed=[1, 2])
data = tf.data.Dataset.from_tensor_slices(x)


@tf.function
def step(batch, number):
    rate = 0.1 / (1.0 + tf.cast(number, tf.float32))
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(batch, training=True)))
    for variable, gradient in zip(model.trainable_variables, tape.gradient(loss, model.trainable_variables)):
        variable.assign_sub(rate * gradient)
    return loss


start = time.perf_counter()
total = 0.0
for number, batch in enumerate(data):
    total += step(batch, tf.constant(number))
print(json.dumps({"seconds": time.perf_counter() - start, "result": round(float(total), 4)}))
