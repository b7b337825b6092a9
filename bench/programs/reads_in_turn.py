"""Reads one value again and again with other work between; under stepscope every other block wears the wrappers.

Prints as JSON: CPU time per read without wrappers and what wrappers add to it (median and quartiles of pairs of blocks)
in microseconds, and what a wrapped call costs here in a loop that does nothing else.
"""

import argparse
import json
import random
import time

import numpy as np
import tensorflow as tf

from stepscope.agent import state as agent
from stepscope.agent.sampling import calibrate

BLOCK_NS = 20_000_000
"""CPU time of a block."""
SETTLE = 20
"""Part of a block that runs before it is timed: what was swapped is cold."""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=250)
    parser.add_argument("--ops", type=int, default=0, help="eager ops between two reads")
    parser.add_argument("--bytes", type=int, default=0, help="of an array that is changed between two reads")
    options = parser.parse_args()
    state, value, other = agent.CURRENT, tf.constant(1.0), np.zeros(max(8, options.bytes) // 8)
    state.duty_cycle.hold(state.now())  # the agent's thread begins no gap of its own

    def block(reads):
        began = time.thread_time_ns()
        for _ in range(reads):
            value.numpy()
            if options.bytes:
                other.__iadd__(1)
            for _ in range(options.ops):
                tf.add(value, value)
        return (time.thread_time_ns() - began) / reads

    block(200)
    reads = max(20, min(10_000, int(BLOCK_NS / block(200))))
    more, plain = [], []
    for _ in range(options.pairs):
        took = {}
        for worn in random.sample([True, False], 2):
            if worn:
                state.duty_cycle.end(state.now())
            else:
                state.duty_cycle._begin(state.now(), 10**12, state.records.newest_kinds(64))
            block(reads // SETTLE)
            took[worn] = block(reads)
        more.append((took[True] - took[False]) / 1e3)
        plain.append(took[False] / 1e3)
    state.duty_cycle.end(state.now())
    _, loop_ns = calibrate.measure(state)
    low, middle, high = np.percentile(more, [25, 50, 75]).tolist()
    print(json.dumps({"apart_us": float(np.median(plain)), "more_us": [low, middle, high], "loop_us": loop_ns / 1e3}))


main()
