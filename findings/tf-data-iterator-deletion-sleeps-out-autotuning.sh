#!/usr/bin/env bash
# tf.data: letting go of an iterator can block for many seconds, up to a minute, on one CPU.
#
# Expected: an iterator that is deleted in the middle of its data (a `break`, a new epoch, the end of the program) is gone
# in milliseconds: its threads are cancelled and woken.
#
# Happens (TensorFlow 2.21.0, Python 3.11; the same with 2.15): of 24 deletions after 11 s one blocks for 9.4 s, in the
# thread that lets go of the iterator, and uses no CPU meanwhile. Those that follow can block for 20, 41 and 60 s more.
# The thread that tunes the pipeline sleeps 10 ms, 20 ms, 40 ms and so on, up to a minute. A deletion wakes it, but the
# mark that says "cancelled" is set only after it was woken: if it runs at once, as it mostly does where the process has
# one CPU, it sees no mark and sleeps its time out. So the wait ends about 10.2, 20.5, 41 or 82 s after the iterator's
# first batch. Without autotuning there is no such thread and no wait.
#
# Where it shows: Keras' fit takes a new iterator in each epoch and lets go of the old one, so that an epoch begins
# seconds late in a container with one CPU or on a busy machine; programs end late.
#
# Needs: bash, python3 (3.11 or newer), a package index, Linux (the program gives itself one CPU). Writes into a temporary
# folder only.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet "tensorflow-cpu==2.21.0"

cat >deletions.py <<'PYTHON'
"""deletions.py on|off: 24 iterators that have given a batch are let go of 11 s later, with autotuning on or off."""

import os
import sys
import time

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import tensorflow as tf

options = tf.data.Options()
options.autotune.enabled = sys.argv[1] == "on"
pipeline = tf.data.Dataset.range(1000).map(lambda x: x + 1, num_parallel_calls=2).prefetch(2).with_options(options)
iterators = [iter(pipeline) for _ in range(24)]
for iterator in iterators:
    next(iterator)
del iterator
time.sleep(11)
blocked = False
while iterators and not blocked:
    wall, cpu = time.monotonic(), time.thread_time()
    iterators.pop()
    if (took := time.monotonic() - wall) > 5:
        blocked = True
        print("blocked for %.1f s, of it %.0f %% on a CPU" % (took, 100 * (time.thread_time() - cpu) / took))
words = "a deletion blocks for more than 5 s" if blocked else "no deletion blocks"
print("autotuning %s: %s" % (sys.argv[1], words), flush=True)
os._exit(0)  # the end of the program would delete the others
PYTHON

venv/bin/python -c 'import tensorflow as tf; print("TensorFlow", tf.__version__)' 2>/dev/null
failed=0
check() { # on|off, expected last line; up to three runs, since the order of two threads decides
    local try out
    for try in 1 2 3; do
        out=$(venv/bin/python deletions.py "$1" 2>/dev/null)
        printf '%s\n' "$out"
        [ "${out##*$'\n'}" != "$2" ] || return 0
    done
    printf '        expected: %s\n' "$2"
    failed=1
}
check on "autotuning on: a deletion blocks for more than 5 s"
check off "autotuning off: no deletion blocks"
exit "$failed"
