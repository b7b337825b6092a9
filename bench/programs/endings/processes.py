"""Ends with processes of its own: processes.py WAY FRAMEWORK METHOD, METHOD one of fork, spawn, forkserver.

The processes work first where they are forked: a fork after TensorFlow or JAX has threads may hang by itself.
"""

import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import shared_memory

from work import last, say, steps


def square(number):
    return number * number


def puts(results, number):
    results.put(square(number))


def exits():
    os._exit(3)


def fails():
    raise ValueError("of a child")


def process(context):
    results = context.Queue()
    children = [context.Process(target=puts, args=(results, number)) for number in range(2)]
    for child in children:
        child.start()
    say(sorted(results.get() for _ in children))
    for child in children:
        child.join()
    say([child.exitcode for child in children])


def unjoined(context):
    context.Process(target=time.sleep, args=(0.5,)).start()


def daemonic(context):
    global kept
    kept = context.Process(target=time.sleep, args=(1000,), daemon=True)
    kept.start()


def pool(context):
    with context.Pool(2) as workers:
        say(workers.map(square, range(6)))


def pool_open(context):
    global kept
    kept = context.Pool(2)
    say(kept.map(square, range(6)))


def executor(context):
    with ProcessPoolExecutor(2, mp_context=context) as workers:
        say(list(workers.map(square, range(6))))


def executor_open(context):
    global kept
    kept = ProcessPoolExecutor(2, mp_context=context)
    kept.submit(time.sleep, 0.3)


def child_exits(context):
    child = context.Process(target=exits)
    child.start()
    child.join()
    say(child.exitcode)


def child_fails(context):
    child = context.Process(target=fails)
    child.start()
    child.join()
    say(child.exitcode)


def feeder(context):
    """A queue with more in it than a pipe holds, read by a child: its feeder thread works while the program ends."""
    texts, opened = context.Queue(), context.Event()
    context.Process(target=reads, args=(texts, opened)).start()
    for _ in range(20):
        texts.put("x" * 100_000)
    opened.wait()  # else the queue's locks may be gone when a spawned child opens them


def reads(texts, opened):
    opened.set()
    time.sleep(0.2)
    say(sum(len(texts.get()) for _ in range(20)))


def feeder_left(context):
    texts = context.Queue()
    texts.put("x" * 10_000_000)
    texts.cancel_join_thread()


def manager(context):
    with context.Manager() as shared:
        numbers = shared.list([1, 2])
        numbers.append(3)
        say(list(numbers))


def memory(context):
    block = shared_memory.SharedMemory(create=True, size=1000)
    child = context.Process(target=writes, args=(block.name,))
    child.start()
    child.join()
    say(bytes(block.buf[:4]))
    block.close()
    block.unlink()


def writes(name):
    block = shared_memory.SharedMemory(name=name)
    block.buf[:4] = b"done"
    block.close()


if __name__ == "__main__":
    way, framework, method = sys.argv[1:]
    first = method == "fork"
    if not first:
        steps(framework)
    globals()[way](multiprocessing.get_context(method))
    if first:
        steps(framework)
    last()
