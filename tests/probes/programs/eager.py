"""TensorFlow op by op, without Keras: values that are read, then tapes. Lines end in a comment that names them."""

import tensorflow as tf

TURNS = 30
weight = tf.Variable(tf.random.normal((8, 8)))


@tf.function
def traced(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_sum(x * x)
    return tape.gradient(loss, x)


for turn in range(TURNS):
    answer = tf.matmul(weight, weight).numpy()  # answer
    last = float(tf.reduce_sum(weight))  # last

for turn in range(TURNS):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(tf.matmul(weight, weight)))
    weight.assign_sub(1e-6 * tape.gradient(loss, weight))  # gradient

print(traced(tf.constant([1.0, 2.0])).numpy().tolist())
