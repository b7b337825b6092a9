"""Multi-layer perceptron of an older code base: graph, session, ready-made feeds."""
import json
import time

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()


def layer(x, width, name, activation=None):
    with tf.variable_scope(name):
        kernel = tf.get_variable("kernel", (int(x.shape[1]), width), initializer=tf.glorot_uniform_initializer())
        bias = tf.get_variable("bias", (width,), initializer=tf.zeros_initializer())
    out = tf.matmul(x, kernel) + bias
    return activation(out) if activation else out


def build(dim, classes):
    x = tf.placeholder(tf.float32, (None, dim))
    y = tf.placeholder(tf.int32, (None,))
    h = layer(x, 1024, "one", tf.nn.relu)
    h = layer(h, 512, "two", tf.nn.relu)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=layer(h, classes, "top")))
    return x, y, loss, tf.train.AdamOptimizer(1e-3).minimize(loss)


def main(steps=2200, batch=128, dim=400):
    rng = np.random.default_rng(83)
    data = rng.standard_normal((6400, dim)).astype("float32")
    kind = (data[:, :10].argmax(1)).astype("int32")
    tf.set_random_seed(83)
    x, y, loss, train = build(dim, 10)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train, {x: data[:batch], y: kind[:batch]})
        start = time.perf_counter()
        for step in range(steps):
            at = step * batch % len(data)
            feed = {x: data[at:at + batch], y: kind[at:at + batch]}
            if step % 100 == 0:
                print("step", step, "loss", session.run([loss, train], feed)[0])
            else:
                session.run(train, feed)
        seconds = time.perf_counter() - start
    print(json.dumps({"samples": steps * batch, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
