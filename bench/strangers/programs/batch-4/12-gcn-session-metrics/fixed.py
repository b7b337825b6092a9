"""Two-layer graph convolution network for paper classification, after the well-known TF1 code (compat.v1 sessions)."""
import json
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()

NODES = 3000
FEATURES = 400
CLASSES = 7
HIDDEN = 16
DEGREE = 12
EPOCHS = 70
WARMUP = 10
DECAY = 0.995


def make_citation_graph(seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLASSES, NODES)
    topics = rng.random((CLASSES, FEATURES)) < 0.06
    words = (rng.random((NODES, FEATURES)) < 0.01) | (topics[labels] & (rng.random((NODES, FEATURES)) < 0.25))
    src = np.repeat(np.arange(NODES), DEGREE)
    dst = rng.integers(0, NODES, src.size)
    same = rng.random(src.size) < 0.6
    by_class = [np.flatnonzero(labels == c) for c in range(CLASSES)]
    picks = np.array([by_class[labels[s]][rng.integers(len(by_class[labels[s]]))] for s in src])
    dst = np.where(same, picks, dst)
    return words.astype(np.float32), np.stack([src, dst], axis=1), labels, rng


def normalise(edges):
    both = np.concatenate([edges, edges[:, ::-1], np.stack([np.arange(NODES)] * 2, axis=1)])
    both = np.unique(both, axis=0)
    degree = np.bincount(both[:, 0], minlength=NODES).astype(np.float32)
    values = 1.0 / np.sqrt(degree[both[:, 0]] * degree[both[:, 1]])
    return both.astype(np.int64), values.astype(np.float32)


def row_normalise(x):
    return x / np.maximum(x.sum(axis=1, keepdims=True), 1.0)


def split_masks(rng):
    order = rng.permutation(NODES)
    masks = {}
    for name, part in (("train", order[:600]), ("val", order[600:1100]), ("test", order[1100:])):
        mask = np.zeros(NODES, np.float32)
        mask[part] = 1.0
        masks[name] = mask
    return masks


def glorot(shape, name):
    limit = np.sqrt(6.0 / (shape[0] + shape[1]))
    return tf.get_variable(name, shape, initializer=tf.random_uniform_initializer(-limit, limit, seed=1))


def graph_conv(x, adj, in_dim, out_dim, name, keep_prob, act=None):
    with tf.variable_scope(name):
        weight = glorot((in_dim, out_dim), "weight")
        bias = tf.get_variable("bias", (out_dim,), initializer=tf.zeros_initializer())
        x = tf.nn.dropout(x, rate=1.0 - keep_prob)
        support = tf.matmul(x, weight)
        out = tf.sparse_tensor_dense_matmul(adj, support) + bias
        return act(out) if act else out


def masked_loss(logits, labels, mask):
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return tf.reduce_sum(loss * mask) / tf.reduce_sum(mask)


def masked_accuracy(logits, labels, mask):
    correct = tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32)
    return tf.reduce_sum(correct * mask) / tf.reduce_sum(mask)


class GCN:
    def __init__(self, adj):
        self.features = tf.placeholder(tf.float32, (NODES, FEATURES), name="features")
        self.labels = tf.placeholder(tf.int64, (NODES,), name="labels")
        self.mask = tf.placeholder(tf.float32, (NODES,), name="mask")
        self.keep_prob = tf.placeholder_with_default(1.0, (), name="keep_prob")
        self.lr = tf.Variable(0.02, trainable=False, name="lr")
        hidden = graph_conv(self.features, adj, FEATURES, HIDDEN, "gc1", self.keep_prob, tf.nn.relu)
        self.logits = graph_conv(hidden, adj, HIDDEN, CLASSES, "gc2", self.keep_prob)
        decay = 5e-4 * tf.nn.l2_loss(tf.trainable_variables()[0])
        self.loss = masked_loss(self.logits, self.labels, self.mask) + decay
        self.train_op = tf.train.AdamOptimizer(self.lr).minimize(self.loss)
        self.eval_loss = masked_loss(self.logits, self.labels, self.mask)
        self.accuracy = masked_accuracy(self.logits, self.labels, self.mask)
        self.anneal_op = tf.assign(self.lr, self.lr * DECAY)


def evaluate(sess, model, feed):
    return sess.run([model.eval_loss, model.accuracy], feed_dict=feed)


def anneal(sess, model):
    sess.run(model.anneal_op)


def main():
    features, edges, labels, rng = make_citation_graph()
    features = row_normalise(features)
    indices, values = normalise(edges)
    masks = split_masks(rng)
    tf.set_random_seed(5)
    adj = tf.SparseTensor(indices, values, (NODES, NODES))
    model = GCN(adj)
    base = {model.features: features, model.labels: labels}

    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        best = 0.0
        start = time.perf_counter()
        for epoch in range(EPOCHS):
            if epoch == WARMUP:
                start = time.perf_counter()
            _, loss = sess.run([model.train_op, model.loss],
                               feed_dict={**base, model.mask: masks["train"], model.keep_prob: 0.5})
            val_loss, val_acc = evaluate(sess, model, {**base, model.mask: masks["val"]})
            anneal(sess, model)
            best = max(best, val_acc)
            if epoch % 30 == 0:
                print(f"epoch {epoch}: loss {loss:.4f} val_loss {val_loss:.4f} val_acc {val_acc:.3f}", flush=True)
        seconds = time.perf_counter() - start
        test_loss, test_acc = evaluate(sess, model, {**base, model.mask: masks["test"]})
    print(f"best val {best:.3f}, test {test_acc:.3f}, nodes in graph {len(tf.get_default_graph().get_operations())}")
    print(json.dumps({"samples": (EPOCHS - WARMUP) * NODES, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
