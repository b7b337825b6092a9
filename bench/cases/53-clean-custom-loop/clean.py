"""Distils a large teacher into a small student in a loop written by hand."""
import json
import time

import numpy as np
import tensorflow as tf


class Distiller:
    def __init__(self, dim, classes, temperature=3.0):
        dense = tf.keras.layers.Dense
        self.teacher = tf.keras.Sequential([dense(1024, "relu"), dense(1024, "relu"), dense(classes)])
        self.student = tf.keras.Sequential([dense(256, "relu"), dense(classes)])
        self.teacher.build((None, dim))
        self.student.build((None, dim))
        self.optimizer = tf.keras.optimizers.Adam(1e-3)
        self.temperature = temperature
        self.loss = tf.keras.metrics.Mean()

    @tf.function(reduce_retracing=True)
    def step(self, x):
        goal = tf.nn.softmax(self.teacher(x) / self.temperature)
        with tf.GradientTape() as tape:
            logits = self.student(x, training=True) / self.temperature
            loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(goal, logits))
        weights = self.student.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        self.loss.update_state(loss)


def stream(batch, dim):
    def draw(seed):
        return tf.random.stateless_normal((batch, dim), seed=tf.stack([seed, 7]))
    return tf.data.Dataset.counter().map(draw, num_parallel_calls=2).prefetch(4)


def main(steps=1600, batch=192, dim=256):
    tf.keras.utils.set_random_seed(61)
    distiller = Distiller(dim, 64)
    batches = iter(stream(batch, dim))
    distiller.step(next(batches))
    start = time.perf_counter()
    for step in range(steps):
        distiller.step(next(batches))
        if step % 100 == 99:
            print(f"{step + 1:4d} loss {float(distiller.loss.result()):.4f}")
            distiller.loss.reset_state()
    seconds = time.perf_counter() - start
    print(json.dumps({"samples": steps * batch, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
