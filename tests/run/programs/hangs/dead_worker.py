"""A process of the pool that reads is killed, as for lack of memory; its result never comes."""

import multiprocessing
import os
import signal

POOL = multiprocessing.get_context("fork")


def read(number: int) -> int:
    if number == 100:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def main() -> None:
    pool = POOL.Pool(2)
    from _model import LABELS, ROWS, compiled, dataset

    def batches() -> object:
        for _number in pool.imap(read, range(1000)):  # hangs here
            yield ROWS, LABELS

    compiled().fit(dataset(batches), verbose=0)


main()
