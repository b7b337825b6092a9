"""Character model with a custom loop. The hunt for a NaN was over last month."""
import json
import time

import numpy as np
import tensorflow as tf

SIGNS, LENGTH, BATCH = 90, 48, 32


class CharacterModel(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.table = tf.keras.layers.Embedding(SIGNS, 48)
        self.mix = [tf.keras.layers.Conv1D(64, 3, padding="causal", activation="relu") for _ in range(4)]
        self.norms = [tf.keras.layers.LayerNormalization() for _ in range(4)]
        self.head = tf.keras.layers.Dense(SIGNS)

    def call(self, ids):
        hidden = self.table(ids)
        for mix, norm in zip(self.mix, self.norms):
            hidden = norm(mix(hidden))
        return self.head(hidden)


def main(steps=500):
    rng = np.random.default_rng(23)
    text = rng.integers(0, SIGNS, (4096, LENGTH + 1)).astype("int32")
    data = tf.data.Dataset.from_tensor_slices(text).shuffle(4096).repeat().batch(BATCH, drop_remainder=True).prefetch(2)
    model, optimizer = CharacterModel(), tf.keras.optimizers.Adam(1e-3)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def train_step(batch):
        with tf.GradientTape() as tape:
            loss = loss_of(batch[:, 1:], model(batch[:, :-1], training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    batches = iter(data)
    train_step(next(batches))
    start = time.perf_counter()
    for _ in range(steps):
        loss = train_step(next(batches))
    spent = time.perf_counter() - start
    print(f"loss {float(loss):.3f}")
    print(json.dumps({"samples": steps * BATCH, "seconds": round(spent, 3)}))


if __name__ == "__main__":
    main()
