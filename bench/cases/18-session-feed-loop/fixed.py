"""Click-through model from an older code base: placeholders, a session and feed dictionaries."""
import json
import random
import time

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()

FIELDS = 20
BUCKETS = 2000


def log_lines(count, seed):
    rnd = random.Random(seed)
    lines = []
    for _ in range(count):
        values = [f"field{k}=value{int(rnd.expovariate(0.05))}" for k in range(FIELDS)]
        lines.append(f"{int(rnd.random() < 0.2)}\t" + "\t".join(values))
    return lines


def bucket(text):
    h = 2166136261
    for char in text:
        h = (h ^ ord(char)) * 16777619 & 0xFFFFFFFF
    return h % BUCKETS


class Feeder:
    """Feeds from log lines that were parsed once."""

    def __init__(self, lines, batch):
        self.batch = batch
        self.at = 0
        fields = [line.split("\t") for line in lines]
        self.labels = np.array([float(field[0]) for field in fields], "float32")
        self.ids = np.array([[bucket(value) for value in field[1:]] for field in fields], "int32")

    def next_feed(self, graph):
        chosen = (self.at + np.arange(self.batch)) % len(self.labels)
        self.at += self.batch
        return {graph["labels"]: self.labels[chosen], graph["ids"]: self.ids[chosen]}


def build():
    ids = tf.placeholder(tf.int32, (None, FIELDS), "ids")
    labels = tf.placeholder(tf.float32, (None,), "labels")
    table = tf.get_variable("table", (FIELDS * BUCKETS, 16))
    hidden = tf.reshape(tf.gather(table, ids + np.arange(FIELDS, dtype="int32") * BUCKETS), (-1, FIELDS * 16))
    for n, width in enumerate((128, 64)):
        kernel = tf.get_variable(f"kernel{n}", (hidden.shape[1], width))
        hidden = tf.nn.relu(tf.matmul(hidden, kernel))
    logit = tf.matmul(hidden, tf.get_variable("out", (64, 1)))[:, 0]
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logit))
    return {"ids": ids, "labels": labels, "loss": loss, "train": tf.train.GradientDescentOptimizer(0.1).minimize(loss)}


def main(steps=8000, batch=256):
    tf.set_random_seed(43)
    feeder = Feeder(log_lines(8192, 43), batch)
    graph = build()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run([graph["train"], graph["loss"]], feeder.next_feed(graph))
        start = time.perf_counter()
        for step in range(steps):
            feed = feeder.next_feed(graph)
            _, loss = session.run([graph["train"], graph["loss"]], feed)
            if step % 1000 == 0:
                print("step %d loss %.4f" % (step, loss))
        seconds = time.perf_counter() - start
    print(json.dumps({"samples": steps * batch, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
