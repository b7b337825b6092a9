"""Nightly scoring of the product catalogue: quality score and category of each thumbnail, for the search index."""
import os

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ.setdefault("OMP_NUM_THREADS", "16")

import json
import sqlite3
import tempfile
import time

import keras
import numpy as np
import tensorflow as tf
from keras import layers

tf.config.threading.set_inter_op_parallelism_threads(32)
tf.config.threading.set_intra_op_parallelism_threads(32)

THUMB = 64
CATEGORIES = 12
PAGE = 400
PAGES = 12
SCORE_BATCH = 2


def conv_bn(x, filters, stride=1):
    x = layers.Conv2D(filters, 3, strides=stride, padding="same", use_bias=False)(x)
    x = layers.BatchNormalization()(x)
    return layers.ReLU()(x)


def build_scorer():
    inp = keras.Input((THUMB, THUMB, 3), dtype="float32")
    x = layers.Rescaling(1 / 127.5, offset=-1)(inp)
    x = conv_bn(x, 16, 2)
    for filters in (24, 32, 48):
        shortcut = layers.Conv2D(filters, 1, strides=2)(x)
        x = conv_bn(x, filters, 2)
        x = conv_bn(x, filters)
        x = layers.Add()([x, shortcut])
    x = layers.GlobalAveragePooling2D()(x)
    quality = layers.Dense(1, activation="sigmoid", name="quality")(x)
    category = layers.Dense(CATEGORIES, activation="softmax", name="category")(x)
    return keras.Model(inp, [quality, category])


def catalogue_pages(pages, seed=21):
    """Thumbnails of the catalogue, a page at a time, with their article numbers."""
    rng = np.random.default_rng(seed)
    palette = rng.integers(0, 255, (CATEGORIES, 3))
    for page in range(pages):
        kind = rng.integers(0, CATEGORIES, PAGE)
        thumbs = palette[kind][:, None, None, :] + rng.integers(-30, 30, (PAGE, THUMB, THUMB, 3))
        articles = [f"A{page:03d}{i:05d}" for i in range(PAGE)]
        yield articles, np.clip(thumbs, 0, 255).astype("float32")


class ScoreTable:
    def __init__(self, path):
        self.db = sqlite3.connect(path)
        self.db.execute("create table scores (article text primary key, quality real, category int)")

    def insert(self, articles, quality, category):
        rows = zip(articles, quality[:, 0].tolist(), category.argmax(1).tolist())
        with self.db:
            self.db.executemany("insert into scores values (?, ?, ?)", rows)

    def __len__(self):
        return self.db.execute("select count(*) from scores").fetchone()[0]


def score_catalogue(model, table, pages):
    done = 0
    for articles, thumbs in pages:
        quality, category = model.predict(thumbs, batch_size=SCORE_BATCH, verbose=0)
        table.insert(articles, quality, category)
        done += len(articles)
    return done


def main():
    keras.utils.set_random_seed(13)
    model = build_scorer()
    table = ScoreTable(os.path.join(tempfile.mkdtemp(prefix="scores-"), "scores.db"))
    pages = list(catalogue_pages(PAGES + 1))

    score_catalogue(model, table, pages[:1])
    t0 = time.perf_counter()
    done = score_catalogue(model, table, pages[1:])
    seconds = time.perf_counter() - t0

    top = table.db.execute("select category, count(*) c from scores group by 1 order by c desc limit 3").fetchall()
    print("rows", len(table), "largest categories", top)
    print(json.dumps({"samples": done, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
