"""Scores a day's card payments with a trained model and routes the suspicious ones."""
import argparse
import collections
import json
import time

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers, models

Payment = collections.namedtuple("Payment", "account amount features")


def day(count, seed):
    rng = np.random.default_rng(seed)
    for i in range(count):
        features = rng.standard_normal(30).astype("float32")
        yield Payment(account=i % 997, amount=float(rng.lognormal(3, 1)), features=features)


def trained_model():
    model = models.Sequential([layers.Input((30,)), layers.Dense(64, activation="relu"),
                               layers.Dense(32, activation="relu"), layers.Dense(1, activation="sigmoid")])
    model.compile("adam", "binary_crossentropy")
    rng = np.random.default_rng(1)
    x = rng.standard_normal((512, 30)).astype("float32")
    model.fit(x, (x[:, 0] * x[:, 1] > 0.5).astype("float32"), epochs=1, verbose=0)
    return model


class Router:
    """Sends payments to the desk that deals with them."""

    def __init__(self, model):
        self.model = model
        self.desks = collections.Counter()

    def desk(self, payment, risk):
        if risk > 0.7:
            return "stop"
        return "review" if risk * payment.amount > 10 else "pass"

    def route(self, payments):
        for payment in payments:
            risk = float(self.model.predict(payment.features[None], verbose=0)[0, 0])
            self.desks[self.desk(payment, risk)] += 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--payments", type=int, default=240)
    args = parser.parse_args()
    tf.keras.utils.set_random_seed(1)
    router = Router(trained_model())
    payments = list(day(args.payments, 6))
    router.route(payments[:1])
    start = time.perf_counter()
    router.route(payments)
    seconds = time.perf_counter() - start
    print(dict(router.desks))
    print(json.dumps({"samples": args.payments, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
