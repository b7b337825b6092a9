"""Ends in one of many ways after a few steps: exits.py WAY FRAMEWORK [long]."""

import atexit
import ctypes
import os
import subprocess
import sys
import threading
import time
import weakref

from work import last, live_long, note, say, steps


def falls_off():
    last()


def sys_exit():
    last()
    sys.exit(7)


def sys_exit_text():
    last()
    sys.exit("a text instead of a number")


def sys_exit_in_thread():
    thread = threading.Thread(target=sys.exit, args=(5,))
    thread.start()
    thread.join()
    last()


def os_exit():
    print("never written: os._exit flushes nothing", end="")
    last()
    os._exit(9)


def os_exit_in_thread():
    threading.Thread(target=os._exit, args=(6,)).start()
    time.sleep(60)


def uncaught():
    def inner(value):
        last()
        raise ValueError(f"no {value}")

    inner("such thing")


def uncaught_chain():
    try:
        {}["absent"]
    except KeyError as error:
        last()
        raise RuntimeError("while handling") from error


def uncaught_in_thread():
    def fails():
        raise OSError("of a thread")

    thread = threading.Thread(target=fails, name="failing")
    thread.start()
    thread.join()
    last()


def own_hook():
    def hook(kind, error, trace):
        say(f"own hook: {kind.__name__} {error} line {trace.tb_lineno}")

    sys.excepthook = hook
    last()
    raise LookupError("for the hook")


def at_exit():
    atexit.register(say, "registered first, runs last")
    atexit.register(steps, sys.argv[2])
    last()


def at_exit_raises():
    def fails():
        raise ValueError("at exit")

    atexit.register(say, "still runs")
    atexit.register(fails)
    last()


def at_exit_exits():
    atexit.register(os._exit, 11)
    last()


def abort():
    last()
    os.abort()


def segfault():
    last()
    ctypes.string_at(0)


def generator():
    def numbers():
        try:
            yield from range(10)
        finally:
            say("generator closed")

    global unfinished
    unfinished = numbers()
    next(unfinished)
    last()


class Says:
    """Says when it goes, and has a cycle if wanted."""

    def __init__(self, name, *, cycle=False):
        self.name = name
        self.own = self if cycle else None

    def __del__(self):
        say(f"{self.name} gone")


def deleted_late():
    global of_module, in_cycle
    of_module = Says("of the module")
    in_cycle = Says("in a cycle", cycle=True)
    weakref.finalize(of_module, say, "finalized")
    last()


def deletion_raises():
    class Raises:
        def __del__(self):
            raise ValueError("in __del__")

    global raises
    raises = Raises()
    last()


def stdout_closed():
    os.close(1)
    sys.stdout.write("nowhere to go\n")
    last()


def exec_another():
    last()
    os.execv(sys.executable, [sys.executable, "-S", "-c", "print('another'); raise SystemExit(4)"])


def fork_outlives():
    if os.fork() == 0:
        time.sleep(1)
        say("child ends later")
        os._exit(0)
    last()


def fork_finalizes_later():
    if os.fork() == 0:
        time.sleep(1)
        say("child falls off the end later")
        return
    last()


def daemonized():
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        time.sleep(1)
        say("daemon ends later")
        os._exit(0)
    os.wait()
    last()


def subprocess_outlives():
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1); print('grandchild')"], close_fds=False)
    last()


def timed_out_exit():
    def late():
        note("watchdog")
        os._exit(12)

    timer = threading.Timer(0.2, late)
    timer.daemon = True
    timer.start()
    time.sleep(60)


if __name__ == "__main__":
    steps(sys.argv[2])
    if "long" in sys.argv[3:]:
        live_long(sys.argv[2])
    globals()[sys.argv[1]]()
