"""A learning rate is set in each step, by an op that is made once."""

import json
import time

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
tf.set_random_seed(1)
rate = tf.Variable(0.1)
new_rate = tf.placeholder(tf.float32, [])
set_rate = tf.assign(rate, new_rate)
weight = tf.Variable(tf.ones([32, 32]))
step_op = tf.assign_sub(weight, rate * tf.tanh(weight) * 0.01)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    start = time.perf_counter()
    for step in range(400):
        session.run(set_rate, {new_rate: 0.1 / (step + 1)})
        value = session.run(step_op)
    seconds = time.perf_counter() - start
print(json.dumps({"seconds": seconds, "result": round(float(value.sum()), 3)}))
