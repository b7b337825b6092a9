"""A loop on the CPU whose context says that it has a GPU, and what lives there."""

import os
import time
import types

os.environ["CUDA_VISIBLE_DEVICES"] = "3"
import tensorflow as tf
from tensorflow.python.eager import context

asked = []


def get_memory_info(self, device):
    asked.append(device)
    return {"current": 1_000_000 * len(asked), "peak": 5_000_000}


def initialize(self, real=context.Context._initialize_logical_devices):
    real(self)
    self._logical_devices = [
        *self._logical_devices,
        types.SimpleNamespace(name="/device:GPU:0", device_type="GPU"),
    ]


context.Context._initialize_logical_devices = initialize
context.Context.get_memory_info = get_memory_info


def main():
    step = tf.function(lambda x: tf.reduce_sum(x @ x))
    data = tf.ones((64, 64))
    step(data)
    until = time.monotonic() + 8
    while not asked and time.monotonic() < until:
        step(data)
        time.sleep(0.01)
    print("done")


main()
