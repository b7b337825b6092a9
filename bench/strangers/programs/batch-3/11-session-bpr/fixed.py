"""BPR ranking model for the shop's co-view data (graph mode, runs in the old training image)."""
import json
import time

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()

NUM_USERS = 8000
NUM_ITEMS = 24000
DIM = 48
BATCH = 1024
STEPS = 5500
WARMUP = 20
LOG_EVERY = 1000
MARGIN_SCALE = 8.0


def make_interactions(n=400000, seed=3):
    """Users belong to taste groups, items too; users mostly view items of their own group."""
    rng = np.random.RandomState(seed)
    groups = 40
    user_group = rng.randint(groups, size=NUM_USERS)
    users = rng.randint(NUM_USERS, size=n).astype(np.int32)
    per_group = NUM_ITEMS // groups
    own = user_group[users] * per_group + (rng.power(0.6, size=n) * per_group).astype(np.int64)
    anyone = rng.randint(NUM_ITEMS, size=n)
    items = np.where(rng.rand(n) < 0.85, own, anyone).astype(np.int32)
    return users, items


class BprModel:
    """Cosine BPR: both sides live on the unit sphere, items carry a popularity bias."""

    def __init__(self, learning_rate=0.1):
        self.users = tf.placeholder(tf.int32, [None], name="users")
        self.positives = tf.placeholder(tf.int32, [None], name="positives")
        self.negatives = tf.placeholder(tf.int32, [None], name="negatives")
        self._build_tables()
        self._build_loss()
        optimizer = tf.train.AdagradOptimizer(learning_rate)
        self.train_op = optimizer.minimize(self.loss)
        self.init_op = tf.global_variables_initializer()

    def _build_tables(self):
        init = tf.random_normal_initializer(stddev=0.1, seed=11)
        with tf.variable_scope("tables"):
            self.user_table = tf.get_variable("users", [NUM_USERS, DIM], initializer=init)
            self.item_table = tf.get_variable("items", [NUM_ITEMS, DIM], initializer=init)
            self.item_bias = tf.get_variable("bias", [NUM_ITEMS], initializer=tf.zeros_initializer())
    def _user(self, ids):
        return tf.nn.l2_normalize(tf.nn.embedding_lookup(self.user_table, ids), axis=1)

    def _item(self, ids):
        return tf.nn.l2_normalize(tf.nn.embedding_lookup(self.item_table, ids), axis=1)

    def _score(self, user, ids):
        bias = tf.nn.embedding_lookup(self.item_bias, ids)
        return MARGIN_SCALE * tf.reduce_sum(user * self._item(ids), axis=1) + bias

    def _build_loss(self):
        user = self._user(self.users)
        difference = self._score(user, self.positives) - self._score(user, self.negatives)
        self.loss = -tf.reduce_mean(tf.log_sigmoid(difference))
        self.auc = tf.reduce_mean(tf.cast(difference > 0, tf.float32))


def batches(users, items, steps, seed):
    rng = np.random.RandomState(seed)
    for _ in range(steps):
        rows = rng.randint(len(users), size=BATCH)
        yield users[rows], items[rows], rng.randint(NUM_ITEMS, size=BATCH).astype(np.int32)


def train(session, model, users, items):
    losses, aucs = [], []
    started = None
    for step, (u, p, n) in enumerate(batches(users, items, WARMUP + STEPS, seed=5)):
        if step == WARMUP:
            started = time.perf_counter()
        _, loss, auc = session.run(
            [model.train_op, model.loss, model.auc],
            feed_dict={model.users: u, model.positives: p, model.negatives: n},
        )
        losses.append(loss)
        aucs.append(auc)
        if step and step % LOG_EVERY == 0:
            print("step %5d  loss %.4f  auc %.4f" % (step, np.mean(losses[-LOG_EVERY:]), np.mean(aucs[-LOG_EVERY:])))
    return time.perf_counter() - started


def main():
    users, items = make_interactions()
    model = BprModel()
    with tf.Session() as session:
        session.run(model.init_op)
        seconds = train(session, model, users, items)
    print(json.dumps({"samples": STEPS * BATCH, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
