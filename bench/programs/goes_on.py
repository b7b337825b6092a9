"""Steps of a worker that goes on without the others: own work, then a word from each over TCP, for at most 100 ms.

``goes_on.py INDEX HOST:PORT,HOST:PORT,... SECONDS FILE``. Who did not answer in time is no longer waited for until it
speaks again; connections that end are made again. FILE: number, begin, end of the own work and end of each step, by
CLOCK_MONOTONIC, in a mapped file that outlives a kill.
"""

import mmap
import select
import socket
import struct
import sys
import time

import stepscope

index, places, seconds = int(sys.argv[1]), [text.split(":") for text in sys.argv[2].split(",")], float(sys.argv[3])
ADDRESSES = [(host, int(port)) for host, port in places]
OWN_S = 0.004
DEADLINE_S = 0.1
AGAIN_S = 0.25
"""Time between two tries to connect."""
WORD = bytes([index]) * 2048
ROW = struct.Struct("<qqqq")
MOST = 16_384


class Other:
    """Another worker: a connection to it, for what is said to it, and one from it."""

    def __init__(self, place):
        self.place = place
        self.out = None
        self.rest = b""
        self.tried = 0.0
        self.here = False

    def say(self, now):
        """A word to it, unless it still has to take the one before."""
        if self.out is None:
            self.connect(now)
        if self.out is None:
            return
        try:
            self.rest = self.rest or WORD
            while self.rest:
                self.rest = self.rest[self.out.send(self.rest) :]
        except BlockingIOError:
            return
        except OSError:
            self.out.close()
            self.out, self.rest = None, b""

    def connect(self, now):
        if now - self.tried < AGAIN_S:
            return
        self.tried = now
        one = socket.socket()
        one.setblocking(False)
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        one.connect_ex(self.place)
        self.out = one


def heard(server, came, others, wanted, until):
    """Take what came, until all that are wanted have spoken or time is up; who spoke."""
    spoke = set()
    while not wanted <= spoke:
        left = until - time.monotonic()
        if left <= 0:
            break
        ready, _, _ = select.select([server, *came], [], [], left)
        spoke |= taken(server, came, others, ready)
    return spoke


def taken(server, came, others, ready):
    """Accept and read; who spoke."""
    spoke = set()
    for one in ready:
        if one is server:
            new, _ = server.accept()
            new.setblocking(False)
            came[new] = None
            continue
        try:
            data = one.recv(1 << 20)
        except BlockingIOError:
            continue
        except OSError:
            data = b""
        if not data:
            came.pop(one)
            one.close()
            continue
        if came[one] is None:
            came[one] = data[0]
        spoke.add(came[one])
    return spoke & set(others)


others = {n: Other(place) for n, place in enumerate(ADDRESSES) if n != index}
came = {}
with open(sys.argv[4], "w+b") as file:
    file.write(bytes(ROW.size * MOST))
    file.flush()
    rows = mmap.mmap(file.fileno(), ROW.size * MOST)
server = socket.create_server(ADDRESSES[index])
server.setblocking(False)
print("ready", flush=True)
end = time.monotonic() + seconds
number = 0
while time.monotonic() < end and number < MOST - 1:
    stepscope.step()
    begun = time.monotonic_ns()
    with stepscope.span("own work"):
        time.sleep(OWN_S)
    worked = time.monotonic_ns()
    now = time.monotonic()
    for other in others.values():
        other.say(now)
    wanted = {n for n, other in others.items() if other.here}
    spoke = heard(server, came, others, wanted, now + DEADLINE_S)
    spoke |= taken(server, came, others, select.select([server, *came], [], [], 0)[0])
    for n, other in others.items():
        other.here = n in spoke
    number += 1
    ROW.pack_into(rows, ROW.size * number, number, begun, worked, time.monotonic_ns())
print("done", number, flush=True)
