#!/usr/bin/env bash
# Keras on JAX: an empty batch callback makes every step wait; with async_safe its calls run several at once.
#
# Expected: a callback whose on_train_batch_end does nothing changes nothing of a fit; Keras calls the hooks of one
# callback one after the other, in the order of the batches, on the thread that called fit.
#
# Happens (Keras 3.15.1, JAX 0.10.2, CPU, Python 3.11): with such a callback Keras reads the loss of each batch before
# the next step is asked for, so that host and device take turns (with JAX 0.12.0.1 a fit of 256-512-512-1 took 9.1 ms a
# step, 4.2 without). With async_safe = True on the callback it does not wait, but submits each call to a pool of several
# threads: hooks of later batches begin while that of an earlier one runs, and end before it. A callback that adds up,
# writes a line for each batch, or keeps the last loss is then wrong, without an error.
#
# Needs: bash, python3 (3.11 or newer), a package index. Writes into a temporary folder only.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet "keras==3.15.1" "jax==0.10.2" "jaxlib==0.10.2"

cat >job.py <<'PYTHON'
"""job.py SAFE: a fit of eight batches with a callback that takes long for the first one. SAFE: its async_safe."""

import os
import sys
import threading
import time

os.environ["KERAS_BACKEND"] = "jax"
import keras
import numpy as np


class Slow(keras.callbacks.Callback):
    async_safe = sys.argv[1] == "True"
    ended, threads = [], set()

    def on_train_batch_end(self, batch, logs=None):
        self.threads.add(threading.current_thread() is threading.main_thread())
        if batch == 0:
            time.sleep(1.0)
        self.ended.append(batch)


x = np.ones((32, 4), np.float32)
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.train_on_batch(x[:4], x[:4, :1])  # compiles
model.fit(x, x[:, :1], batch_size=4, verbose=0, callbacks=[Slow()])
print("on the thread of fit:", sorted(Slow.threads), "; batch 0 ended first:", Slow.ended[0] == 0, len(Slow.ended))
PYTHON

failed=0
check() { # SAFE, expected output
    local out
    out=$(JAX_PLATFORMS=cpu venv/bin/python job.py "$1" 2>"$1.err") || { cat "$1.err"; failed=1; }
    echo "async_safe = $1: $out"
    [ "$out" = "$2" ] || { echo "  expected: $2"; failed=1; }
}
venv/bin/python -c 'import jax; print("JAX", jax.__version__, "Keras 3.15.1")'
check False "on the thread of fit: [True] ; batch 0 ended first: True 8"
check True "on the thread of fit: [False] ; batch 0 ended first: False 8"
exit "$failed"
