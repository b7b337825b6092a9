"""Click model on a table of numeric and categorical columns: embeddings, wide MLP, own loop."""
import json
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf
from keras import layers

ROWS, NUMERIC = 40_960, 26
CARDINALITY = (1000, 365, 50, 24, 12, 200)
BATCH = 2048
EPOCHS = 3


def make_table(seed=0):
    rng = np.random.default_rng(seed)
    numeric = rng.lognormal(0, 1, (ROWS, NUMERIC)).astype(np.float32)
    numeric = np.log1p(numeric)
    cats = np.stack([rng.integers(0, c, ROWS) for c in CARDINALITY], 1).astype(np.int32)
    effect = sum(rng.normal(0, 0.5, c)[cats[:, i]] for i, c in enumerate(CARDINALITY))
    logit = effect + numeric @ rng.normal(0, 0.5, NUMERIC) - 1.0
    label = (rng.random(ROWS) < 1 / (1 + np.exp(-logit))).astype(np.float32)
    return numeric, cats, label


def split(table, holdout=4096):
    train = tuple(column[:-holdout] for column in table)
    valid = tuple(column[-holdout:] for column in table)
    return train, valid


def make_dataset(table, training):
    numeric = table[0]
    ds = tf.data.Dataset.from_tensor_slices((numeric, table[1], table[2]))
    ds = ds.batch(BATCH, drop_remainder=True).cache()
    if training:
        ds = ds.shuffle(64, seed=4)
    return ds.prefetch(tf.data.AUTOTUNE)


def build_model(numeric):
    x_num = layers.Input((NUMERIC,))
    x_cat = layers.Input((len(CARDINALITY),), dtype="int32")
    norm = layers.Normalization()
    norm.adapt(numeric)
    parts = [norm(x_num)]
    for i, c in enumerate(CARDINALITY):
        parts.append(layers.Embedding(c, 16)(x_cat[:, i]))
    x = layers.Concatenate()(parts)
    for _ in range(3):
        x = layers.Dense(768, activation="relu")(x)
    return keras.Model([x_num, x_cat], layers.Dense(1)(x)[:, 0])


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = keras.optimizers.Adam(1e-3)
        self.optimizer.build(model.trainable_variables)
        self.auc = keras.metrics.AUC(from_logits=True)

    @tf.function
    def train_step(self, numeric, cats, label):
        with tf.GradientTape() as tape:
            logit = self.model([numeric, cats], training=True)
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(label, logit))
        grads = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply(grads, self.model.trainable_variables)
        return loss

    @tf.function
    def valid_step(self, numeric, cats, label):
        self.auc.update_state(label, self.model([numeric, cats], training=False))

    def validate(self, ds):
        self.auc.reset_state()
        for batch in ds:
            self.valid_step(*batch)
        return float(self.auc.result())


def main():
    keras.utils.set_random_seed(0)
    train, valid = split(make_table())
    train_ds, valid_ds = make_dataset(train, True), make_dataset(valid, False)
    trainer = Trainer(build_model(train[0]))
    for batch in train_ds:
        trainer.train_step(*batch)
        break
    trainer.validate(valid_ds)

    seen, started = 0, time.perf_counter()
    for epoch in range(EPOCHS):
        losses = []
        for batch in train_ds:
            losses.append(trainer.train_step(*batch))
        seen += len(losses) * BATCH
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.4f} auc {trainer.validate(valid_ds):.4f}", flush=True)
    seconds = time.perf_counter() - started
    print(json.dumps({"samples": seen, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
