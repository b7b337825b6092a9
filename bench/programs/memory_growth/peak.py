"""Work that peaks and frees: nothing stays, but the highest moment is high. Arguments: rounds, a file to make."""

import json
import sys
import time
from pathlib import Path

import numpy as np


def load(rows: int) -> np.ndarray:
    """What stays."""
    return np.ones((rows, 1000))


def pairwise(x: np.ndarray) -> float:
    """What peaks."""
    return float((x[:, None, :100] - x[None, :, :100]).sum())  # peaks


def main() -> None:
    """Work."""
    x = load(2_000)
    Path(sys.argv[2]).touch()
    for _ in range(int(sys.argv[1])):
        pairwise(x[:700])
        time.sleep(0.3)
    print(json.dumps({"cpu_s": time.process_time()}))


main()
