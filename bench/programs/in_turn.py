"""A Keras fit with steps of about 1 ms; run under stepscope it wears its wrappers in every other block of steps.

Prints as JSON: microseconds per step that a block with wrappers took more than the one beside it, wrapped calls per
step, and what a wrapped call costs here in a loop that does nothing else.
"""

import argparse
import json
import random
import time
from statistics import median

import numpy as np
import tensorflow as tf

from stepscope.agent.sampling import calibrate
from stepscope.agent import state as agent

WIDTH, BATCH = 256, 128
BLOCK, SETTLE = 20, 3
"""Steps of a block, and how many of them are not timed: what was swapped is cold."""
WARM_UP = 500


class InTurn(tf.keras.callbacks.Callback):
    """Swaps at the end of each block, in random order of the two of a pair."""

    def __init__(self, pairs):
        super().__init__()
        self.state = agent.CURRENT
        self.pairs, self.more, self.calls = pairs, [], []
        self.order, self.took, self.seen = [], {}, 0

    def on_train_batch_end(self, batch, logs=None):
        now = time.perf_counter_ns()
        self.seen += 1
        position = (self.seen - WARM_UP) % BLOCK
        if self.seen < WARM_UP or position not in (SETTLE, BLOCK - 1):
            return
        if position == SETTLE:
            self.began, self.before = now, sum(self.state.records.calls())
            return
        if self.order:
            self.close((now - self.began) / (BLOCK - 1 - SETTLE))
        if not self.order:
            self.order = random.sample([True, False], 2)
        self.wear(self.order[-1])
        self.model.stop_training = len(self.more) >= self.pairs

    def close(self, took):
        worn = self.order.pop()
        self.took[worn] = took
        if worn:
            self.calls.append((sum(self.state.records.calls()) - self.before) / (BLOCK - 1 - SETTLE))
        if not self.order:
            self.more.append((self.took[True] - self.took[False]) / 1e3)

    def wear(self, wrappers):
        duty_cycle = self.state.duty_cycle
        if wrappers:
            duty_cycle.end(self.state.now())
        elif not duty_cycle.detached:
            duty_cycle._begin(self.state.now(), 10**12, self.state.records.newest_kinds(64))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=400)
    pairs = parser.parse_args().pairs
    x, y = np.random.rand(BATCH, WIDTH).astype("f"), np.random.rand(BATCH, 1).astype("f")
    model = tf.keras.Sequential([tf.keras.Input((WIDTH,)), tf.keras.layers.Dense(WIDTH), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    in_turn = InTurn(pairs)
    in_turn.state.duty_cycle.hold(in_turn.state.now())  # the agent's thread begins none of its own
    data = tf.data.Dataset.from_tensors((x, y)).repeat().prefetch(2)
    model.fit(data, steps_per_epoch=2000, epochs=1000, verbose=0, callbacks=[in_turn])
    in_turn.wear(True)
    _, loop_ns = calibrate.measure(in_turn.state)
    calls = median(in_turn.calls) + 1  # Keras' step calls a tf.function, whose wrapper writes nothing
    print(json.dumps({"more_us": in_turn.more, "calls": calls, "loop_ns": loop_ns}))


main()
