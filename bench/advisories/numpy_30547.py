"""numpy-30547: np.roots leaks. Run with each version in front: PYTHONPATH=FOLDER_OF_NUMPY python numpy_30547.py.

Seen (resident memory that 30,000 calls added, Linux x86-64, Python 3.11): NumPy 2.3.5 0 MiB, 2.4.0 80 MiB, 2.4.1 0 MiB.
"""

import resource
from pathlib import Path

import numpy as np


def resident() -> float:
    """Resident memory of the process in MiB."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * resource.getpagesize() / 2**20


def call(times: int) -> None:
    """Find the roots of one polynomial again and again."""
    for _ in range(times):
        np.roots([3.2, 2, 1])


call(2000)
before = resident()
call(30_000)
print(f"NumPy {np.__version__}: {resident() - before:.1f} MiB more after 30,000 calls")
