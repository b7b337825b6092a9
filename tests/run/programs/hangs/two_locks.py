"""The training and a thread take two locks in opposite order."""

import threading

from _model import LABELS, ROWS, compiled, tf

FIRST, SECOND = threading.Lock(), threading.Lock()
BOTH = threading.Barrier(2)


def report() -> None:
    with SECOND:
        BOTH.wait()
        with FIRST:
            pass


class Reports(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch: int, logs: object = None) -> None:
        if batch == 100:
            threading.Thread(target=report, daemon=True).start()
            with FIRST:
                BOTH.wait()
                with SECOND:  # hangs here
                    pass


data = tf.data.Dataset.from_tensors((ROWS, LABELS)).repeat()
compiled().fit(data, steps_per_epoch=1000, verbose=0, callbacks=[Reports()])
