"""Starts the measurement of a process: state, probes, thread, and the order in which they end at exit."""

from __future__ import annotations

import atexit
import functools
import os
import sys
import time
from _thread import allocate_lock

from stepscope.agent import asked_imports, state
from stepscope.agent.capture.commands import Commands
from stepscope.agent.capture.controller import KIND
from stepscope.agent.capture.first_look import FirstLook
from stepscope.agent.core import frames, side_thread
from stepscope.agent.probes import registry
from stepscope.agent.sampling.sampler import Sampler
from stepscope.agent.way_out import WayOut
from stepscope.wire import off, trouble
from stepscope.wire.commands import ENOUGH, HELD, LEAVE, STACKS
from stepscope.wire.env import GAVE_WAY_NAME
from stepscope.wire.trials import CONFIG_KEY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import Optional, Protocol

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

    class Hook(asked_imports.Hook, Protocol):
        """Interface of the import hook: see ``agent.bootstrap``."""

        run: str
        pid: int
        folder: str
        began: dict[str, int]
        plain: Optional[Callable[[], object]]
        end: Optional[Callable[[Foreign], object]]

        def after_import(self, name: str, callback: Callable[[Foreign], object]) -> None:
            """Call ``callback(module)`` after each execution of ``name``."""

        def await_start(self) -> None:
            """Before a fork: let the thread that starts the measurement end."""

        def remove(self) -> None:
            """Remove the hook; no callback runs after this."""


_LAST_S = 0.0005
"""Sleep of the main thread after all exit handlers."""
_FORKS = allocate_lock()
"""Taken for good once forks are watched: their handlers cannot be unregistered, and a process may be measured again."""
_RUNNING: Optional[MeasuredProcess] = None
"""This process, while it is measured."""


class MeasuredProcess:
    """The parts of one measured process other than its state."""

    def __init__(self, current: AgentState, computes: Collection[str], hook: Optional[Hook] = None) -> None:
        """``computes``: module names of the frameworks that compute; ``hook``: knows when imports began."""
        self.state = current
        self._computes = computes
        self.hook = hook
        self._began: dict[str, int] = {} if hook is None else hook.began
        self.sampler: Optional[Sampler] = None
        self._over = False
        """Whether the program's exit handlers run."""

    def framework(self, name: str, module: Foreign) -> None:
        """Log that a framework's import has ended; if the framework computes, start the agent's thread."""
        for folder in list(getattr(module, "__path__", ())):
            frames.exclude(str(folder))
        self._say(name, module)
        if name in self._computes:
            self.begin()

    def begin(self) -> None:
        """Start the agent's thread, once."""
        if self._over or self.state.lines.out:
            return
        if self.sampler is None:
            self._say("numpy", sys.modules.get("numpy"))
            if self.hook is not None:
                with self.state.guard("imports"):
                    asked_imports.write(self.state, self.hook)
            self._begin()
        self.register_exit()

    def woken(self) -> None:
        """The process lives for long: start the agent's thread, if there is none."""
        with self.state.guard("sampler"):
            self.begin()

    def _begin(self) -> None:
        self.start_thread()
        self.state.hooks.children.append(self.start_thread)
        with self.state.guard("commands"):
            captures = self.state.captures
            takes = {KIND: captures.order, ENOUGH: captures.enough, STACKS: self._denser, HELD: self._held}
            takes[LEAVE] = self._leave
            self.state.hooks.on_tick(Commands(self.state.lines, takes).tick)
        self.state.hooks.on_tick(self.state.membership.tick)
        self.state.hooks.on_tick(WayOut(self.state).tick)
        with self.state.guard("first_look"):
            bound_ns = self.state.config.get("first_look_ns")
            if bound_ns:
                self.state.hooks.on_tick(FirstLook(self.state, int(bound_ns)).tick)

    def _say(self, name: str, module: Foreign) -> None:
        if module is not None:
            now = self.state.now()
            line = {"t": "framework", "at": now, "name": name, "dur": now - self._began.pop(name, now)}
            line["version"] = str(getattr(module, "__version__", ""))
            with self.state.guard("frameworks"):
                line["detail"] = _onednn() if name == "tensorflow" else ""
            self.state.log(line)

    def start_thread(self) -> None:
        """Start the agent's thread. A forked child needs a new one, because fork does not copy threads."""
        if self.sampler is None or self.sampler.pid != os.getpid():
            self.state.hooks.on_tick(self.state.hooks.off.look)
            self.state.hooks.on_tick(self.state.records.seal)
            self.sampler = Sampler(self.state)
            self.sampler.start()

    def before_fork(self) -> None:
        """The process is about to fork: let the thread rest if it is the only other one."""
        with self.state.guard("fork"):
            if self.sampler is not None:
                self.sampler.rest()

    def _denser(self, command: dict[str, object]) -> None:
        """A window of native stacks begins: sample Python stacks at the same rate."""
        hz, seconds = command.get("hz"), command.get("seconds")
        if not isinstance(hz, (int, float)) or not isinstance(seconds, (int, float)):
            self.state.lines.diagnostic(
                "DX915", "invalid request for stacks at %.40r Hz for %.40r s; expected numbers" % (hz, seconds)
            )
        elif self.sampler is not None:
            try:
                self.sampler.denser(hz, seconds)
            except ValueError as error:
                self.state.lines.diagnostic("DX915", str(error))

    def _held(self, command: dict[str, object]) -> None:
        """A window of memory begins or ends: log what variables hold."""
        del command
        if self.state.hooks.held is not None:
            with self.state.guard("memory_watch"):
                self.state.hooks.held()

    def _leave(self, command: dict[str, object]) -> None:
        """The collector has given its memory back to the job."""
        del command
        self.state.take_out(state.NO_READER, said=True)

    def register_exit(self) -> None:
        """Register ``finish`` to run before all exit handlers registered so far."""
        atexit.unregister(self.finish)
        atexit.register(self.finish)

    def finish(self) -> None:
        """At exit: stop the thread, fold the counted calls, write the last line."""
        cpu_ns = 0
        self.state.captures.finish()
        if self.sampler is not None and self.sampler.pid == os.getpid():
            self.sampler.stop()
            cpu_ns = self.sampler.cpu_ns
        self._over = True
        self.sampler = None  # not earlier: a timer that is not stopped would kill the process while it ends
        self.state.finish(cpu_ns)

    def leave(self, _module: Foreign = None) -> None:
        """The measurement is over, and the process stays: take everything off and hold nothing of the program's."""
        global _RUNNING
        try:
            self.finish()
        finally:
            atexit.unregister(self.finish)
            atexit.unregister(_let_others_end)
            self.state.take_out("", said=True)
            state.CURRENT = _RUNNING = None


