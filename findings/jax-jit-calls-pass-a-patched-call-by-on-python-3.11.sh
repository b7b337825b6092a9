#!/usr/bin/env bash
# JAX before Python 3.12: a __call__ that is set on the class of jitted functions is accepted, shown, and never called.
#
# Expected: all functions that jax.jit returns are of one class. A profiler that sets a counting __call__ on that class
# either gets a TypeError, as with other classes written in C, or counts each call.
#
# Happens (jax 0.10.2, Python 3.11, CPU): the assignment succeeds, type(f).__call__ is the new function, and f(x) goes
# past it: 0 of 1,000 calls are counted. type(f).__call__(f, x) is counted. The class has CPython's vectorcall slot,
# which calls by f(x) take without looking at __call__; from Python 3.12 on that slot is given up when __call__ is set,
# and 1,000 of 1,000 are counted by the same lines.
#
# Where it shows: a tool that was tried on Python 3.12 sees no step of a JAX job on 3.11, and no error either.
#
# Needs: bash, python3 (3.11 to 3.13), a package index. Writes into a temporary folder only.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet "jax==0.10.2" "jaxlib==0.10.2"

cat >patched.py <<'PYTHON'
import sys

import jax

kind = type(jax.jit(lambda x: x))
original, counted = kind.__call__, []


def counting(self, *args, **kwargs):
    if self is double:  # JAX makes calls of functions of its own, too
        counted.append(self)
    return original(self, *args, **kwargs)


double = jax.jit(lambda x: 2 * x)
kind.__call__ = counting
for _ in range(1_000):
    double(1.0)
by_call, shown = len(counted), kind.__call__ is counting
counted.clear()
for _ in range(1_000):
    kind.__call__(double, 1.0)
by_attribute = len(counted)
print("jax %s, Python %d.%d" % (jax.__version__, *sys.version_info[:2]))
print("the class shows the new __call__: %s" % shown)
print("f(x): %d of 1000 counted; type(f).__call__(f, x): %d of 1000" % (by_call, by_attribute))
expected = 0 if sys.version_info < (3, 12) else 1_000
as_said = shown and by_attribute == 1_000 and by_call == expected
print("as said" if as_said else "changed: expected %d of 1000 by f(x) on this Python" % expected)
sys.exit(not as_said)
PYTHON

JAX_PLATFORMS=cpu venv/bin/python patched.py
