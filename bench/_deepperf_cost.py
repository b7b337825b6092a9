"""Measures the CPU cost of a repeated op: in a loop that builds a graph, in the running graph, and in eager code.

Usage: _deepperf_cost.py ROUNDS; prints rows of a table.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from statistics import median

import numpy as np
import tensorflow as tf

COPIES = 200
"""Iterations of the loop that builds a graph."""
RUNS = 300
CALLS = 2000


def rows(rounds: int) -> list[str]:
    """Rows of a table: what was measured, and its cost."""
    built: dict[bool, list[float]] = {True: [], False: []}
    ran: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(rounds):
        for hoisted in (False, True):
            seconds, running = _graph(hoisted=hoisted)
            built[hoisted].append(seconds)
            ran[hoisted].append(running)
    node = (median(built[False]) - median(built[True])) / (2 * COPIES)
    ratio = median(ran[False]) / median(ran[True])
    eager: dict[str, Callable[[], object]] = {
        "tf.zeros([64, 64])": lambda: tf.zeros([64, 64]),
        "tf.constant([1])": lambda: tf.constant([1]),
        "tf.cast(3, tf.float32)": lambda: tf.cast(3, tf.float32),
        "tf.range(64)": lambda: tf.range(64),
        "tf.expand_dims([1], 0)": lambda: tf.expand_dims([1], 0),
    }
    return [
        f"| an equal node, where a graph is built | {1e6 * node:.0f} us, once |",
        f"| a run of a graph with {COPIES} equal pairs of nodes, beside one with one pair | {ratio:.2f} times |",
        *(f"| `{text}` in eager code | {1e6 * _each(make, rounds):.0f} us |" for text, make in eager.items()),
    ]


def _graph(*, hoisted: bool) -> tuple[float, float]:
    """CPU seconds to build a graph in a loop, and for one of its runs after the first few."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        fed = v1.placeholder(tf.float32, [64, 64])
        value = np.zeros([64, 64], np.float32)
        begin = time.process_time()
        once = tf.exp(fed + 0.5)
        total = fed
        for _ in range(COPIES):
            total = total * (once if hoisted else tf.exp(fed + 0.5))
        built = time.process_time() - begin
        run = session.make_callable(total.op, [fed])
        for _ in range(5):
            run(value)
        begin = time.process_time()
        for _ in range(RUNS):
            run(value)
        return built, (time.process_time() - begin) / RUNS


def _each(make: Callable[[], object], rounds: int) -> float:
    """CPU seconds per call in eager code."""
    seen = []
    for _ in range(rounds):
        begin = time.process_time()
        for _ in range(CALLS):
            make()
        seen.append((time.process_time() - begin) / CALLS)
    return median(seen)


if __name__ == "__main__":
    print("\n".join(rows(int(sys.argv[1]))))