def _watch_forks() -> None:
    if _FORKS.acquire(blocking=False):
        os.register_at_fork(after_in_child=_in_child)
        if side_thread.FORK_WARNS:
            os.register_at_fork(before=_before_fork)


def _in_child() -> None:
    if state.CURRENT is not None:
        state.CURRENT.after_fork()


def _before_fork() -> None:
    running = _RUNNING
    if running is not None:
        if running.hook is not None:
            running.hook.await_start()
        running.before_fork()


def _let_others_end() -> None:
    """Give the interpreter's lock once more to threads that are about to end. Registered first, so that it runs last.

    The thread that feeds a queue of multiprocessing removes a semaphore and then says so to Python's resource tracker,
    which warns of a leak if the interpreter ends in between. Ours at exit makes that more frequent: of PyTorch's
    DataLoader by spawn on one CPU 9 of 69 warned, 0 of 69 without stepscope; with this, 0 of 92.
    """
    time.sleep(_LAST_S)


def start(hook: Hook, roots: Collection[str], computes: Collection[str]) -> bool:
    """Open the state and attach the probes by callbacks. False if this process cannot be measured."""
    global _RUNNING
    if not os.path.isdir(hook.run) or os.path.exists(os.path.join(hook.run, GAVE_WAY_NAME)):
        return False
    frames.armed_in(hook.folder)
    current = state.AgentState(hook.run)
    why = current.hooks.off.why(current.now())
    if why:
        trouble.write(hook.run, off.WHERE, why)
        return False
    if not current.open("exec" if hook.pid == os.getpid() else "fork"):
        if not current.lines.is_open:
            trouble.write(hook.run, "start of the agent", current.lines.last_words)
        return False
    state.CURRENT = current
    _RUNNING = running = MeasuredProcess(current, computes, hook)
    _watch_forks()
    atexit.register(_let_others_end)
    running.register_exit()
    current.hooks.on_uninstall(hook.remove)
    for name in roots:
        hook.after_import(name, functools.partial(running.framework, name))
    for probe, module_name, attach in _trial(current):  # below the probes, which measure what it leaves
        hook.after_import(module_name, functools.partial(current.attach, probe, attach))
    for probe, module_name, attach in registry.targets(current):
        hook.after_import(module_name, functools.partial(current.attach, probe, attach))
    if hook.began:  # what a framework imports is no line's of the program
        hook.notes = False
    current.membership.look()  # a process without a framework may have no thread of ours that would look later
    hook.plain, hook.end = running.woken, running.leave
    return True


def _trial(current: AgentState) -> Sequence[registry.Target]:
    """What a trial attaches; its code is loaded only if this run is one."""
    wanted = current.config.get(CONFIG_KEY)
    if wanted:
        with current.guard("trial"):
            from stepscope.agent.trials.registry import begin

            return begin(current, wanted)
    return ()


def _onednn() -> str:
    """State of TensorFlow's oneDNN: "oneDNN on" (its pool then serves the tensors), "oneDNN off", or "" if this version
    does not say.
    """
    port = sys.modules.get("tensorflow.python.util._pywrap_util_port")
    enabled = getattr(port, "IsMklEnabled", None)
    return ("oneDNN on" if enabled() else "oneDNN off") if callable(enabled) else ""
