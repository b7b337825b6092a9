"""Next-track model of the music app: session encoder with a margin loss against the hardest wrong track."""
import argparse
import json
import time

import keras
import numpy as np
import tensorflow as tf


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--tracks", type=int, default=8000)
    p.add_argument("--sessions", type=int, default=8000)
    p.add_argument("--length", type=int, default=12)
    p.add_argument("--dim", type=int, default=48)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--warmup", type=int, default=10)
    p.add_argument("--steps", type=int, default=800)
    p.add_argument("--margin", type=float, default=0.5)
    return p.parse_args()


def make_sessions(args, seed=45):
    rng = np.random.default_rng(seed)
    mood = rng.integers(0, 80, args.sessions)
    per_mood = args.tracks // 80
    tracks = mood[:, None] * per_mood + rng.integers(0, per_mood, (args.sessions, args.length + 1))
    stray = rng.random(tracks.shape) < 0.15
    tracks[stray] = rng.integers(0, args.tracks, stray.sum())
    return tracks[:, :-1].astype("int32"), tracks[:, -1].astype("int32")


def make_dataset(args):
    ds = tf.data.Dataset.from_tensor_slices(make_sessions(args))
    return ds.shuffle(args.sessions, seed=7).repeat().batch(args.batch, drop_remainder=True).prefetch(2)


class SessionModel(keras.Model):
    def __init__(self, tracks, dim):
        super().__init__()
        self.table = keras.layers.Embedding(tracks, dim)
        self.mix = keras.layers.Conv1D(dim, 3, padding="causal", activation="relu")
        self.hidden = keras.layers.Dense(2 * dim, activation="relu")
        self.query = keras.layers.Dense(dim)

    def call(self, session):
        x = self.table(session)
        x = self.mix(x) + x
        return self.query(self.hidden(tf.reduce_mean(x, axis=1)))

    def scores(self, query):
        return tf.matmul(query, self.table.embeddings, transpose_b=True)


def hardest_wrong(scores, target):
    """Score of the best track that was not played."""
    played = tf.one_hot(target, scores.shape[1], on_value=-1e9, off_value=0.0)
    return tf.reduce_max(scores + played, axis=-1)


def margin_loss(scores, target, margin):
    right = tf.gather(scores, target, batch_dims=1)
    wrong = hardest_wrong(scores, target)
    return tf.reduce_mean(tf.nn.softplus(wrong - right + margin)), tf.reduce_mean(tf.cast(right > wrong, tf.float32))


def make_step(model, opt, margin):
    @tf.function
    def step(session, target):
        with tf.GradientTape() as tape:
            scores = model.scores(model(session, training=True))
            loss, hit = margin_loss(scores, target, margin)
        grads = tape.gradient(loss, model.trainable_variables)
        opt.apply_gradients(zip(grads, model.trainable_variables))
        return loss, hit

    return step


def run(step, batches, n):
    losses, hits = [], []
    for _ in range(n):
        loss, hit = step(*next(batches))
        losses.append(loss)
        hits.append(hit)
    return float(tf.reduce_mean(losses)), float(tf.reduce_mean(hits))


def main():
    args = parse_args()
    keras.utils.set_random_seed(46)
    batches = iter(make_dataset(args))
    model = SessionModel(args.tracks, args.dim)
    model(next(batches)[0])
    opt = keras.optimizers.Adam(2e-3)
    opt.build(model.trainable_variables)
    step = make_step(model, opt, args.margin)
    print("warm-up: loss %.4f hit %.3f" % run(step, batches, args.warmup))
    t0 = time.perf_counter()
    result = run(step, batches, args.steps)
    seconds = time.perf_counter() - t0
    print("train: loss %.4f hit %.3f" % result)
    print(json.dumps({"samples": args.steps * args.batch, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
