"""Ends while threads are there: threads.py WAY FRAMEWORK."""

import asyncio
import queue
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from work import last, say, steps

FRAMEWORK = sys.argv[2]


def later():
    def works():
        time.sleep(0.3)
        steps(FRAMEWORK)

    threading.Thread(target=works).start()
    last()


def many():
    def works(number):
        time.sleep(0.05 * number)
        say(f"thread {number}")

    for number in range(8):
        threading.Thread(target=works, args=(number,)).start()
    last()


def timer():
    threading.Timer(0.3, say, ("timer",)).start()
    last()


def daemon_busy():
    def spins():
        while True:
            sum(range(1000))

    threading.Thread(target=spins, daemon=True).start()
    last()


def daemon_trains():
    def trains():
        while True:
            steps_quietly()

    threading.Thread(target=trains, daemon=True).start()
    time.sleep(0.3)
    last()


def steps_quietly():
    import work

    work.FRAMEWORKS[FRAMEWORK](2)


def daemon_sleeps():
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
    last()


def daemon_receives():
    global kept
    kept, other = socket.socketpair()
    threading.Thread(target=other.recv, args=(1,), daemon=True).start()
    last()


def daemon_locked():
    lock = threading.Lock()
    lock.acquire()
    threading.Thread(target=lock.acquire, daemon=True).start()
    last()


def daemon_gets():
    threading.Thread(target=queue.Queue().get, daemon=True).start()
    last()


def pool():
    with ThreadPoolExecutor(4) as executor:
        say(sum(executor.map(abs, range(100))))
    last()


def pool_unfinished():
    executor = ThreadPoolExecutor(2)
    for number in range(6):
        executor.submit(lambda at=number: (time.sleep(0.05), at))
    executor.submit(say, "the last task")
    last()


def loop():
    async def both():
        running = asyncio.get_running_loop()
        await asyncio.gather(asyncio.sleep(0.1), running.run_in_executor(None, time.sleep, 0.2))
        say("loop done")

    asyncio.run(both())
    last()


def excepthook():
    def fails():
        time.sleep(0.2)
        raise OSError("after the main thread has ended")

    threading.Thread(target=fails, name="late").start()
    last()


if __name__ == "__main__":
    steps(FRAMEWORK)
    globals()[sys.argv[1]]()
