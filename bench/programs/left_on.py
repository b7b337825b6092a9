"""A TensorFlow job that is left on: writes RECORDS records at RATE a second, as its own probes would.

Usage: left_on.py RECORDS RATE

One step is an EXECUTION with a HOOK and two short calls inside; the governor, which would thin them, is left out: the
sidecar is to see every one. Every 10,000th step writes a metric and a trace line, as a job that goes on for ever does.
"""

import sys
import time

import tensorflow as tf  # noqa: F401 - what makes this a measured process

from stepscope.agent import state
from stepscope.wire.kinds import Kind

current = state.CURRENT
total, rate = int(sys.argv[1]), int(sys.argv[2])
names = [current.name(("bench", i), f"call {i}", role="train" if i == 0 else "") for i in range(4)]
thread = current.thread()
write = current.write
current.records.thin = lambda *a: None
started = time.monotonic()
written = 0
print("ready", flush=True)
while written < total:
    now = time.monotonic_ns()
    write(now, 180_000, 32, names[0], Kind.EXECUTION, 0, thread)
    write(now + 190_000, 20_000, written, names[1], Kind.HOOK, 0, thread)
    write(now + 195_000, 5_000, 0, names[2], Kind.CALLBACK, 0, thread)
    write(now + 212_000, 30_000, 0, names[3], Kind.NEXT, 0, thread)
    written += 4
    if written % 40_000 == 0:
        current.log({"t": "metric", "at": now, "name": "loss", "value": 1.0 / written})
    ahead = written / rate - (time.monotonic() - started)
    if ahead > 0.002:
        time.sleep(ahead)
print(written, flush=True)
