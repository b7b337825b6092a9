"""Click-through rates from an ad log: a wide-and-deep model on rows that a generator turns into features."""
import datetime
import hashlib
import json
import random
import time

import numpy as np
import tensorflow as tf

HASHED = ("site", "advertiser", "device")
SIZE = 2000


def write_log(rows, seed):
    """The log as lines of text."""
    rnd = random.Random(seed)
    began = datetime.datetime(2024, 3, 1)
    lines = []
    for _ in range(rows):
        at = began + datetime.timedelta(seconds=rnd.randrange(30 * 86400))
        site, advertiser = f"site-{rnd.randrange(900)}", f"adv-{rnd.randrange(300)}"
        device = rnd.choice(["phone", "tablet", "desktop", "tv"])
        price = rnd.lognormvariate(0, 1)
        clicked = int(rnd.random() < (0.3 if at.hour > 17 and device == "phone" else 0.08))
        lines.append(f"{at.isoformat()}\t{site}\t{advertiser}\t{device}\t{price:.4f}\t{clicked}")
    return lines


def bucket(text):
    return int(hashlib.md5(text.encode()).hexdigest(), 16) % SIZE


def features(line):
    at, site, advertiser, device, price, clicked = line.split("\t")
    at = datetime.datetime.strptime(at, "%Y-%m-%dT%H:%M:%S")
    ids = [bucket(f"{name}={value}") for name, value in zip(HASHED, (site, advertiser, device))]
    ids.append(bucket(f"{site}x{advertiser}"))
    phase = 2 * np.pi * (at.hour + at.minute / 60) / 24
    numbers = [np.sin(phase), np.cos(phase), float(at.weekday() >= 5), np.log1p(float(price))]
    return {"ids": np.array(ids, "int32"), "numbers": np.array(numbers, "float32")}, np.float32(clicked)


class AdLog:
    def __init__(self, lines, seed):
        self.lines = lines
        self.rnd = random.Random(seed)

    def rows(self):
        order = list(range(len(self.lines)))
        self.rnd.shuffle(order)
        for index in order:
            yield features(self.lines[index])


def make_dataset(log, batch):
    rows, clicks = zip(*log.rows())
    columns = {name: np.stack([row[name] for row in rows]) for name in ("ids", "numbers")}
    dataset = tf.data.Dataset.from_tensor_slices((columns, np.array(clicks))).shuffle(len(rows), seed=1)
    return dataset.batch(batch).prefetch(tf.data.AUTOTUNE)


def wide_and_deep():
    ids = tf.keras.Input((4,), dtype="int32", name="ids")
    numbers = tf.keras.Input((4,), name="numbers")
    wide = tf.keras.layers.Flatten()(tf.keras.layers.Embedding(SIZE, 1)(ids))
    deep = tf.keras.layers.Flatten()(tf.keras.layers.Embedding(SIZE, 16)(ids))
    deep = tf.keras.layers.Concatenate()([deep, numbers])
    for width in (256, 128):
        deep = tf.keras.layers.Dense(width, activation="relu")(deep)
    out = tf.keras.layers.Dense(1, activation="sigmoid")(tf.keras.layers.Concatenate()([wide, deep]))
    model = tf.keras.Model({"ids": ids, "numbers": numbers}, out)
    model.compile("adam", "binary_crossentropy", metrics=["AUC"])
    return model


def main():
    tf.keras.utils.set_random_seed(47)
    lines = write_log(18_000, 47)
    dataset = make_dataset(AdLog(lines, 1), 256)
    model = wide_and_deep()
    model.fit(dataset.take(2), verbose=0)
    epochs = 3
    start = time.perf_counter()
    model.fit(dataset, epochs=epochs, verbose=2)
    seconds = time.perf_counter() - start
    print(json.dumps({"samples": len(lines) * epochs, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
