"""Consumes a pipeline and says samples a second; with --grid, those of every pipeline of a grid, in turn."""

import argparse
import importlib.util
import json
import os
import time

import tensorflow as tf

LONGEST = 8
"""Wall time of a measurement over its CPU time, at most."""
STEADY = 0.5
"""Part of a measurement's time for which a pipeline runs before it: its buffers are then as they stay, not full."""
LOOK_S, IDLE, REST_S = 0.05, 0.05, 10.0
"""A pipeline that was measured goes on to fill its buffers. The next one waits until the process takes less of a CPU
than IDLE over LOOK_S, for REST_S at most."""


@tf.function
def step(batch):
    total = 0.0
    for part in tf.nest.flatten(batch):
        total += tf.reduce_mean(tf.square(tf.cast(part, tf.float32)))
    return total


class Consumer:
    """One pipeline, consumed without end.

    ``device_s``: seconds for which the step's thread does nothing, as if it waited for a device.
    """

    def __init__(self, pipeline, device_s):
        self.batches = iter(pipeline)
        self.device_s = device_s

    def take(self, count):
        samples = 0
        for _ in range(count):
            batch = next(self.batches)
            step(batch)
            if self.device_s:
                time.sleep(self.device_s)
            samples += int(tf.nest.flatten(batch)[0].shape[0])
        return samples

    def measure(self, seconds):
        """Samples a second of wall time, and of CPU; for so many seconds of CPU, or four times that of waits."""
        rest()
        self._for(STEADY * seconds)
        samples, wall, cpu = self._for(seconds)
        return samples / wall, samples / cpu

    def _for(self, seconds):
        samples, began, used = 0, time.perf_counter(), time.process_time()
        while time.process_time() - used < seconds and time.perf_counter() - began < LONGEST * seconds:
            samples += self.take(1)
        return samples, time.perf_counter() - began, time.process_time() - used


def rest():
    """Wait until the pipelines that were measured before have filled their buffers."""
    until = time.perf_counter() + REST_S
    while time.perf_counter() < until:
        began, used = time.perf_counter(), time.process_time()
        time.sleep(LOOK_S)
        if time.process_time() - used < IDLE * (time.perf_counter() - began):
            return


def pipeline_of(path):
    """The pipeline of another version of the program."""
    spec = importlib.util.spec_from_file_location("edited", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.pipeline


def main(pipeline, grid, epoch, device_s=0.0):
    """``pipeline``: makes the one as it is; ``grid``: makers of others, by name; ``epoch``: batches of a pass."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--grid", action="store_true")
    parser.add_argument("--edited", help="a version of the program with the diff, to be measured, too")
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=1)
    args = parser.parse_args()
    makers = {"as it is": pipeline, **(grid if args.grid else {})}
    if args.edited:
        makers["edited"] = pipeline_of(args.edited)
    consumers = {name: Consumer(make(), device_s) for name, make in makers.items()}
    for consumer in consumers.values():
        consumer.take(epoch + 2)
    for _ in range(args.rounds):
        for name, consumer in consumers.items():
            wall, cpu = consumer.measure(args.seconds)
            print(json.dumps({"point": name, "wall": wall, "cpu": cpu, "load": os.getloadavg()[0]}), flush=True)
