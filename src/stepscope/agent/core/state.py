"""What the agent knows about the process it lives in: one ``AgentState``, and the global ``CURRENT`` that holds it.

Rule of failure: an exception in code of ours becomes a diagnostic line, and the probe that failed three times, or the
whole agent, takes itself out. Nothing of ours raises into the job. What the job's own code raises, also from a signal
handler that runs inside ours, passes through.

A forked child drops its parent's ring and log at once and makes its own at its first record, with ids as they were:
``write`` stays the same object, what is behind it changes. A child that records nothing costs nothing.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
import weakref
from _thread import allocate_lock, get_ident
from collections import deque

from stepscope.agent.capture.controller import Captures
from stepscope.agent.core import process
from stepscope.agent.core.guard import MAX_FAILURES, Guard, place_of
from stepscope.agent.core.patches import Patches
from stepscope.agent.rest import Rest
from stepscope.agent.sampling.short_calls import ShortCalls
from stepscope.wire.env import PROCS_NAME
from stepscope.wire.log import LogWriter
from stepscope.wire.place import make_ring
from stepscope.wire.ring import DEFAULT_SLOTS, HEADER_BYTES, RECORD_BYTES, Thinning, make_write, tapped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from typing import Any, Optional

    from stepscope.agent.core.patches import Rests
    from stepscope.wire.ring import RingWriter, Tap, Write

CURRENT: AgentState | None = None
"""The state of this process; None when it is not measured."""

_MAX_DIAGNOSTICS = 200
_MAX_THREADS = 65_535
_OWN_LINES = 64
"""Threads that write their own line. A server that makes one for each request would wait for the interpreter lock with
each: writing gives it away. The agent's thread writes those of later ones."""
_MAX_NAMES = 20_000
"""Names kept at most (about 10 MB): a job may make up names or functions without end."""
_OTHERS = ("others",)
_CHILD_SLOTS_DIVISOR = 8
"""A forked child gets a smaller ring: there may be many, and each takes its memory at its first record."""
_THREADS: dict[int, threading.Thread] = vars(threading)["_active"]
"""Those of Python by ident; the same dictionary for as long as the process lives, also after a fork."""
_KEPT = frozenset(("name", "framework", "probe"))
"""Lines that a forked child's log needs too: their ids stay in use."""


