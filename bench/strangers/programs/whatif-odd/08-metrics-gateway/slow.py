"""Demand forecast training with counters of the sample store pushed to the team's metrics gateway."""
import json
import socket
import threading
import time

import keras
import numpy as np
from keras import layers

SHOPS = 60
DAYS = 800
HISTORY = 56
BATCH = 64
STEPS_PER_EPOCH = 100
EPOCHS = 9
PUSH_PERIOD = 0.005


class Gateway(threading.Thread):
    """The metrics gateway: takes a line of JSON, answers when it is stored."""

    def __init__(self, store_time=0.05):
        super().__init__(daemon=True)
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self.store_time = store_time
        self.received = 0

    def run(self):
        conn, _ = self.server.accept()
        with conn, conn.makefile("rw") as lines:
            for line in lines:
                json.loads(line)
                time.sleep(self.store_time)
                self.received += 1
                lines.write("ok\n")
                lines.flush()


class Counters:
    def __init__(self):
        self.lock = threading.Lock()
        self.values = {"batches": 0, "windows": 0, "zero_days": 0, "loss": 0.0}
        self.per_shop = [0] * SHOPS

    def count(self, shops, zero_days):
        with self.lock:
            self.values["batches"] += 1
            self.values["windows"] += len(shops)
            self.values["zero_days"] += zero_days
            for s in shops:
                self.per_shop[s] += 1

    def observe(self, loss):
        with self.lock:
            self.values["loss"] = loss


class Pusher(threading.Thread):
    def __init__(self, counters, port):
        super().__init__(daemon=True)
        self.counters = counters
        self.stop = threading.Event()
        self.sock = socket.create_connection(("127.0.0.1", port))
        self.lines = self.sock.makefile("rw")

    def push(self):
        with self.counters.lock:
            message = dict(self.counters.values, per_shop=self.counters.per_shop)
            self.lines.write(json.dumps(message) + "\n")
            self.lines.flush()
            self.lines.readline()

    def run(self):
        while not self.stop.wait(PUSH_PERIOD):
            self.push()


class DemandWindows(keras.utils.PyDataset):
    def __init__(self, sales, counters, **kwargs):
        super().__init__(**kwargs)
        self.sales, self.counters = sales, counters

    def __len__(self):
        return STEPS_PER_EPOCH

    def __getitem__(self, idx):
        rng = np.random.default_rng(idx)
        shops = rng.integers(0, SHOPS, BATCH)
        days = rng.integers(0, DAYS - HISTORY - 7, BATCH)
        span = self.sales[shops[:, None], days[:, None] + np.arange(HISTORY + 7)]
        self.counters.count(shops.tolist(), int((span == 0).sum()))
        return np.log1p(span[:, :HISTORY, None]), np.log1p(span[:, HISTORY:])


def make_sales(seed=41):
    rng = np.random.default_rng(seed)
    day = np.arange(DAYS)
    rate = rng.gamma(3, 4, (SHOPS, 1)) * (1 + 0.5 * np.sin(2 * np.pi * day / 7)) * (1 + 0.2 * np.sin(day / 58))
    return rng.poisson(rate).astype("float32")


def build_model():
    inp = keras.Input((HISTORY, 1))
    x = layers.Conv1D(32, 7, strides=7, activation="relu")(inp)
    x = layers.Conv1D(64, 3, padding="same", activation="relu")(x)
    x = layers.Flatten()(x)
    x = layers.Dense(256, activation="relu")(x)
    x = layers.Dense(128, activation="relu")(x)
    return keras.Model(inp, layers.Dense(7)(x))


class LossGauge(keras.callbacks.Callback):
    def __init__(self, counters):
        super().__init__()
        self.counters = counters

    def on_train_batch_end(self, batch, logs=None):
        self.counters.observe(float(logs["loss"]))


class Clock(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            self.t0 = time.perf_counter()

    def on_train_end(self, logs=None):
        self.seconds = time.perf_counter() - self.t0


def main():
    keras.utils.set_random_seed(42)
    gateway = Gateway()
    gateway.start()
    counters = Counters()
    pusher = Pusher(counters, gateway.port)
    pusher.start()
    model = build_model()
    model.compile(keras.optimizers.Adam(1e-3), "mae")
    clock = Clock()
    data = DemandWindows(make_sales(), counters)
    hist = model.fit(data, epochs=EPOCHS, callbacks=[LossGauge(counters), clock], verbose=0)
    pusher.stop.set()
    print("mae", round(hist.history["loss"][-1], 4), counters.values, "pushes", gateway.received)
    samples = (EPOCHS - 1) * STEPS_PER_EPOCH * BATCH
    print(json.dumps({"samples": samples, "seconds": round(clock.seconds, 3)}))


if __name__ == "__main__":
    main()
