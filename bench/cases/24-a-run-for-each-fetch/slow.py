"""A text classifier of an older code base: training, loss, accuracy and predictions in a session."""
import json
import time

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
WORDS, LENGTH, CLASSES, BATCH = 5000, 64, 6, 64


def build():
    ids = tf.placeholder(tf.int32, [None, LENGTH], "ids")
    labels = tf.placeholder(tf.int32, [None], "labels")
    hidden = tf.nn.embedding_lookup(tf.get_variable("table", [WORDS, 128]), ids)
    for i, width in enumerate((3, 5, 5)):
        kernel = tf.get_variable(f"kernel{i}", [width, 128, 128])
        hidden = tf.nn.relu(tf.nn.conv1d(hidden, kernel, 1, "SAME"))
    logits = tf.matmul(tf.reduce_max(hidden, 1), tf.get_variable("out", [128, CLASSES]))
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    guess = tf.argmax(logits, 1, output_type=tf.int32)
    accuracy = tf.reduce_mean(tf.cast(tf.equal(guess, labels), tf.float32))
    return ids, labels, tf.train.GradientDescentOptimizer(0.01).minimize(loss), loss, accuracy, guess


def main(steps=240):
    rng = np.random.default_rng(24)
    texts = rng.integers(0, WORDS, (4096, LENGTH)).astype("int32")
    topics = rng.integers(0, CLASSES, 4096).astype("int32")
    ids, labels, train, loss, accuracy, guess = build()
    confusion = np.zeros((CLASSES, CLASSES), int)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run([train, loss], {ids: texts[:BATCH], labels: topics[:BATCH]})
        start = time.perf_counter()
        for step in range(steps):
            rows = rng.integers(0, len(texts), BATCH)
            feed = {ids: texts[rows], labels: topics[rows]}
            session.run(train, feed_dict=feed)
            loss_now = session.run(loss, feed_dict=feed)
            hits = session.run(accuracy, feed_dict=feed)
            guessed = session.run(guess, feed_dict=feed)
            np.add.at(confusion, (topics[rows], guessed), 1)
            if step % 100 == 0:
                print(f"step {step} loss {loss_now:.3f} accuracy {hits:.3f}")
        spent = time.perf_counter() - start
    print(json.dumps({"samples": steps * BATCH, "seconds": round(spent, 3)}))


if __name__ == "__main__":
    main()
