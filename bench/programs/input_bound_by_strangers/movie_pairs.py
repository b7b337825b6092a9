"""Random items that a user has not seen are drawn by a numpy_function, pair by pair."""
import harness
import numpy as np
import tensorflow as tf

BATCH = 128
USERS, ITEMS, DRAWN = 200, 500, 8

rng = np.random.default_rng(10)
SEEN = [np.sort(rng.choice(ITEMS, rng.integers(8, 40), replace=False)) for _ in range(USERS)]
PAIRS = np.array([(user, item) for user in range(USERS) for item in SEEN[user]], np.int64)
PAIRS = PAIRS[rng.permutation(len(PAIRS))[:2560]]
FREE = np.ones((USERS, ITEMS), bool)
for user, seen in enumerate(SEEN):
    FREE[user, seen] = False


def draw(user):
    unseen = np.flatnonzero(FREE[user])
    return np.random.choice(unseen, DRAWN)


def with_unseen(pair):
    user, item = pair[0], pair[1]
    unseen = tf.numpy_function(draw, [user], tf.int64)
    unseen.set_shape([DRAWN])
    items = tf.concat([item[None], unseen], axis=0)
    clicked = tf.concat([tf.ones([1]), tf.zeros([DRAWN])], axis=0)
    return {"user": user, "items": items}, clicked


def pipeline():
    ds = tf.data.Dataset.from_tensor_slices(PAIRS)
    ds = ds.repeat()
    ds = ds.shuffle(1024)
    ds = ds.map(with_unseen, num_parallel_calls=tf.data.AUTOTUNE)
    ds = ds.batch(BATCH)
    return ds.prefetch(tf.data.AUTOTUNE)


UNSEEN = [np.flatnonzero(free) for free in FREE]
COUNTS = np.array([len(unseen) for unseen in UNSEEN])
TABLE = np.stack([np.pad(unseen, (0, ITEMS - len(unseen))) for unseen in UNSEEN])


def draw_from_table(user):
    return UNSEEN[user][np.random.randint(COUNTS[user], size=DRAWN)]


def draw_batch(users):
    places = (np.random.random((len(users), DRAWN)) * COUNTS[users][:, None]).astype(np.int64)
    return TABLE[users[:, None], places]


def draw_ops(users):
    """For one user or a batch of them."""
    counts = tf.cast(tf.gather(COUNTS, users), tf.float32)[..., None]
    shape = tf.concat([tf.shape(users), [DRAWN]], axis=0)
    places = tf.cast(tf.random.uniform(shape) * counts, tf.int64)
    return tf.gather_nd(TABLE, tf.stack([tf.broadcast_to(users[..., None], shape), places], axis=-1))


def joined(pair, unseen):
    items = tf.concat([pair[..., 1:], unseen], axis=-1)
    clicked = tf.concat([tf.ones(tf.shape(pair[..., 1:])), tf.zeros(tf.shape(unseen))], axis=-1)
    return {"user": pair[..., 0], "items": items}, clicked


def by_numpy(function, rank):
    def mapped(pair):
        unseen = tf.numpy_function(function, [pair[..., 0]], tf.int64)
        unseen.set_shape([None] * rank + [DRAWN])
        return joined(pair, unseen)
    return mapped


def made(function=with_unseen, per_batch=False, calls=tf.data.AUTOTUNE, prefetch=True):
    ds = tf.data.Dataset.from_tensor_slices(PAIRS).repeat().shuffle(1024)
    if per_batch:
        ds = ds.batch(BATCH).map(function, num_parallel_calls=calls)
    else:
        ds = ds.map(function, num_parallel_calls=calls).batch(BATCH)
    return ds.prefetch(tf.data.AUTOTUNE) if prefetch else ds


def by_ops(pair):
    return joined(pair, draw_ops(pair[..., 0]))


GRID = {
    "as it is, no calls": lambda: made(calls=None),
    "as it is, 4 calls": lambda: made(calls=4),
    "numpy from a table": lambda: made(by_numpy(draw_from_table, 0)),
    "numpy per batch": lambda: made(by_numpy(draw_batch, 1), True),
    "ops per pair": lambda: made(by_ops),
    "ops per batch": lambda: made(by_ops, True),
    "ops per batch, no calls": lambda: made(by_ops, True, None),
    "ops per batch, no calls, no prefetch": lambda: made(by_ops, True, None, False),
}
EPOCH = 2560 // BATCH

if __name__ == "__main__":
    harness.main(pipeline, GRID, EPOCH)
