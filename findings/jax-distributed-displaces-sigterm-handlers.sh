#!/usr/bin/env bash
# jax.distributed.initialize takes SIGTERM away from Python, and Python does not know.
#
# Expected: a job that asked for SIGTERM (signal.signal, to save a checkpoint when a scheduler stops it) gets it, with JAX
# as without; a job that did not ask for it ends by it, with the exit status that a scheduler knows as "ended by a signal";
# signal.getsignal says which of the two is the case.
#
# Happens (JAX 0.10.2, CPU, Python 3.11): the notifier of preemptions, on by default, puts a handler of its own in C in
# the place of what was there. A Python handler that was set before the call is never called again, though getsignal
# still names it. A job without a handler does not end: two SIGTERM leave a line on stderr each at most, the program runs
# to its end and exits with 0; getsignal says SIG_DFL. A handler set after the call works, and JAX then sees nothing.
#
# Needs: bash, python3 (3.11 or newer), a package index. Writes into a temporary folder only.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet "jax==0.10.2" "jaxlib==0.10.2"

cat >job.py <<'PYTHON'
"""job.py ORDER: gets SIGTERM twice. ORDER: alone (no jax.distributed), none, before or after (when a handler is set)."""

import os
import signal
import socket
import sys
import time

import jax

order = sys.argv[1]


def save(number, frame):
    print("the job's handler ran", flush=True)


if order == "before":
    signal.signal(signal.SIGTERM, save)
if order != "alone":
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = "127.0.0.1:%d" % free.getsockname()[1]
    jax.distributed.initialize(address, num_processes=1, process_id=0)
if order == "after":
    signal.signal(signal.SIGTERM, save)
handler = signal.getsignal(signal.SIGTERM)
print("getsignal:", getattr(handler, "__name__", handler is signal.SIG_DFL and "SIG_DFL"), flush=True)
for _ in range(2):
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.5)
print("the job ran to its end", flush=True)
PYTHON

failed=0
check() { # ORDER, expected output on one line, expected exit status
    local out code=0
    out=$(JAX_PLATFORMS=cpu venv/bin/python job.py "$1" 2>"$1.err" | tr '\n' ';'; exit "${PIPESTATUS[0]}") || code=$?
    printf '%-7s exit %-3s %s\n' "$1" "$code" "$out"
    if [ "$out" != "$2" ] || [ "$code" != "$3" ]; then
        printf '        expected: exit %s %s\n' "$3" "$2"
        failed=1
    fi
}

venv/bin/python -c 'import jax; print("JAX", jax.__version__)'
check alone "getsignal: SIG_DFL;" 143
check none "getsignal: SIG_DFL;the job ran to its end;" 0
check before "getsignal: save;the job ran to its end;" 0
check after "getsignal: save;the job's handler ran;the job's handler ran;the job ran to its end;" 0
exit "$failed"
