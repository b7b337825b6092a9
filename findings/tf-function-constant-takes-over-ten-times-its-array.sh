#!/usr/bin/env bash
# TensorFlow: a NumPy array that a tf.function reads takes over ten times its size in memory, and seconds, at the first call.
#
# Expected: the array becomes a constant of the graph. That is one copy of it, or two: some tens of milliseconds for
# 51 MB.
#
# Happens (TensorFlow 2.21.0, NumPy 2.4.6, Linux on x86-64): the first call of a function that gathers rows of a float32
# array of 51 MB raises the peak memory by 15 times the array's size and takes 4.35 s of CPU time; over a tensor made
# outside of the function (tf.constant) it adds no memory and takes 0.04 s. Each new trace pays it again. Why so many
# copies are there at once was not looked into.
#
# Where it shows: "the first step takes long", and jobs that die for lack of memory at their first step although the data
# take a tenth of it.
#
# Needs: bash, python3 (3.10 to 3.13), a package index, 3 GB of memory. Writes into a temporary folder only.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet "tensorflow==2.21.0" "numpy==2.4.6"

cat >first_call.py <<'PYTHON'
"""first_call.py array|tensor: peak memory and CPU time that the first call of a compiled function adds."""

import resource
import sys
import time

import numpy as np
import tensorflow as tf

rows = np.random.default_rng(0).standard_normal((50_000, 256), np.float32)
size = rows.nbytes
table = rows if sys.argv[1] == "array" else tf.constant(rows)


@tf.function
def mean_of(indices):
    return tf.reduce_mean(tf.gather(table, indices))


@tf.function
def other(indices):
    return tf.reduce_mean(tf.cast(indices, tf.float32))


indices = tf.constant([1, 2, 3])
other(indices)  # what every first function of a process takes
before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10, time.process_time()
mean_of(indices)
spent = time.process_time() - begun
grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10) - before
print("%.1f %.2f" % (grown / size, spent))
PYTHON

export TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES=
venv/bin/python -c 'import numpy, tensorflow as tf; print("TensorFlow", tf.__version__, "NumPy", numpy.__version__)' 2>/dev/null
read -r array_size array_s < <(venv/bin/python first_call.py array 2>/dev/null)
read -r tensor_size tensor_s < <(venv/bin/python first_call.py tensor 2>/dev/null)
echo "an array:  the peak grows by $array_size times its size, $array_s s of CPU time"
echo "a tensor:  the peak grows by $tensor_size times its size, $tensor_s s of CPU time"
venv/bin/python - "$array_size" "$array_s" "$tensor_size" "$tensor_s" <<'PYTHON'
import sys

array_size, array_s, tensor_size, tensor_s = map(float, sys.argv[1:])
as_said = array_size > 8 and array_s > 1 and tensor_size < 1 and array_s > 5 * tensor_s
print("as said" if as_said else "changed: expected more than 8 times and 1 s for the array, less than once for the tensor")
sys.exit(not as_said)
PYTHON