class AgentState:
    """Everything that probes share. ``write`` and ``now`` are hot: take them as locals."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.config = process.read_config(run)
        self.now: Callable[[], int] = time.monotonic_ns
        self.local = threading.local()
        """Free for probes: nesting depths and the like."""
        self.started_ns = time.monotonic_ns()
        self.last_words = ""
        """The newest diagnostic, also where there is no log to take it."""
        self.folder = ""
        self.out = False
        """Whether the agent has taken itself out."""
        self.dormant = False
        """Whether this is a forked child that has recorded nothing yet."""
        self.life = 0
        """How many forks lie between the process that was armed and this one: what began before is not ours to end."""
        self.children_after_fork: list[Callable[[], object]] = []
        """Called in a forked child once it records: restarts the agent's thread."""
        self.ticks: list[Callable[[int], object]] = []
        self.errand: Callable[[int], object] | None = None
        """What the agent's thread has to do besides, piece by piece, in its pauses."""
        self.apart_ns = 0
        """CPU time of errands: the rate of samples does not follow it."""
        self._scratch = bytearray(HEADER_BYTES + RECORD_BYTES)
        self._ring: Optional[RingWriter] = None
        self._log: Optional[LogWriter] = None
        self._claim: Callable[[], int] = itertools.count().__next__
        self._thin: Optional[Thinning] = None
        self._tap: Optional[Tap] = None
        write, self._rebind = make_write(self._scratch, 1, self._claim)
        self.write: Write = write
        """``write(start_ns, dur_ns, arg, name, kind, flags, thread)``: one record. Never raises."""
        self._opening = allocate_lock()
        self._kept: list[dict[str, object]] = []
        self.names: dict[Hashable, int] = {}
        """Interned names: key to id; ``name`` fills it."""
        self._counters: dict[str, itertools.count[int]] = {}
        self._forget_threads()
        self._patches = Patches()
        self._attaching = ""
        self._failures: dict[str, int] = {}
        self._told: set[tuple[str, str]] = set()
        self._cleanups: list[Callable[[], object]] = []
        self._finishes: list[Callable[[], object]] = []
        self._short = ShortCalls(self)
        self.short = self._short.add
        """``short(name, kind, start_ns, dur_ns)``: a call too short to record, see ``agent.sampling.short_calls``."""
        self.rest = Rest(self)
        self.captures = Captures(self)

    # -- opening and leaving -------------------------------------------------------------------------------------

    def open(self, origin: str) -> bool:
        """Make the process directory, the log and the ring. False: this process cannot be measured."""
        if not self._opening.acquire(blocking=False):
            return False
        try:
            self.dormant = False
            self._rebind(self._scratch, 1, self._claim, None)
            self.folder = process.make_folder(os.path.join(self.run, PROCS_NAME))
            self._log = LogWriter(self.folder)
            self._log.write(process.first_line(origin))
            for line in list(self._kept):
                self._log.write(line)
            slots = int(self.config.get("slots") or DEFAULT_SLOTS)
            if origin == "fork":
                slots //= _CHILD_SLOTS_DIVISOR
            self._ring = make_ring(self.folder, list(self.config.get("ring_dirs") or ()), slots)
            self.rest.untold = self._ring.untold
            self._bind()
        except Exception as error:
            self.take_out("no ring: %s: %s" % (type(error).__name__, error))
            return False
        finally:
            self._opening.release()
        return True

    def _wake(self) -> int:
        """First record of a forked child: its index, after its own ring and log have been made."""
        if self.dormant and self.open("fork"):
            for restart in self.children_after_fork:
                restart()
        return self._ring.claim() if self._ring is not None else self._claim()

    def after_fork(self) -> None:
        """In a forked child: leave the parent's ring and log to the parent. Cheap; makes nothing."""
        if self.out:
            return
        self._rebind(self._scratch, 1, self._wake, None)
        log, self._log, self._ring = self._log, None, None
        self._forget_threads()
        self._opening = allocate_lock()
        self._thin = self._tap = None
        self._short.reset()
        self.rest.after_fork()
        self.captures.after_fork()
        self.ticks.clear()
        self.life += 1
        self.dormant = True
        if log is not None:
            log.close()

    def take_out(self, why: str) -> None:
        """Stop measuring for good, and say why."""
        self.diagnostic("DX900", "the agent took itself out: " + why)
        self.captures.stop("the agent took itself out")
        self.rest.end(self.now())  # while its record still reaches the ring
        self.out = True
        self.dormant = False
        self._rebind(self._scratch, 1, self._claim, None)
        self.uninstall()

    def finish(self, thread_cpu_ns: int = 0) -> None:
        """Write the last line. Records of what runs later at exit are still taken."""
        if self.out or self.dormant or self._log is None:
            return
        self.rest.end(self.now())
        self._short.flush()
        self._write_late()
        for function in self._finishes:
            function()
        line: dict[str, object] = {"t": "end", "at": self.now(), "records": self.written()}
        line.update(lost_lines=self._log.lost, thread_cpu_ns=thread_cpu_ns)
        self._log.write(line)

    @property
    def has_log(self) -> bool:
        """Whether there is a log: else nothing that this process says is read by anybody."""
        return self._log is not None

    # -- records and lines ---------------------------------------------------------------------------------------

    def written(self) -> int:
        """Records written so far by this process."""
        return self._ring.written() if self._ring is not None else 0

    def calls(self) -> tuple[int, int]:
        """(records written, short calls counted) so far."""
        return self.written(), self._short.counted()

    def newest_kinds(self, count: int) -> list[int]:
        """Kinds of the newest ``count`` records."""
        return self._ring.newest_kinds(count) if self._ring is not None else []

    def thinnable(self) -> int:
        """Calls that came under thinning so far, written or counted."""
        return self._short.thinnable()

    def thin(self, every: int, kinds: frozenset[int], always: int, mark: int) -> None:
        """Write every ``every``-th record of ``kinds`` from now on (1: all); see ``wire.ring.Thinning``."""
        self._thin = Thinning(self._short.entries, every, kinds, always, mark) if every > 1 else None
        self._bind()

    def tap(self, function: Optional[Tap]) -> None:
        """Have ``function`` called with the fields of every record, by who writes it; None ends that.

        Nothing is thinned meanwhile. Records are written by several threads; what it raises stays here and is lost.
        """
        self._tap = function
        self._bind()

    def _bind(self) -> None:
        """Put the ring behind ``write``, as things stand."""
        if self._ring is not None and not self.out:
            place = (self._ring.buffer, self._ring.slots, self._ring.claim)
            self._rebind(*place, self._thin if self._tap is None else None, tapped(self._tap))

    def flush_short(self) -> None:
        """Write what ``short`` has counted; from the agent's thread, which is then the only one to do so."""
        self._short.ticking = True
        self._short.flush()
        self._write_late()

    def _write_late(self) -> None:
        while self._late:
            line = self._late.popleft()
            if self._log is not None and not self.out:
                self._log.write(line)

    def log(self, line: dict[str, object]) -> None:
        """Append one line to the log as it is; the caller gives ``t`` and ``at``."""
        if line.get("t") in _KEPT:
            self._kept.append(line)
        elif self.dormant:
            self._wake_for_line()
        if self._log is not None and not self.out:
            self._log.write(line)

    def _wake_for_line(self) -> None:
        if self.open("fork"):
            for restart in self.children_after_fork:
                restart()

    def name(self, key: Hashable, text: str, **fields: object) -> int:
        """The interned id of ``key``, a record's name; its line is logged at first use, with ``fields``."""
        known = self.names.get(key)
        if known is not None:
            return known
        if len(self.names) >= _MAX_NAMES:
            self.diagnostic("DX912", "more than %d names of records: the rest goes by one name" % _MAX_NAMES)
            key, text, fields = _OTHERS, "(others)", {}
            if key in self.names:
                return self.names[key]
        number = self.new_id("name")
        self.log({"t": "name", "at": self.now(), "id": number, "text": text, **fields})
        self.names[key] = number
        return number

    def new_id(self, what: str) -> int:
        """1, 2, 3 ... per ``what``."""
        counter = self._counters.get(what)
        if counter is None:
            counter = self._counters.setdefault(what, itertools.count(1))
        return next(counter)

    def diagnostic(self, code: str, text: str) -> None:
        """Say that something of ours failed or was given up; the same words are written once."""
        self.last_words = text
        if (code, text) in self._told or len(self._told) >= _MAX_DIAGNOSTICS:
            return
        self._told.add((code, text))
        if self._log is not None:
            self._log.write({"t": "diagnostic", "at": self.now(), "code": code, "text": text[:2000]})

    # -- threads -------------------------------------------------------------------------------------------------

    def _forget_threads(self) -> None:
        """At the beginning, and in a forked child."""
        self._threads = threading.local()
        self._idents: dict[int, tuple[int, Optional[weakref.ref[threading.Thread]]]] = {}
        self._late: deque[dict[str, object]] = deque()
        """Lines of threads that the agent's thread is to write."""

    def thread(self) -> int:
        """The id of the calling thread."""
        try:
            return self._threads.id  # type: ignore[no-any-return]
        except AttributeError:
            ident = get_ident()
            number = self._threads.id = self.thread_of(ident)
            return number

    def pool_thread(self) -> int:
        """The same, for what runs mostly on threads that native code made: their thread-local values are made anew for
        each call of Python, which costs ten times as much as a look by ``ident``.
        """
        ident = get_ident()
        known = self._idents.get(ident)
        if known is not None and known[1] is None and ident not in _THREADS:
            return known[0]
        return self.thread()

    def thread_of(self, ident: int, name: str = "") -> int:
        """The id of any thread of the process, by its ``threading.get_ident``.

        Threads that native code made have no Thread object and lose their thread-local values between two calls of
        Python: they are known by ``ident``. ``current_thread`` is not asked: it would make them visible to the job.
        """
        thread = _THREADS.get(ident)
        known = self._idents.get(ident)
        if known is not None and (known[1]() if known[1] is not None else None) is thread:
            return known[0]
        number = min(self.new_id("thread"), _MAX_THREADS)
        self._idents[ident] = (number, weakref.ref(thread) if thread is not None else None)
        native = getattr(thread, "native_id", 0) or (threading.get_native_id() if ident == get_ident() else 0)
        line: dict[str, object] = {"t": "thread", "at": self.now(), "id": number, "native": native}
        line.update(name=name or getattr(thread, "name", ""), main=thread is threading.main_thread())
        if number > _OWN_LINES and self._short.ticking:
            self._late.append(line)
        elif self._log is not None and not self.out:
            self._log.write(line)
        return number

    def is_known(self, ident: int) -> bool:
        """Whether that thread has an id already."""
        return ident in self._idents

    def known_threads(self) -> int:
        """How many threads have an id."""
        return len(self._idents)

    # -- patches -------------------------------------------------------------------------------------------------

    def attach(self, probe: str, attach: Callable[[AgentState, Any], object], module: Any) -> None:
        """Run one probe's ``attach(state, module)``; its patches are known as that probe's."""
        if self.out or self._failures.get(probe, 0) >= MAX_FAILURES:
            return
        before, self._attaching = self._attaching, probe
        try:
            attach(self, module)
        except Exception as error:
            why = "%s: %s" % (type(error).__name__, error)
            self.log({"t": "probe", "at": self.now(), "name": probe, "attached": False, "why": why})
            self.fail(probe, error)
        finally:
            self._attaching = before

    def patch(self, owner: Any, attribute: str, replacement: Any, rests: Optional[Rests] = None) -> None:
        """Set an attribute of a module, class or object; ``uninstall`` puts the original back.

        ``rests``: (kind of its records, light replacement or None), see ``agent.rest``.
        """
        self._patches.set(self._attaching, owner, attribute, replacement, rests)

    def put_aside(self, counted: frozenset[int]) -> None:
        """Begin a rest, see ``Patches.put_aside``."""
        self._patches.put_aside(counted)

    def put_back(self) -> None:
        """End a rest."""
        self._patches.put_back()

    def on_tick(self, function: Callable[[int], object]) -> None:
        """Have ``function(now_ns)`` called by the agent's thread, about 20 times a second."""
        self.ticks.append(function)

    def on_finish(self, function: Callable[[], object]) -> None:
        """Have ``function()`` called before the last line is written."""
        self._finishes.append(function)

    def on_uninstall(self, function: Callable[[], object]) -> None:
        """Have ``function()`` called when the agent leaves: for what ``patch`` cannot undo."""
        self._cleanups.append(function)

    def uninstall(self, probe: Optional[str] = None) -> None:
        """Put back what was patched (by one probe, or all). What others have patched over since is left alone."""
        self._patches.undo(probe)
        if probe is None:
            cleanups, self._cleanups = self._cleanups, []
            for cleanup in cleanups:
                cleanup()

    # -- failures of ours ----------------------------------------------------------------------------------------

    def guard(self, where: str) -> Guard:
        """Context manager and decorator for code of ours: see ``Guard``. ``where``: "probe" or "probe.place"."""
        return Guard(self, where)

    def swallow(self, where: str, error: Exception) -> bool:
        """In an ``except`` on a hot path, what ``guard`` does: False if the job's own code raised; re-raise then."""
        return Guard(self, where).__exit__(type(error), error, error.__traceback__)

    def failures(self, probe: str) -> int:
        """How often code of that probe has failed."""
        return self._failures.get(probe, 0)

    def fail(self, where: str, error: BaseException) -> None:
        """Record a failure of ours; the third of one probe takes it out."""
        probe = where.partition(".")[0]
        self._failures[probe] = self._failures.get(probe, 0) + 1
        text = "%s: %s: %s%s" % (where, type(error).__name__, error, place_of(error))
        self.diagnostic("DX901", text)
        if self._failures[probe] == MAX_FAILURES:
            self.diagnostic("DX902", "probe %s failed %d times and was taken out" % (probe, MAX_FAILURES))
            self.uninstall(probe)
