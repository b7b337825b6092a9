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
    """Turns log lines into feeds."""

    def __init__(self, lines, batch):
        self.lines = lines
        self.batch = batch
        self.at = 0

    def parse(self, line):
        label, *values = line.split("\t")
        return float(label), [bucket(value) for value in values]

    def next_feed(self, graph):
        chosen = [self.lines[(self.at + i) % len(self.lines)] for i in range(self.batch)]
        self.at += self.batch
        rows = [self.parse(line) for line in chosen]
        return {graph["labels"]: np.array([r[0] for r in rows], "float32"),
                graph["ids"]: np.array([r[1] for r in rows], "int32")}


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


def main(steps=800, batch=256):
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
            if step % 100 == 0:
                print("step %d loss %.4f" % (step, loss))
        seconds = time.perf_counter() - start
    print(json.dumps({"samples": steps * batch, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
