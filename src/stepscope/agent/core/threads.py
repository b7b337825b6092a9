"""Our ids for the threads of this process that have been seen."""

from __future__ import annotations

import os
import threading
import time
import weakref
from _thread import get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

    from stepscope.agent.core.lines import AgentLog

_MAX_THREADS = 65_535
_OWN_LINES = 64
"""Threads that write their own line. A server that makes one for each request would wait for the interpreter lock each
time."""
_THREADS: dict[int, threading.Thread] = vars(threading)["_active"]
"""Python's Thread objects by ident; the same dictionary for as long as the process lives, even after a fork."""
_STARTING: dict[threading.Thread, threading.Thread] = vars(threading).get("_limbo", {})
"""Thread objects that are not in ``_THREADS`` yet, although they may run: the collector may call us there."""


class Threads:
    """Ids of threads; a thread gets its id, and its line in the log, when it is first seen."""

    def __init__(self, lines: AgentLog) -> None:
        self._lines = lines
        self.local = threading.local()
        """Thread-local values for probes: nesting depths and the like."""
        self.life = 0
        """Number of forks between the armed process and this one: what began before a fork is not ours to end."""
        self._ids = threading.local()
        self._idents: dict[int, tuple[int, Optional[weakref.ref[threading.Thread]]]] = {}
        self._writers: set[int] = set()

    def after_fork(self) -> None:
        """In a forked child: give its one thread a new id."""
        self._ids = threading.local()
        self._idents = {}
        self._writers = set()
        self.life += 1

    def current(self) -> int:
        """The id of the calling thread."""
        try:
            return self._ids.id  # type: ignore[no-any-return]
        except AttributeError:
            ident = get_ident()
            self._writers.add(ident)
            number = self._ids.id = self.of(ident)
            return number

    def of_pool(self) -> int:
        """The id of the calling thread, for code that runs mostly on threads made by native code. Their thread-local
        values are recreated on each call of Python, which costs ten times as much as a lookup by ``ident``.
        """
        ident = get_ident()
        known = self._idents.get(ident)
        if known is not None and known[1] is None and ident not in _THREADS:
            return known[0]
        return self.current()

    def of(self, ident: int, name: str = "") -> int:
        """The id of any thread of the process, by its ``threading.get_ident``; a new one for one that has a ``name``.

        Threads made by native code have no Thread object and lose their thread-local values between two calls of
        Python: they are known by ``ident``. ``current_thread`` is not called: it would make them visible to the job.
        """
        thread = _THREADS.get(ident) or _starting(ident)
        known = self._idents.get(ident) if not name else None
        if known is not None and (known[1]() if known[1] is not None else None) is thread:
            return known[0]
        number = min(self._lines.new_id("thread"), _MAX_THREADS)
        self._idents[ident] = (number, weakref.ref(thread) if thread is not None else None)
        native = threading.get_native_id() if ident == get_ident() else native_of(ident)
        line: dict[str, object] = {"t": "thread", "at": time.monotonic_ns(), "id": number, "native": native}
        line.update(name=name or getattr(thread, "name", ""), main=thread is threading.main_thread())
        if number > _OWN_LINES:
            self._lines.write_later(line)
        else:
            self._lines.write(line)
        return number

    def is_known(self, ident: int) -> bool:
        """Whether that thread already has an id."""
        return ident in self._idents

    def writes(self, ident: int) -> bool:
        """Whether that thread has asked for its id, as threads that write records do."""
        return ident in self._writers

    def known(self) -> int:
        """Number of threads with an id."""
        return len(self._idents)


def native_of(ident: int) -> int:
    """The kernel's id of a thread of Python's; 0 if it has ended or is not known."""
    thread = _THREADS.get(ident)
    # Before Python 3.13.4 the native id of a forked main thread is its parent's.
    return os.getpid() if thread is threading.main_thread() else getattr(thread, "native_id", 0) or 0


def _starting(ident: int) -> Optional[threading.Thread]:
    """The thread that starts now with that ident, if there is one."""
    return next((thread for thread in list(_STARTING) if thread.ident == ident), None)
