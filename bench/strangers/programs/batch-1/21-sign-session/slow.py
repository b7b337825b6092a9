"""Node classification on a citation-like graph with a SIGN model (features of 0..K hops side by side)."""
import json
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()

NUM_NODES = 6000
NUM_CLASSES = 12
FEATURE_DIM = 192
MEAN_DEGREE = 20
HOPS = 2
HIDDEN = 256
EPOCHS = 110
WARMUP = 5
EVAL_EVERY = 10


def make_graph(seed=11):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, NUM_CLASSES, NUM_NODES)
    order = np.argsort(labels, kind="stable")
    per_class = [order[labels[order] == c] for c in range(NUM_CLASSES)]
    n_edges = NUM_NODES * MEAN_DEGREE // 2
    src = rng.integers(0, NUM_NODES, n_edges)
    same = rng.random(n_edges) < 0.4
    dst = rng.integers(0, NUM_NODES, n_edges)
    for c in range(NUM_CLASSES):
        pick = np.flatnonzero(same & (labels[src] == c))
        dst[pick] = rng.choice(per_class[c], pick.size)
    centres = rng.normal(0, 0.25, (NUM_CLASSES, FEATURE_DIM))
    x = centres[labels] + rng.normal(0, 1.0, (NUM_NODES, FEATURE_DIM))
    return src, dst, x.astype(np.float32), labels


def normalised_adjacency(src, dst):
    loops = np.arange(NUM_NODES)
    rows = np.concatenate([src, dst, loops])
    cols = np.concatenate([dst, src, loops])
    keys = np.unique(rows.astype(np.int64) * NUM_NODES + cols)
    rows, cols = keys // NUM_NODES, keys % NUM_NODES
    degree = np.bincount(rows, minlength=NUM_NODES)
    inv_sqrt = 1.0 / np.sqrt(degree)
    values = (inv_sqrt[rows] * inv_sqrt[cols]).astype(np.float32)
    indices = np.stack([rows, cols], axis=1)
    return tf.SparseTensorValue(indices, values, (NUM_NODES, NUM_NODES))


def masks(seed=3):
    perm = np.random.default_rng(seed).permutation(NUM_NODES)
    train = np.zeros(NUM_NODES, np.float32)
    val = np.zeros(NUM_NODES, np.float32)
    train[perm[: NUM_NODES // 2]] = 1
    val[perm[NUM_NODES // 2:]] = 1
    return train, val


def hop_features(adj, x, hops):
    out = [x]
    for _ in range(hops):
        out.append(tf.sparse_tensor_dense_matmul(adj, out[-1]))
    return tf.concat(out, axis=1)


def dense(x, units, name, activation=None):
    with tf.variable_scope(name):
        w = tf.get_variable("w", [int(x.shape[-1]), units], initializer=tf.glorot_uniform_initializer())
        b = tf.get_variable("b", [units], initializer=tf.zeros_initializer())
        y = tf.matmul(x, w) + b
    return activation(y) if activation else y


class SignModel:
    def __init__(self):
        self.adj = tf.sparse_placeholder(tf.float32, shape=(NUM_NODES, NUM_NODES), name="adj")
        self.x = tf.placeholder(tf.float32, (NUM_NODES, FEATURE_DIM), name="x")
        self.labels = tf.placeholder(tf.int32, (NUM_NODES,), name="labels")
        self.mask = tf.placeholder(tf.float32, (NUM_NODES,), name="mask")
        self.keep_prob = tf.placeholder_with_default(1.0, (), name="keep_prob")

        h = hop_features(self.adj, self.x, HOPS)
        h = dense(h, HIDDEN, "hidden", tf.nn.relu)
        h = tf.nn.dropout(h, keep_prob=self.keep_prob)
        logits = dense(h, NUM_CLASSES, "out")

        weight = self.mask / tf.reduce_sum(self.mask)
        ce = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=self.labels, logits=logits)
        self.loss = tf.reduce_sum(ce * weight)
        hit = tf.equal(tf.argmax(logits, 1, output_type=tf.int32), self.labels)
        self.accuracy = tf.reduce_sum(tf.cast(hit, tf.float32) * weight)
        self.train_op = tf.train.AdamOptimizer(0.01).minimize(self.loss)


def main():
    src, dst, x, labels = make_graph()
    adj = normalised_adjacency(src, dst)
    train_mask, val_mask = masks()
    tf.set_random_seed(1)
    model = SignModel()
    inputs = {model.adj: adj, model.x: x, model.labels: labels}

    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        feed_train = dict(inputs)
        feed_train.update({model.mask: train_mask, model.keep_prob: 0.7})
        feed_val = dict(inputs)
        feed_val[model.mask] = val_mask
        for epoch in range(EPOCHS):
            if epoch == WARMUP:
                start = time.perf_counter()
            _, loss = sess.run([model.train_op, model.loss], feed_train)
            if (epoch + 1) % EVAL_EVERY == 0:
                val_loss, val_acc = sess.run([model.loss, model.accuracy], feed_val)
                print("epoch %d loss %.4f val_loss %.4f val_acc %.4f" % (epoch + 1, loss, val_loss, val_acc))
        seconds = time.perf_counter() - start
    print(json.dumps({"samples": (EPOCHS - WARMUP) * NUM_NODES, "seconds": round(seconds, 4)}))


if __name__ == "__main__":
    main()
