#!/usr/bin/env bash
# PyTorch on a CPU: Adam's step takes several times as long as the same step with fused=True, which is off by default.
#
# Expected: "fused" is a word of CUDA kernels. On a CPU an optimizer's default is the fast way, and fused=True either
# does nothing or is refused there.
#
# Happens (torch 2.13.0): by default Adam runs about ten ops on each tensor, each of which reads and writes it, also
# foreach=True does. fused=True works on a CPU and takes a seventh of the time for eight tensors of 1,000 by 1,000 (24,
# 23 and 3.4 ms a step on two CPUs), with the same weights up to rounding. Without it nothing warns. SGD without momentum gains
# nothing.
#
# Needs: bash, python3 (3.10 or newer), a package index. Writes into a temporary folder only.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet "torch==2.13.0" numpy

cat >steps.py <<'PYTHON'
"""Times of a step by default, with foreach and fused, in turn; fails if fused is not twice as fast, or if weights differ."""

import statistics
import time

import torch

MODES = {"default": {}, "foreach": {"foreach": True}, "fused": {"fused": True}}
torch.manual_seed(0)
start = [torch.randn(1000, 1000) for _ in range(8)]
gradients = [torch.randn(1000, 1000) for _ in range(8)]
runs = {}
for name, mode in MODES.items():
    tensors = [torch.nn.Parameter(one.clone()) for one in start]
    for one, gradient in zip(tensors, gradients):
        one.grad = gradient.clone()
    runs[name] = (tensors, torch.optim.Adam(tensors, lr=1e-3, **mode), [])
for _ in range(25):
    for _, optimizer, times in runs.values():
        began = time.perf_counter()
        optimizer.step()
        times.append(time.perf_counter() - began)
took = {name: 1e3 * statistics.median(times[5:]) for name, (_, _, times) in runs.items()}
print("ms a step:", {name: round(ms, 2) for name, ms in took.items()})
for mine, other in zip(runs["default"][0], runs["fused"][0]):
    torch.testing.assert_close(mine, other)
print("the weights are the same up to rounding; default / fused = %.1f" % (took["default"] / took["fused"]))
assert took["default"] > 2 * took["fused"], "the default is as fast as fused=True now"
PYTHON
venv/bin/python steps.py
