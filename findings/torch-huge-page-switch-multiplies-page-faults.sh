#!/usr/bin/env bash
# PyTorch on a CPU: the switch that asks for huge pages, THP_MEM_ALLOC_ENABLE=1, makes tensors of 2 to 8 MiB fault in each time.
#
# Expected: huge pages mean fewer page faults. A tensor of 4 MiB takes one or two of them instead of a thousand, and
# never more than without the switch.
#
# Happens (torch 2.13.0, glibc 2.36, Linux 6.18 on x86-64, transparent_hugepage madvise): in a loop that makes, fills and
# drops a tensor of 2, 4 or 8 MiB there is no page fault without the switch, as the C library gives the same block again.
# With it each tensor takes more than 500, as if its block were mapped anew each time, and one stretch of 2 MiB in it had
# small pages: the blocks begin on the boundary of a page, not on one of 2 MiB. Only tensors above the C library's
# largest threshold (32 MiB) gain: 64 MiB take 544 faults instead of 16,385.
# GLIBC_TUNABLES=glibc.malloc.hugetlb=1 is as good there, and costs the small ones nothing.
#
# Where it shows: a convolution net of 16 pictures a batch on a CPU takes 900 to 2,000 faults a step without the switch,
# 800 to 3,600 with it, 2 to 4 with the C library's setting.
#
# Needs: bash, python3 (3.10 or newer), a package index, Linux with glibc 2.35 or newer and transparent_hugepage
# "madvise" or "always". Writes into a temporary folder only.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet "torch==2.13.0" numpy

cat >fill.py <<'PYTHON'
"""fill.py MIB: page faults of each of 20 tensors of so many MiB, made, filled and dropped one after the other."""

import resource
import sys

import torch

size = int(sys.argv[1])
for _ in range(2):  # the first round grows the heap
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        tensor = torch.empty(size * 2**18)
        tensor.fill_(1)
        del tensor
    each = (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 20
print("none" if each < 1 else "hundreds" if each < 1000 else "thousands")
PYTHON

cat >steps.py <<'PYTHON'
"""steps.py: page faults of a step of a small convolution net on batches of 16 pictures."""

import resource

import torch
from torch import nn

torch.set_num_threads(1)
net = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
net.append(nn.Linear(64 * 14 * 14, 10))
optimizer = torch.optim.SGD(net.parameters(), 0.01)
pictures, labels = torch.randn(16, 1, 32, 32), torch.randint(0, 10, (16,))
for _ in range(2):  # the first round grows the heap
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(60):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(pictures), labels).backward()
        optimizer.step()
    each = (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 60
print("%.0f faults a step:" % each, "a few" if each < 100 else "hundreds or more")
PYTHON

venv/bin/python -c 'import torch; print("torch", torch.__version__)'
printf 'transparent_hugepage %s\n' "$(cat /sys/kernel/mm/transparent_hugepage/enabled)"
failed=0
check() { # MiB, setting, expected
    local found
    found=$(env $2 venv/bin/python fill.py "$1")
    printf '%2s MiB  %-40s %s\n' "$1" "${2:-no setting}" "$found"
    [ "$found" = "$3" ] || { printf '        expected: %s\n' "$3"; failed=1; }
}
for size in 2 4 8; do
    check "$size" "" none
    check "$size" THP_MEM_ALLOC_ENABLE=1 hundreds
    check "$size" GLIBC_TUNABLES=glibc.malloc.hugetlb=1 none
done
check 64 "" thousands
check 64 THP_MEM_ALLOC_ENABLE=1 hundreds
check 64 GLIBC_TUNABLES=glibc.malloc.hugetlb=1 hundreds
step() { # setting, expected
    local found
    found=$(env $1 venv/bin/python steps.py)
    printf 'the net %-40s %s\n' "${1:-no setting}" "$found"
    [ "${found#*: }" = "$2" ] || { printf '        expected: %s\n' "$2"; failed=1; }
}
step "" "hundreds or more"
step THP_MEM_ALLOC_ENABLE=1 "hundreds or more"
step GLIBC_TUNABLES=glibc.malloc.hugetlb=1 "a few"
exit "$failed"
