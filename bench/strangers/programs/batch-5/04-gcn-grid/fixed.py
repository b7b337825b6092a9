"""GCN that labels substations of a power grid by outage risk class.

Port of our 2018 code base: graph mode, placeholders and one Session.
"""
import json
import time

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()

N_NODES, N_EDGES, N_FEATURES, N_CLASSES = 1800, 9000, 160, 6


class Grid:
    """Edge list (both directions), conductance per edge, node features, labels."""

    def __init__(self, seed=3):
        rng = np.random.default_rng(seed)
        place = rng.uniform(size=(N_NODES, 2))
        order = np.lexsort((place[:, 1], (place[:, 0] * 50).astype(int)))
        place = place[order]
        src = rng.integers(0, N_NODES, N_EDGES)
        dst = np.clip(src + rng.integers(-60, 61, N_EDGES), 0, N_NODES - 1)
        keep = src != dst
        pairs = np.unique(np.sort(np.stack([src[keep], dst[keep]], 1), axis=1), axis=0)
        self.edges = np.concatenate([pairs, pairs[:, ::-1]])
        self.conductance = np.tile(rng.uniform(0.5, 1.5, len(pairs)), 2).astype(np.float32)
        self.labels = (place[:, 0] * N_CLASSES).astype(np.int32)
        centres = rng.normal(size=(N_CLASSES, N_FEATURES))
        noise = 3.0 * rng.normal(size=(N_NODES, N_FEATURES))
        self.features = (centres[self.labels] + noise).astype(np.float32)
        shuffled = rng.permutation(N_NODES)
        self.train_nodes, self.test_nodes = shuffled[:600], shuffled[600:]

    def normalized_adjacency(self):
        loops = np.arange(N_NODES)
        rows = np.concatenate([self.edges[:, 0], loops])
        cols = np.concatenate([self.edges[:, 1], loops])
        values = np.concatenate([self.conductance, np.ones(N_NODES, np.float32)])
        d_inv_sqrt = 1.0 / np.sqrt(np.bincount(rows, weights=values, minlength=N_NODES))
        values = (values * d_inv_sqrt[rows] * d_inv_sqrt[cols]).astype(np.float32)
        order = np.lexsort((cols, rows))
        return np.stack([rows, cols], 1)[order].astype(np.int64), values[order]


def glorot(name, shape):
    return tf.get_variable(name, shape, initializer=tf.glorot_uniform_initializer(seed=1))


class GCN:
    def __init__(self, grid, hidden=128, lr=0.01, weight_decay=5e-4):
        indices, values = grid.normalized_adjacency()
        self.support = tf.SparseTensor(indices, values, [N_NODES, N_NODES])
        self.features = tf.constant(grid.features, name="features")
        self.labels = tf.placeholder(tf.int32, [None], name="labels")
        self.nodes = tf.placeholder(tf.int32, [None], name="nodes")
        self.keep_prob = tf.placeholder_with_default(1.0, [], name="keep_prob")

        h = self.features
        weights = []
        for layer, (n_in, n_out) in enumerate([(N_FEATURES, hidden), (hidden, hidden),
                                               (hidden, N_CLASSES)]):
            w = glorot(f"w{layer}", [n_in, n_out])
            weights.append(w)
            h = tf.nn.dropout(h, rate=1 - self.keep_prob, seed=layer)
            h = self.propagate(tf.matmul(h, w))
            if layer < 2:
                h = tf.nn.relu(h)
        logits = tf.gather(h, self.nodes)
        ce = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=self.labels, logits=logits)
        self.loss = tf.reduce_mean(ce) + weight_decay * tf.nn.l2_loss(weights[0])
        hit = tf.equal(tf.argmax(logits, 1, output_type=tf.int32), self.labels)
        self.accuracy = tf.reduce_mean(tf.cast(hit, tf.float32))
        self.train_op = tf.train.AdamOptimizer(lr).minimize(self.loss)

    def propagate(self, h):
        return tf.sparse.sparse_dense_matmul(self.support, h)


def construct_feed_dict(model, grid, nodes, keep_prob=1.0):
    return {
        model.labels: grid.labels[nodes],
        model.nodes: nodes,
        model.keep_prob: keep_prob,
    }


def run_epochs(sess, model, grid, epochs, report=30):
    for epoch in range(1, epochs + 1):
        feed = construct_feed_dict(model, grid, grid.train_nodes, keep_prob=0.6)
        _, loss = sess.run([model.train_op, model.loss], feed_dict=feed)
        if epoch % report == 0:
            accuracy = sess.run(model.accuracy,
                                feed_dict=construct_feed_dict(model, grid, grid.test_nodes))
            print(f"epoch {epoch:4d}  loss {loss:.4f}  test accuracy {accuracy:.3f}")


def main():
    tf.set_random_seed(8)
    grid = Grid()
    model = GCN(grid)
    epochs = 120
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        run_epochs(sess, model, grid, 5)
        t0 = time.perf_counter()
        run_epochs(sess, model, grid, epochs)
        seconds = time.perf_counter() - t0
    print(json.dumps({"samples": epochs, "seconds": round(seconds, 4)}))


if __name__ == "__main__":
    main()
