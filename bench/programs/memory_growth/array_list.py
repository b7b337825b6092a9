"""A list that grows by arrays, beside larger ones that are made and dropped. Arguments: rounds, a file to make."""

import json
import sys
import time
from pathlib import Path

import numpy as np

kept = []


def keep(size: int) -> None:
    """What grows."""
    kept.append(np.ones(size))  # keeps


def smooth(size: int) -> float:
    """What does not."""
    return float(np.ones(size).sum())


def main() -> None:
    """Work."""
    Path(sys.argv[2]).touch()
    for _ in range(int(sys.argv[1])):
        keep(40_000)
        for _ in range(10):
            smooth(400_000)
        time.sleep(0.01)
    print(json.dumps({"cpu_s": time.process_time()}))


main()
