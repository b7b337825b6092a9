"""Learns to balance from a replay memory that fills while the first steps are made."""
import json
import time

import numpy as np
import tensorflow as tf

STATES, BATCH, CHUNKS = 2048, 128, 240


class Replay:
    """Chunks of transitions; new ones until there are enough, then the oldest are overwritten."""

    def __init__(self, chunks):
        self.limit = chunks
        self.chunks = []
        self.at = 0

    def add(self, states):
        if len(self.chunks) < self.limit:
            self.chunks.append(states.copy())
        else:
            self.chunks[self.at % self.limit][:] = states
        self.at += 1

    def draw(self, rng, count):
        chunk = self.chunks[rng.integers(0, len(self.chunks))]
        states = chunk[rng.integers(0, len(chunk), count)]
        return states, states[:, :1]


def main(steps=700, per_step=256):
    tf.keras.utils.set_random_seed(74)
    rng = np.random.default_rng(74)
    replay = Replay(CHUNKS)
    pool = rng.standard_normal((4096, STATES)).astype("float32")
    critic = tf.keras.Sequential([
        tf.keras.layers.Input((STATES,)),
        tf.keras.layers.Dense(512, activation="relu"),
        tf.keras.layers.Dense(512, activation="relu"),
        tf.keras.layers.Dense(1),
    ])
    optimizer = tf.keras.optimizers.Adam(1e-4)

    @tf.function
    def train_step(states, rewards):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(critic(states, training=True) - rewards))
        optimizer.apply_gradients(zip(tape.gradient(loss, critic.trainable_variables), critic.trainable_variables))
        return loss

    start = time.perf_counter()
    for step in range(steps):
        first = rng.integers(0, len(pool) - per_step)
        replay.add(pool[first:first + per_step])
        states, rewards = replay.draw(rng, BATCH)
        loss = train_step(tf.constant(states), tf.constant(rewards))
        if step % 100 == 0:
            print(f"step {step} loss {float(loss):.4f}")
    spent = time.perf_counter() - start
    print(json.dumps({"samples": steps * BATCH, "seconds": round(spent, 3)}))


if __name__ == "__main__":
    main()
