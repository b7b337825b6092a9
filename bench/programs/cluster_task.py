"""One task of a cluster as TensorFlow 1 has it: a parameter server, or a worker with a MonitoredTrainingSession.

A worker trains until a file exists, asks for the largest weight after every tenth step, and says at its end how often
it ran either, and when its steps ended. Where another file tells a number, it traces so many of its steps by itself, as
TensorFlow's guides show it, and takes the file away after as many steps more.
"""

import argparse
import json
import os
import time

import numpy as np
import tensorflow.compat.v1 as tf


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--job", choices=("ps", "worker"))
    parser.add_argument("--task", type=int)
    parser.add_argument("--cluster", help="JSON: addresses of each job's tasks")
    parser.add_argument("--until", help="a file")
    parser.add_argument("--side", type=int, default=64, help="rows and columns of the weights of each layer")
    parser.add_argument("--batch", type=int, default=0, help="rows of a batch; 0: a quarter of the side, at least 16")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--pause-ms", type=float, default=5.0, help="between steps")
    parser.add_argument("--own", default="", help="a file: how many steps to trace by itself")
    options = parser.parse_args()
    tf.disable_v2_behavior()
    cluster = tf.train.ClusterSpec(json.loads(options.cluster))
    me = "/job:%s/task:%d" % (options.job, options.task)
    config = tf.ConfigProto(device_filters=["/job:ps", me])
    server = tf.train.Server(cluster, job_name=options.job, task_index=options.task, config=config)
    if options.job == "ps":
        server.join()
    train(server, cluster, me, config, options)


def train(server, cluster, me, config, options):
    side = options.side
    with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=me)):
        x = tf.placeholder(tf.float32, [None, side], name="x")
        y = x
        for layer in range(options.layers):
            weights = tf.get_variable("weights_%d" % layer, [side, side])
            y = tf.tanh(tf.matmul(y, weights))
        loss = tf.reduce_mean(tf.square(y - 0.5), name="loss")
        largest = tf.reduce_max(weights, name="largest")
        steps = tf.train.get_or_create_global_step()
        train_op = tf.train.GradientDescentOptimizer(0.01).minimize(loss, steps, name="train")
    batch = np.ones((options.batch or max(16, side // 4), side), np.float32)
    runs, ends, own = {"train": 0, "largest": 0}, [], []
    last = 0
    """The step after which the file goes."""
    chief = options.task == 0
    with tf.train.MonitoredTrainingSession(master=server.target, is_chief=chief, config=config) as session:
        while not os.path.exists(options.until):
            if options.own and not last and os.path.exists(options.own):
                with open(options.own) as stream:
                    count = int(stream.read())
                own.append([len(ends), len(ends) + count])
                last = len(ends) + 2 * count
            if own and len(ends) < own[-1][1]:
                full = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
                session.run([train_op, loss], {x: batch}, options=full, run_metadata=tf.RunMetadata())
            else:
                session.run([train_op, loss], {x: batch})
            ends.append(time.monotonic_ns())
            runs["train"] += 1
            if runs["train"] % 10 == 0:
                session.run(largest)
                runs["largest"] += 1
            if last and len(ends) > last:
                os.remove(options.own)
                last = 0
            time.sleep(options.pause_ms / 1000)
    print(json.dumps({"runs": runs, "ends": ends, "own": own}), flush=True)


if __name__ == "__main__":
    main()
