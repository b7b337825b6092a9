"""What do outputs in notebooks cost the checker? Folders of doubling size: the same code, more outputs.

Each notebook has ten cells that train a small model; its outputs are images and the lines of training logs. A folder is
checked by a fresh process without a cache. With --write the table goes to docs/benchmarks/notebooks.md.

Usage: notebooks.py [--first MB] [--doublings N] [--limit S] [--write]
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks" / "notebooks.md"
NOTEBOOK_MB = 3
CELLS = 10
CODE = """import numpy as np
import tensorflow as tf
from tensorflow import keras
class Model{0}(keras.Model):
    def call(self, inputs):
        return tf.nn.relu(inputs)
def load(path):
    return tf.io.decode_jpeg(tf.io.read_file(path))
dataset = tf.data.Dataset.list_files("*").map(load).batch(32)
model = Model{0}()
model.compile("adam", "mse")
model.fit(dataset, epochs=10)
for row in np.zeros([100, 8]):
    print(model.predict(row[None]))
"""


def notebook(megabytes: float, seed: int) -> str:
    """A notebook as Jupyter writes it."""
    rest = random.Random(seed)
    cells = []
    for number in range(CELLS):
        image = base64.b64encode(rest.randbytes(int(megabytes / CELLS * 0.6e6))).decode()
        log = [
            f"{i}/500 - loss: {rest.random():.4f} - model.fit (accuracy: {rest.random():.4f})\n" for i in range(1000)
        ]
        outputs = [
            {"output_type": "display_data", "metadata": {}, "data": {"image/png": image}},
            {"output_type": "stream", "name": "stdout", "text": log},
        ]
        source = CODE.format(number).splitlines(keepends=True)
        cells.append({"cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": outputs, "source": source})
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)


def checked(folder: Path, limit_s: float) -> str:
    """Seconds, CPU seconds and peak memory of one process that checks a folder, as a row of the table."""
    home = {**os.environ, "XDG_CACHE_HOME": str(folder / "none")}
    command = [sys.executable, "-m", "stepscope", "check", "--no-cache", str(folder)]
    began = time.perf_counter()
    with subprocess.Popen(command, env=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        try:
            child.wait(limit_s)
        except subprocess.TimeoutExpired:
            child.terminate()
            return f"not done after {limit_s:.0f} | | "
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return f"{time.perf_counter() - began:.2f} | {used.ru_utime + used.ru_stime:.2f} | {used.ru_maxrss / 1024:.0f}"


def main() -> None:
    """Make folders, check them, print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=12, help="megabytes of the smallest folder")
    parser.add_argument("--doublings", type=int, default=4)
    parser.add_argument("--limit", type=float, default=120.0)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:  # in a process of its own: what children used is a sum and a maximum of all of them
        sys.stdout.write(checked(options.one, options.limit))
        return
    rows = []
    for doubling in range(options.doublings + 1):
        megabytes = options.first << doubling
        with tempfile.TemporaryDirectory() as folder:
            count = megabytes // NOTEBOOK_MB
            for number in range(count):
                (Path(folder) / f"n{number}.ipynb").write_text(notebook(NOTEBOOK_MB, number))
            size = sum(path.stat().st_size for path in Path(folder).iterdir()) / 1e6
            command = [sys.executable, __file__, "--one", folder, "--limit", str(options.limit)]
            row = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        rows.append(f"| {count} | {size:.0f} | {row} |")
        sys.stdout.write(f"{rows[-1]}\n")
        sys.stdout.flush()
    if options.write:
        head = ["# Notebooks with outputs", "", "Printed by `make bench-notebooks`.", ""]
        text = [
            f"Each notebook has {CELLS} cells of the same code and {NOTEBOOK_MB} MB of images and logs.",
            f"Checked without a cache on {os.cpu_count()} CPUs. Outputs are no code: they only have to be read past.",
            "",
            "| notebooks | MB | wall s | CPU s | MB of the largest process |",
            "|---|---|---|---|---|",
        ]
        PAGE.write_text("\n".join([*head, *text, *rows, ""]))


if __name__ == "__main__":
    main()
