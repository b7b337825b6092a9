"""Steps of a data-parallel job without a framework: own work, then a ring all-reduce of bytes over real sockets.

``ring.py INDEX HOST,HOST,... SECONDS BYTES OWN_MS [READ_MS]``. Writes ``ring-INDEX.json``: for each step when the own
work began, the all-reduce began and ended, by CLOCK_MONOTONIC, and both clocks read at once. READ_MS: a pause before
each read, as a reader has that does something else.
"""

import json
import os
import socket
import sys
import time

PORT = 5000
index, hosts, seconds, size = int(sys.argv[1]), sys.argv[2].split(","), float(sys.argv[3]), int(sys.argv[4])
own_s = float(sys.argv[5]) / 1000
read_s = float(sys.argv[6]) / 1000 if len(sys.argv) > 6 else 0.0
count = len(hosts)
CHUNK = size // count
STOP, GO = b"s", b"g"


def connected():
    """The socket to the next worker, and the one from the worker before."""
    server = socket.create_server((hosts[index], PORT))
    until = time.monotonic() + 60
    while True:
        try:
            after = socket.create_connection((hosts[(index + 1) % count], PORT), timeout=5)
            break
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
    before, _ = server.accept()
    after.settimeout(60)
    before.settimeout(60)
    after.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return after, before


def all_reduce(after, before):
    """2 (n - 1) rounds: each sends a chunk to the next worker and takes one from the worker before."""
    data, room = memoryview(bytes(CHUNK)), memoryview(bytearray(CHUNK))
    for _ in range(2 * (count - 1)):
        after.sendall(data)
        at = 0
        while at < CHUNK:
            if read_s:
                time.sleep(read_s)
            at += before.recv_into(room[at:], min(CHUNK - at, 65536))


def agreed(after, before, more):
    """Whether all go on: the first worker decides, and its word goes round."""
    if index == 0:
        after.sendall(GO if more else STOP)
        before.recv(1)
        return more
    word = before.recv(1)
    after.sendall(word)
    return word == GO


def watched():
    """Wait until the collector of this host looks at us: on a crowded machine that takes longer than the steps."""
    run = os.environ.get("STEPSCOPE_RUN")
    until = time.monotonic() + 60
    while run and not os.path.exists(run + "/status.json") and time.monotonic() < until:
        time.sleep(0.05)


steps = []
watched()
after, before = connected()
all_reduce(after, before)
until = time.monotonic() + seconds
left = time.monotonic_ns()
while agreed(after, before, time.monotonic() < until):
    begun = time.monotonic_ns()
    time.sleep(own_s)
    entered = time.monotonic_ns()
    all_reduce(after, before)
    left = time.monotonic_ns()
    steps.append((begun, entered, left))
both = [(time.monotonic_ns(), time.time_ns()) for _ in range(100)]
with open("ring-%d.json" % index, "w") as file:
    json.dump({"steps": steps, "clocks": both}, file)
