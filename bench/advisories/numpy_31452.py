"""numpy-31452: conj() copies real arrays. Run with each version in front: PYTHONPATH=FOLDER_OF_NUMPY python FILE.

Seen (an array of 8 MB, CPU time of a call, Linux x86-64, Python 3.11, a machine with other work): NumPy 2.4.4 0.4 us,
2.4.5 1,697 to 1,861 us (two runs), 2.4.6 0.3 us.
"""

import time

import numpy as np

TIMES = 200
array = np.ones(1_000_000)
start = time.process_time()
for _ in range(TIMES):
    result = array.conj()
each = (time.process_time() - start) / TIMES * 1e6
print(f"NumPy {np.__version__}: {each:.1f} us a call; {'the array itself' if result is array else 'a copy'}")
