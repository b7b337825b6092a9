"""Trains and writes as training programs do: checkpoints, logs, a backup, a model, files in home and in /tmp."""

import csv
import os
import pathlib
import shutil
import tempfile

import numpy as np
import tensorflow as tf

here = pathlib.Path.cwd()
log = open("log.csv", "a", newline="")
csv.writer(log).writerow(["started", 1])
log.flush()
shutil.rmtree("runs", ignore_errors=True)
os.makedirs("runs/new")
pathlib.Path.home().joinpath(".cache-of-mine").write_text("cached")
pathlib.Path(tempfile.mkdtemp()).joinpath("scratch").write_bytes(bytes(1000))
pathlib.Path("notes.txt").unlink()

x = np.random.default_rng(0).normal(size=(2048, 20)).astype("float32")
y = (x.sum(axis=1) > 0).astype("float32")
model = tf.keras.Sequential([tf.keras.Input((20,)), tf.keras.layers.Dense(64, "relu"), tf.keras.layers.Dense(1)])
model.compile("adam", tf.keras.losses.BinaryCrossentropy(from_logits=True))
model.fit(
    x,
    y,
    batch_size=16,
    epochs=6,
    verbose=0,
    callbacks=[
        tf.keras.callbacks.ModelCheckpoint("checkpoints/{epoch}.keras"),
        tf.keras.callbacks.CSVLogger("log.csv", append=True),
        tf.keras.callbacks.BackupAndRestore("backup"),
        tf.keras.callbacks.TensorBoard("runs"),
    ],
)
model.save("final.keras")
print(sorted(path.name for path in here.iterdir() if not path.name.endswith(".stepscope")), flush=True)
