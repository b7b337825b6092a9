"""Passes signals on to the job that the launcher got alone.

The job is in the launcher's process group. What is sent to the group (Ctrl-C, ``kill -INT -PGID``, a supervisor that
stops groups) has reached the job already; passed on, it would reach it twice, and end a program that is saving what it
has. The terminal's signals say that they are; those of other processes do not. So a process that only waits stands in
the group too, with all signals blocked: what has reached it was sent to all.
"""

from __future__ import annotations

import os
import select
import signal
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LEAVE = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})
"""Signals that end jobs."""
_SI_KERNEL = 0x80
"""``si_code`` of a signal from the terminal, which the whole foreground group has received (sigaction(2))."""
_TRIES = 3
_PAUSE_S = 0.005
"""Between two questions: who sends to one process after another reaches the witness a moment after the launcher."""
_PATIENCE_S = 0.5
"""For an answer of a witness that gets no CPU, or that somebody has stopped."""
_ASK = b"?"


class Relay:
    """Between those who send signals and one job; to be made when the job has been started.

    ``note`` is called for each signal that ends jobs.
    """

    def __init__(self, job: int, note: Callable[[], None]) -> None:
        self._job = job
        self._note = note
        self._pid = 0
        """The witness; 0: there can be none, and all that is not the terminal's is passed on."""
        self._ask, self._answers = -1, -1
        self.asked_to_end = 0
        """The last signal that ends jobs; 0: there was none."""
        self._of_all: set[int] = set()
        """Signals that have reached the witness, and are not yet taken here."""
        with suppress(OSError):
            self._start()

    def _start(self) -> None:
        asked, self._ask = os.pipe()
        self._answers, answer = os.pipe()
        try:
            self._pid = os.fork()
            if not self._pid:
                _witness(asked, answer)
        finally:
            os.close(asked)
            os.close(answer)

    def pass_on(self, info: signal.struct_siginfo) -> None:
        """Send the job a signal unless it has got it."""
        if info.si_signo in LEAVE:
            self.asked_to_end = info.si_signo
            self._note()
        if not self._was_sent_to_all(info.si_signo) and info.si_code != _SI_KERNEL:
            with suppress(OSError):  # it has just ended, or is no longer ours (set-user-id)
                os.kill(self._job, info.si_signo)

    def _was_sent_to_all(self, number: int) -> bool:
        for attempt in range(_TRIES if self._pid else 0):
            if attempt:
                time.sleep(_PAUSE_S)
            if not self._answered() or number in self._of_all:
                break
        was = number in self._of_all
        self._of_all.discard(number)
        return was

    def _answered(self) -> bool:
        """Ask the witness what has reached it since the last question; whether it answers."""
        try:
            os.write(self._ask, _ASK)
            if not select.select([self._answers], [], [], _PATIENCE_S)[0]:
                return False
            self._of_all.update(os.read(self._answers, 256)[1:])
        except OSError:  # somebody has killed it
            return False
        return True

    def end(self) -> None:
        """End the witness."""
        for fd in (self._ask, self._answers):
            if fd >= 0:
                os.close(fd)
        if self._pid:
            with suppress(OSError):
                os.kill(self._pid, signal.SIGKILL)  # it may be stopped
                os.waitpid(self._pid, 0)


@contextmanager
def present(job: int, note: Callable[[], None]) -> Iterator[Relay]:
    """A relay until the job has ended."""
    relay = Relay(job, note)
    try:
        yield relay
    finally:
        relay.end()


def _witness(asked: int, answer: int) -> None:
    """Answer with what has arrived, as often as asked; end with the launcher, whose ends of the pipes close then."""
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        for fd in map(
            int, os.listdir("/proc/self/fd")
        ):  # as many as the limit allows would take minutes where it is high
            if fd not in {asked, answer}:
                with suppress(OSError):  # the listing's own
                    os.close(fd)
        while os.read(asked, 1):
            arrived = iter(lambda: signal.sigtimedwait(signal.valid_signals(), 0), None)
            os.write(answer, bytes([0, *(info.si_signo for info in arrived)]))
    finally:
        os._exit(0)
