"""Stamps the clock in a tight loop; each turn maps, touches and unmaps a page, as a service that allocates does.

``stamping.py MEGABYTES``: so much memory is touched before, in pages of 4 KiB. A line in standard input ends a stretch;
the answer is a line of JSON: the turns of the stretch, and its longest gaps: how much of each the thread waited for a
CPU by the kernel's account, and how often it gave one up to wait for something else.
"""

import json
import mmap
import os
import resource
import select
import sys
import time

SEEN_NS = 200_000
"""Shorter gaps are turns like any other."""
KEPT = 200
LOOK_NS = 10_000_000

held = mmap.mmap(-1, int(sys.argv[1]) << 20)
if hasattr(held, "madvise"):
    held.madvise(mmap.MADV_NOHUGEPAGE)
for at in range(0, len(held), 4096):
    held[at] = 1
account = os.open("/proc/thread-self/schedstat", os.O_RDONLY)


def so_far():
    """How long this thread has waited for a CPU, and how often it has given one up to wait for something else."""
    return int(os.pread(account, 100, 0).split()[1]), resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw


print("ready", flush=True)
while True:
    gaps, turns = [], 0
    known = so_far()
    last = time.monotonic_ns()
    look = last + LOOK_NS
    while True:
        page = mmap.mmap(-1, 4096)
        page[0] = 1
        page.close()
        now = time.monotonic_ns()
        turns += 1
        if now - last > SEEN_NS:
            before, known = known, so_far()
            gaps.append({"gap": now - last, "waited": known[0] - before[0], "blocked": known[1] - before[1]})
            gaps = sorted(gaps, key=lambda one: -one["gap"])[:KEPT] if len(gaps) > 1_000 else gaps
            now = time.monotonic_ns()
        if now > look:
            if select.select([0], [], [], 0)[0]:
                break
            known = so_far()
            now = time.monotonic_ns()
            look = now + LOOK_NS
        last = now
    if not sys.stdin.readline():
        break
    print(json.dumps({"turns": turns, "gaps": sorted(gaps, key=lambda one: -one["gap"])[:KEPT]}), flush=True)
