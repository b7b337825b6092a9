"""The agent's knowledge of its process: one ``AgentState``, held by the global ``CURRENT``.

Rule of failure: an exception in our code becomes a diagnostic line; a probe that failed three times, or the whole
agent, removes itself. Nothing of ours raises into the job. Exceptions of the job's own code pass through, even from a
signal handler that runs inside our code.

A forked child drops its parent's ring and log at once and makes its own at its first record, with unchanged ids:
``write`` stays the same object, only its target changes. A child that records nothing costs nothing.

The state knows its parts (``core``, ``duty_cycle``, ``capture``); they know each other, or a ``Protocol``, but never
the state.
"""

from __future__ import annotations

import os
import time
from _thread import allocate_lock

from stepscope.agent.capture.controller import Captures
from stepscope.agent.core import process
from stepscope.agent.core.guard import MAX_FAILURES, Failures
from stepscope.agent.core.hooks import Hooks
from stepscope.agent.core.lines import AgentLog
from stepscope.agent.core.off_watch import OffWatch
from stepscope.agent.core.other_frames import STEADY
from stepscope.agent.core.patches import Patches
from stepscope.agent.core.records import Records
from stepscope.agent.core.threads import Threads
from stepscope.agent.duty_cycle import DutyCycle
from stepscope.agent.membership import Membership
from stepscope.wire.env import GAVE_WAY_NAME, PROCS_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Optional

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.core.guard import Guard
    from stepscope.agent.core.patches import Hot

NO_READER = "the collector gave its memory back to the job"

CURRENT: AgentState | None = None
"""The state of this process; None when it is not measured."""


class AgentState:
    """State shared by all probes. ``write`` and ``now`` are hot: keep them in locals."""

    def __init__(self, run: str) -> None:
        self.config = process.read_config(run)
        self.now: Callable[[], int] = time.monotonic_ns
        self.lines = AgentLog(run, self._wake)
        self.log = self.lines.log
        self.name = self.lines.name
        self.new_id = self.lines.new_id
        self.threads = Threads(self.lines)
        self.thread = self.threads.current
        self.records = Records(self.thread, self._wake)
        self.write = self.records.write
        self.short = self.records.short
        self.failures = Failures(self.lines.diagnostic, self.uninstall)
        self.guard: Callable[[str], Guard] = self.failures.guard
        self.membership = Membership(self.lines, self.failures)
        self.patches = Patches()
        self.hooks = Hooks(OffWatch(self.take_out))
        self._opening = allocate_lock()
        self._attaching = ""
        self.duty_cycle = DutyCycle(self)
        self.captures = Captures(self)

    # -- opening and leaving -------------------------------------------------------------------------------------

    def open(self, origin: str) -> bool:
        """Make the process directory, the log and the ring. False if this process cannot be measured."""
        if not self._opening.acquire(blocking=False):
            return False
        try:
            self.lines.dormant = False
            self.records.unbind()
            self.lines.open(process.make_folder(os.path.join(self.lines.run, PROCS_NAME)), origin)
            ring = self.records.open(self.lines.folder, self.config, origin)
            self.duty_cycle.uncommitted = ring.uncommitted
            self.records.doing.word = ring.doing
            self.records.bind()
        except Exception as error:
            self.take_out("no ring: %s: %s" % (type(error).__name__, error))
            return False
        finally:
            self._opening.release()
        return True

    def _wake(self) -> None:
        """Make the ring and log of a forked child that is about to write."""
        if self.lines.dormant and os.path.exists(os.path.join(self.lines.run, GAVE_WAY_NAME)):
            self.take_out(NO_READER, said=True)
        elif self.lines.dormant and not self.hooks.off.look(self.now()) and self.open("fork"):
            for restart in self.hooks.children:
                restart()

    def after_fork(self) -> None:
        """In a forked child: leave the parent's ring and log to the parent. Cheap: makes nothing."""
        STEADY.after_fork()
        if self.lines.out:
            return
        self.records.after_fork()
        self.records.doing.leave()
        log = self.lines.after_fork()
        self.threads.after_fork()
        self._opening = allocate_lock()
        self.duty_cycle.after_fork()
        self.captures.after_fork()
        self.membership.after_fork()
        self.hooks.ticks.clear()
        self.lines.dormant = True
        if log is not None:
            log.close()

    def take_out(self, why: str, *, said: bool = False, code: str = "DX900") -> None:
        """Stop measuring for good, hold nothing of the job any more, and log why, unless that is ``said`` by others."""
        if not said:
            self.lines.diagnostic(code, "the agent stopped measuring: " + why)
        self.captures.stop(why)
        self.duty_cycle.end(self.now())  # while its record still reaches the ring
        with self.guard("seals"):
            self.records.seal_rest()  # the collector takes only sealed records while the process lives
        self.lines.out = True
        self.lines.dormant = False
        self.records.leave()
        self.uninstall()
        self.hooks.let_go()

    def finish(self, thread_cpu_ns: int = 0) -> None:
        """Write the last line, and let go of what probes hold. Code that runs later at exit is still recorded."""
        if self.lines.out or self.lines.dormant or not self.lines.is_open:
            return
        self.duty_cycle.finish(self.now())
        self.records.flush()
        self.hooks.finish()
        with self.guard("seals"):
            self.records.seal_rest()
        self.lines.end(self.records.written(), thread_cpu_ns)
        self.hooks.let_go()

    # -- probes --------------------------------------------------------------------------------------------------

    def attach(self, probe: str, attach: Callable[[AgentState, Foreign], object], module: Foreign) -> None:
        """Run one probe's ``attach(state, module)``; patches that it makes are registered under its name."""
        if self.lines.out or self.failures.of(probe) >= MAX_FAILURES:
            return
        before, self._attaching = self._attaching, probe
        try:
            attach(self, module)
        except Exception as error:
            why = "%s: %s" % (type(error).__name__, error)
            self.log({"t": "probe", "at": self.now(), "name": probe, "attached": False, "why": why})
            self.failures.add(probe, error)
        finally:
            self._attaching = before

    def patch(self, owner: Foreign, attribute: str, replacement: Foreign, hot: Optional[Hot] = None) -> None:
        """Set an attribute of a module, class or object; ``uninstall`` restores the original.

        ``hot``: (kind of its records, light replacement or None), see ``agent.duty_cycle``.
        """
        self.patches.set(self._attaching, owner, attribute, replacement, hot)

    def uninstall(self, probe: Optional[str] = None) -> None:
        """Restore what was patched (by one probe, or all). Attributes that others have patched since are left alone."""
        self.patches.undo(probe)
        if probe is None:
            self.hooks.clean_up()
