"""The thread that fills the queue stops after 100 batches, and the generator waits for the next one."""

import queue
import threading

from _model import LABELS, ROWS, compiled, dataset

BATCHES: "queue.Queue[tuple[object, object]]" = queue.Queue(4)


def fill() -> None:
    for _ in range(100):
        BATCHES.put((ROWS, LABELS))


def batches() -> object:
    while True:
        yield BATCHES.get()  # hangs here


threading.Thread(target=fill, daemon=True).start()
compiled().fit(dataset(batches), verbose=0)
