"""Ends by a signal, its own or one that the bench sends when it has noted "ready": signals.py WAY FRAMEWORK."""

import signal
import sys
import time

from work import last, note, say, steps, wait


def exits(number, frame):
    say(f"handler of {signal.Signals(number).name}")
    sys.exit(4)


def own(number):
    last()
    signal.raise_signal(number)
    time.sleep(60)


def own_term():
    own(signal.SIGTERM)


def own_interrupt():
    own(signal.SIGINT)


def own_kill():
    own(signal.SIGKILL)


def own_usr1():
    own(signal.SIGUSR1)


def alarm():
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    last()
    time.sleep(60)


def caught():
    signal.signal(signal.SIGTERM, exits)
    own(signal.SIGTERM)


def caught_outside():
    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP):
        signal.signal(number, exits)
    wait()


def outside():
    wait()


def interrupted_training():
    note("ready")
    try:
        while True:
            steps_quietly()
    except KeyboardInterrupt:
        say("stopped by hand")
    last()


def steps_quietly():
    import work

    work.FRAMEWORKS[sys.argv[2]](2)


def ignored():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, lambda number, frame: (last(), sys.exit(2)))
    signal.setitimer(signal.ITIMER_REAL, 1.0)
    wait()


if __name__ == "__main__":
    steps(sys.argv[2])
    globals()[sys.argv[1]]()
