"""NumPy alone: no framework starts the measurement. It computes for longer than such a process is left unsampled."""

import functools

import fault
import numpy as np

fault.begin()
w = np.random.rand(64, 64)
fault.live_long(functools.partial(np.linalg.eigvalsh, w @ w.T))
for number in range(40):
    w = np.tanh(w @ w / 32)
    if number == 20:
        fault.moment()
fault.save("w.bin", w.tobytes())
print(float(w.sum()).hex())
fault.end()
