"""Protein families from sequences of different lengths, in buckets: the step is traced once per bucket."""
import json
import time

import numpy as np
import tensorflow as tf

FAMILIES = 10


def sequences(count, seed):
    rng = np.random.default_rng(seed)
    usage = rng.dirichlet(np.full(20, 0.5), FAMILIES)
    labels = rng.integers(0, FAMILIES, count)
    lengths = np.clip(rng.gamma(4, 40, count), 30, 400).astype(int)
    return [(rng.choice(20, n, p=usage[f]) + 1).astype("int32") for n, f in zip(lengths, labels)], labels.astype("int32")


def bucketed(chains, labels):
    ragged = tf.ragged.constant(chains, dtype=tf.int32)
    dataset = tf.data.Dataset.from_tensor_slices((ragged, labels)).map(lambda chain, label: (tf.convert_to_tensor(chain), label))
    dataset = dataset.bucket_by_sequence_length(
        lambda chain, label: tf.shape(chain)[0],
        bucket_boundaries=[101, 201, 301],
        bucket_batch_sizes=[64, 32, 24, 16],
        pad_to_bucket_boundary=False,
        padded_shapes=([None], []),
        drop_remainder=True,
    )
    widths = tf.constant([100, 200, 300, 400])

    def pad(chain, label):
        length = tf.shape(chain)[1]
        width = tf.reduce_min(tf.boolean_mask(widths, widths >= length))
        return tf.pad(chain, [[0, 0], [0, width - length]]), label

    return dataset.map(pad).cache().shuffle(200, seed=1).repeat().prefetch(2)


class FamilyNet(tf.Module):
    def __init__(self):
        super().__init__()
        self.embedding = tf.keras.layers.Embedding(21, 48)
        self.convolutions = [tf.keras.layers.Conv1D(96, 7, padding="same", activation="relu") for _ in range(3)]
        self.out = tf.keras.layers.Dense(FAMILIES)
        self.optimizer = tf.keras.optimizers.Adam(1e-3)

    def logits(self, chain):
        mask = tf.cast(chain > 0, tf.float32)[..., None]
        h = self.embedding(chain) * mask
        for convolution in self.convolutions:
            h = convolution(h) * mask
        return self.out(tf.reduce_sum(h, 1) / tf.reduce_sum(mask, 1))

    @tf.function
    def step(self, chain, label):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(label, self.logits(chain))
            loss = tf.reduce_mean(losses)
        weights = [w for layer in (self.embedding, *self.convolutions, self.out) for w in layer.trainable_variables]
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return loss


def main():
    tf.keras.utils.set_random_seed(64)
    net = FamilyNet()
    batches = iter(bucketed(*sequences(2400, 64)))
    seen = 0
    start = time.perf_counter()
    for step in range(110):
        chain, label = next(batches)
        loss = net.step(chain, label)
        seen += chain.shape[0]
        if step % 25 == 0:
            print(f"step {step}: width {chain.shape[1]}, loss {float(loss):.3f}")
    seconds = time.perf_counter() - start
    print(json.dumps({"samples": seen, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
