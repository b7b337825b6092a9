"""Trains an encoder with attention in a loop of its own; argument: batch size."""

import sys

import tensorflow as tf

BATCH, LENGTH, WIDTH = int(sys.argv[1]), 384, 128


class Block(tf.keras.layers.Layer):
    """Attention and two dense layers."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = tf.keras.layers.MultiHeadAttention(8, WIDTH // 8)
        self.first, self.second = tf.keras.layers.LayerNormalization(), tf.keras.layers.LayerNormalization()
        self.wide = tf.keras.layers.Dense(4 * WIDTH, activation="gelu")
        self.narrow = tf.keras.layers.Dense(WIDTH)

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """Two residual steps."""
        x = self.first(x + self.attention(x, x))
        return self.second(x + self.narrow(self.wide(x)))


embed = tf.keras.layers.Embedding(8000, WIDTH)
blocks = [Block() for _ in range(4)]
head = tf.keras.layers.Dense(2)
optimizer = tf.keras.optimizers.Adam(1e-3)
measure = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def train_step(tokens: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """One step."""
    with tf.GradientTape() as tape:
        x = embed(tokens)
        for block in blocks:
            x = block(x)
        loss = measure(labels, head(tf.reduce_mean(x, 1)))
    variables = tape.watched_variables()
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss


data = tf.data.Dataset.range(100_000).map(
    lambda i: (tf.random.uniform((LENGTH,), 0, 8000, tf.int32), i % 2)
)
for number, (tokens, labels) in enumerate(data.batch(BATCH).take(12)):
    print(number, float(train_step(tokens, labels)), flush=True)
print("done", flush=True)
