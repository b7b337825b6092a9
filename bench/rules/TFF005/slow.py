"""A custom training loop whose step runs eagerly."""

import json
import time

import tensorflow as tf

tf.keras.utils.set_random_seed(1)
model = tf.keras.Sequential(
    [tf.keras.Input((16,)), tf.keras.layers.Dense(32, "relu"), tf.keras.layers.Dense(32, "relu"), tf.keras.layers.Dense(1)]
)
optimizer = tf.keras.optimizers.SGD(0.01)
optimizer.build(model.trainable_variables)
x = tf.random.stateless_normal([4800, 16], seed=[1, 2])
y = tf.reduce_sum(x, axis=1, keepdims=True)
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(32)


def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


train_step(x[:32], y[:32])
total = 0.0
start = time.perf_counter()
for x_batch, y_batch in data:
    total += train_step(x_batch, y_batch)
print(json.dumps({"seconds": time.perf_counter() - start, "result": round(float(total), 2)}))
