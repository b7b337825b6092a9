"""A regression of 30 outputs; each step looks at the errors of five of them."""
import json
import random
import time

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
INPUTS, UNITS, OUTPUTS, ROWS, SHOWN, STEPS = 64, 128, 30, 64, 5, 400


class Regression:
    def __init__(self):
        self.x = tf.placeholder(tf.float32, [None, INPUTS])
        self.y = tf.placeholder(tf.float32, [None, OUTPUTS])
        first = tf.get_variable("first", [INPUTS, UNITS])
        last = tf.get_variable("last", [UNITS, OUTPUTS])
        error = tf.square(tf.matmul(tf.nn.relu(tf.matmul(self.x, first)), last) - self.y)
        self.errors = [tf.reduce_mean(error[:, k]) for k in range(OUTPUTS)]
        self.all_errors = tf.stack(self.errors)
        self.train = tf.train.GradientDescentOptimizer(0.01).minimize(tf.reduce_mean(error))


def step(session, model, feed, shown):
    _, errors = session.run([model.train, model.all_errors], feed)
    return errors[shown]


def main():
    rng = np.random.default_rng(0)
    random.seed(1)
    model = Regression()
    start, worst = None, 0.0
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for turn in range(STEPS + 5):
            if turn == 5:
                start = time.perf_counter()
            feed = {model.x: rng.normal(size=(ROWS, INPUTS)), model.y: rng.normal(size=(ROWS, OUTPUTS))}
            worst = max(worst, *step(session, model, feed, random.sample(range(OUTPUTS), SHOWN)))
        seconds = time.perf_counter() - start
    print(f"worst {worst:.2f}")
    print(json.dumps({"samples": STEPS * ROWS, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
