"""Write the names that TensorFlow and Keras give: words that say nothing of a user, which a redacted pack keeps.

Usage: gen_public_names.py PYTHON ... : an interpreter of each version of TensorFlow whose names are known. What is
known already stays: names that a version no longer has are those of older sessions.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "src" / "stepscope" / "store" / "public_names.txt"
PROGRAM = """
import inspect, re
import tensorflow as tf
from tensorflow.python.framework import kernels
names = {one.op for one in kernels.get_all_registered_kernels().kernel} | set(dir(tf.raw_ops))
for module in (tf.keras.layers, tf.keras.losses, tf.keras.metrics, tf.keras.optimizers, tf.keras.callbacks):
    found = [name for name, one in vars(module).items() if inspect.isclass(one)]
    names.update(found)
    parted = [re.sub("(.)([A-Z][a-z]+)", "\\\\1_\\\\2", name) for name in found]
    names.update(re.sub("([a-z])([A-Z])", "\\\\1_\\\\2", name).lower() for name in parted)  # keras: to_snake_case
print(chr(10).join(names))
"""


def main() -> None:
    """Add the names of each interpreter's TensorFlow."""
    known = set(TARGET.read_text("ascii").split()) if TARGET.exists() else set()
    for python in sys.argv[1:]:
        known |= set(subprocess.run([python, "-c", PROGRAM], check=True, capture_output=True, text=True).stdout.split())
    TARGET.write_text("\n".join(sorted(known)) + "\n", "ascii")


if __name__ == "__main__":
    main()
