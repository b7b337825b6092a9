"""Captions of video clips: a decoder with attention over the frames, written with tf.range; the frames are projected once."""
import json
import time

import numpy as np
import tensorflow as tf

CLIPS, FRAMES, FEATURES, WORDS, VOCABULARY, UNITS, BATCH = 320, 64, 256, 20, 2000, 128, 32


class Captioner(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.frames = tf.keras.layers.Dense(FEATURES, activation="tanh")
        self.key = tf.keras.layers.Dense(UNITS)
        self.value = tf.keras.layers.Dense(UNITS)
        self.embed = tf.keras.layers.Embedding(VOCABULARY, UNITS)
        self.cell = tf.keras.layers.GRUCell(UNITS)
        self.out = tf.keras.layers.Dense(VOCABULARY)
        self.frames.build((None, FRAMES, FEATURES))
        self.key.build((None, FRAMES, FEATURES))
        self.value.build((None, FRAMES, FEATURES))
        self.cell.build((None, 2 * UNITS))

    def attend(self, state, keys, values):
        weights = tf.nn.softmax(tf.einsum("bfu,bu->bf", keys, state))
        return tf.einsum("bf,bfu->bu", weights, values)

    def caption(self, clip, words):
        frames = self.frames(clip)
        keys, values = self.key(frames), self.value(frames)
        embedded = self.embed(words)
        state = tf.zeros((BATCH, UNITS))
        states = tf.TensorArray(tf.float32, WORDS, element_shape=(BATCH, UNITS))
        for t in tf.range(WORDS):
            context = self.attend(state, keys, values)
            state, _ = self.cell(tf.concat([embedded[:, t], context], -1), [state])
            state = tf.ensure_shape(state, (BATCH, UNITS))
            states = states.write(t, state)
        return self.out(tf.transpose(states.stack(), (1, 0, 2)))


def clips():
    rng = np.random.default_rng(74)
    words = rng.integers(0, VOCABULARY, (CLIPS, WORDS + 1))
    return rng.standard_normal((CLIPS, FRAMES, FEATURES)).astype("float32"), words[:, :-1], words[:, 1:]


def main():
    tf.keras.utils.set_random_seed(74)
    model, optimizer = Captioner(), tf.keras.optimizers.Adam(1e-3)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def train_step(clip, words, following):
        with tf.GradientTape() as tape:
            loss = loss_of(following, model.caption(clip, words))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    dataset = tf.data.Dataset.from_tensor_slices(clips()).batch(BATCH, drop_remainder=True).repeat().prefetch(2)
    batches = iter(dataset)
    train_step(*next(batches))
    steps = 200
    start = time.perf_counter()
    for _ in range(steps):
        loss = train_step(*next(batches))
    print(f"loss {float(loss):.4f}")
    seconds = time.perf_counter() - start
    print(json.dumps({"samples": steps * BATCH, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
