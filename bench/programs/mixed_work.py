"""Five kinds of work in turn, the same in each run: page faults, arithmetic, Python, sorting, text."""

import json
import os
import re

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

rng = np.random.default_rng(0)


def faults():
    for _ in range(12):
        block = np.zeros(16 << 20, np.uint8)
        block[::4096] = 1


def arithmetic():
    square = rng.standard_normal((256, 256))
    for _ in range(60):
        square @ square


def python():
    return sum(i * i % 7 for i in range(300_000))


def sorting():
    return np.sort(rng.standard_normal(400_000))


def text():
    table = {str(i): [i] * 5 for i in range(20_000)}
    return len(re.findall(r'"(\d+)7"', json.dumps(table)))


for _ in range(18):
    faults()
    arithmetic()
    python()
    sorting()
    text()
