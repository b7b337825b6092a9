#!/usr/bin/env bash
# TensorFlow: the Python of a tf.numpy_function runs some fifty times slower if it is written inside of the map's function.
#
# Expected: tf.numpy_function runs its function as plain Python, wherever that is written.
#
# Happens (TensorFlow 2.21.0, Linux on x86-64): Dataset.map converts its function by AutoGraph, and with the source all
# functions written in it, that of tf.numpy_function too. Each call and each turn of a loop in it then goes through
# AutoGraph's Python: a loop of 100,000 calls of abs takes 543 ms instead of 10.6 ms. The results are equal, no warning is
# given, and @tf.autograph.experimental.do_not_convert on the inner function changes nothing (760 ms). Written at the
# module's level, or with do_not_convert on the function that map gets, it runs as plain Python.
#
# Where it shows: an input pipeline whose Python is slow "although it does hardly anything", with converted_call and
# for_stmt on every stack.
#
# Needs: bash, python3 (3.10 to 3.13), a package index. Writes into a temporary folder only.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet "tensorflow==2.21.0" "numpy==2.4.6"

cat >where.py <<'PYTHON'
"""Milliseconds of one call of a tf.numpy_function, by where its function is written."""

import statistics
import time

import numpy as np
import tensorflow as tf


def count(n):
    total = 0
    for i in range(int(n)):
        total += abs(i)
    return np.int64(total)


def module_level(n):
    return tf.numpy_function(count, [n], tf.int64)


def nested(n):
    def counting(n):
        total = 0
        for i in range(int(n)):
            total += abs(i)
        return np.int64(total)

    return tf.numpy_function(counting, [n], tf.int64)


def nested_marked(n):
    @tf.autograph.experimental.do_not_convert
    def counting(n):
        total = 0
        for i in range(int(n)):
            total += abs(i)
        return np.int64(total)

    return tf.numpy_function(counting, [n], tf.int64)


whole_map_marked = tf.autograph.experimental.do_not_convert(nested)


def milliseconds(function):
    data = tf.data.Dataset.from_tensors(tf.constant(100_000, tf.int64)).repeat(6).map(function)
    taken, results, last = [], [], time.perf_counter()
    for result in data:
        now = time.perf_counter()
        taken.append(1e3 * (now - last))
        results.append(int(result))
        last = now
    assert set(results) == {4_999_950_000}
    return statistics.median(taken[1:])


print(*("%.1f" % milliseconds(one) for one in (module_level, nested, nested_marked, whole_map_marked)))
PYTHON

export TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES=
venv/bin/python -c 'import tensorflow as tf; print("TensorFlow", tf.__version__)' 2>/dev/null
read -r module nested marked whole < <(venv/bin/python where.py 2>where.log)
if grep -qi autograph where.log; then echo "a warning names AutoGraph"; fi
echo "at the module's level:                     $module ms a call"
echo "inside of the map's function:              $nested ms"
echo "the same, the inner one do_not_convert:    $marked ms"
echo "the same, the map's one do_not_convert:    $whole ms"
venv/bin/python - "$module" "$nested" "$marked" "$whole" <<'PYTHON'
import sys

module, nested, marked, whole = map(float, sys.argv[1:])
as_said = nested > 10 * module and marked > 10 * module and whole < 3 * module
print("as said" if as_said else "changed: expected ten times the time for both nested ones, and plain Python for the others")
sys.exit(not as_said)
PYTHON
