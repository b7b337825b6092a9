"""Churn score: monthly retraining of the small classifier that marketing uses for its retention mailings."""
import argparse
import json
import os
import tempfile
import time

import keras
import numpy as np
from keras import layers

N_CUSTOMERS = 5200
N_USAGE = 28
PLANS = ["prepaid", "basic", "family", "business", "legacy"]


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=6)
    p.add_argument("--batch-size", type=int, default=4)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--log-freq", default=1)
    p.add_argument("--logdir", default=tempfile.mkdtemp(prefix="churn-tb-"))
    return p.parse_args()


def load_customers(seed=7):
    rng = np.random.default_rng(seed)
    usage = rng.gamma(2.0, 1.0, size=(N_CUSTOMERS, N_USAGE)).astype("float32")
    plan = rng.integers(0, len(PLANS), size=N_CUSTOMERS).astype("int32")
    tenure = rng.integers(1, 96, size=N_CUSTOMERS).astype("float32")
    risk = usage[:, 0] - 0.6 * usage[:, 3] + 0.4 * (plan == 0) - tenure / 60.0
    churned = (risk + rng.normal(0, 0.7, N_CUSTOMERS) > 0.4).astype("float32")
    usage = (usage - usage.mean(0)) / usage.std(0)
    tenure = (tenure - tenure.mean()) / tenure.std()
    return {"usage": usage, "plan": plan, "tenure": tenure[:, None]}, churned


def build_model():
    usage = keras.Input((N_USAGE,), name="usage")
    plan = keras.Input((), dtype="int32", name="plan")
    tenure = keras.Input((1,), name="tenure")
    plan_vec = layers.Embedding(len(PLANS), 4)(plan)
    x = layers.Concatenate()([usage, plan_vec, tenure])
    for width in (96, 64, 32):
        x = layers.Dense(width, activation="relu")(x)
        x = layers.Dropout(0.1)(x)
    out = layers.Dense(1, activation="sigmoid", name="churn")(x)
    return keras.Model([usage, plan, tenure], out)


class EpochClock(keras.callbacks.Callback):
    """Wall clock per epoch, the first one left out."""

    def __init__(self):
        super().__init__()
        self.times = []

    def on_epoch_begin(self, epoch, logs=None):
        self._t0 = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        self.times.append(time.perf_counter() - self._t0)

    def steady(self):
        return sum(self.times[1:]), len(self.times) - 1


def make_callbacks(args, clock):
    board = keras.callbacks.TensorBoard(
        log_dir=os.path.join(args.logdir, "run"),
        update_freq=args.log_freq,
        write_graph=False,
    )
    return [clock, board]


def main():
    args = parse_args()
    keras.utils.set_random_seed(3)
    x, y = load_customers()
    model = build_model()
    model.compile(
        optimizer=keras.optimizers.Adam(args.lr),
        loss="binary_crossentropy",
        metrics=["accuracy", keras.metrics.AUC(name="auc")],
    )
    clock = EpochClock()
    history = model.fit(
        x, y,
        batch_size=args.batch_size,
        epochs=args.epochs,
        shuffle=True,
        callbacks=make_callbacks(args, clock),
        verbose=0,
    )
    print("auc by epoch:", [round(v, 3) for v in history.history["auc"]])
    seconds, epochs = clock.steady()
    print(json.dumps({"samples": epochs * len(y), "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
