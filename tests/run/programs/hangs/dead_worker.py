"""A process of the pool that reads is killed, as for lack of memory; its result never comes. Plain Python."""

import multiprocessing
import os
import signal

import stepscope

POOL = multiprocessing.get_context("fork")


def read(number: int) -> int:
    if number == 100:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


for _number in POOL.Pool(2).imap(read, range(1000)):  # hangs here
    stepscope.step()
    sum(range(1_000_000))
