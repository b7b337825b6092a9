"""A worker of a MultiWorkerMirroredStrategy (TF_CONFIG): ``mirrored_worker.py STEPS [SLOW]``; worker SLOW sleeps 30 ms."""

import json
import os
import sys
import time

import tensorflow as tf

STEPS = int(sys.argv[1])
SLOW = int(sys.argv[2]) if len(sys.argv) > 2 else -1
SIDE, BATCH = 256, 64


def load(index):
    if index == SLOW:
        time.sleep(0.03)


def main():
    index = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        layers = [tf.Variable(tf.random.normal([SIDE, SIDE]) / SIDE) for _ in range(4)]
    rows = tf.data.Dataset.from_tensors((tf.ones([SIDE]), tf.ones([SIDE]))).repeat().batch(BATCH)
    batches = iter(strategy.distribute_datasets_from_function(lambda context: rows))

    @tf.function
    def train_step(x, y):
        def replica(x, y):
            with tf.GradientTape() as tape:
                made = x
                for weights in layers:
                    made = tf.tanh(tf.matmul(made, weights))
                loss = tf.reduce_mean(tf.square(made - y))
            gradients = tape.gradient(loss, layers)
            gradients = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, gradients)
            for weights, gradient in zip(layers, gradients):
                weights.assign_sub(0.01 * gradient)
            return loss

        return strategy.run(replica, args=(x, y))

    for _ in range(STEPS):
        load(index)
        train_step(*next(batches))


main()
