"""Arms a process: waits for a framework to be imported, at no other cost.

The payload's sitecustomize imports this in every Python process of a run, so it is short, imports nothing that the
interpreter has not loaded already, makes no thread and opens no file. The first import of one of ``ROOTS`` makes the
agent's state and attaches the probes; in a process without a framework the collector's signal does (``listen``).
Callbacks run after the import of exactly named modules, while that module's import lock is held, and never import a
framework themselves.

A finder at the front of ``sys.meta_path`` answers for the awaited names only. It returns the other finders' spec with
its loader unchanged: only that loader's ``exec_module`` is shadowed, on the instance, until it has run. So
``__loader__``, ``__spec__``, ``find_spec``, lazy loaders and reloading behave as they do without us.

Until stacks are sampled, that finder also notes when the program's own lines ask for a module that is not loaded, and
which lines: the interpreter asks it anyway. It answers None to that as to any other name.
"""

from __future__ import annotations

import _thread
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec
    from types import FrameType, ModuleType
    from typing import Optional

    from stepscope.agent.core.foreign import Foreign

    Callback = Callable[[Foreign], object]
    Asked = tuple[int, int, str, list[tuple[str, str, int]]]

ROOTS = ("tensorflow", "keras", "tf_keras", "onnxruntime", "torch", "jax")
"""Packages whose first import starts the measurement of a process."""
COMPUTES = ("tensorflow", "onnxruntime", "torch", "jax")
"""Packages whose import also starts sampling."""

_START_S = 5.0
"""Longest wait of a fork for the start of the measurement: 0.1 s of CPU time, which others may have."""
_LOOK_S = 0.001

MOST_NOTES = 1000
"""Imports by the program's own lines that are noted."""
_IMPORT_SYSTEM = ("importlib._bootstrap>", "importlib" + os.sep + "__init__.py")
_ASKS = 4
"""Frames between the finder and ``_find_and_load``, at most: in ``importlib.util.find_spec`` there is none."""
_OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_NOT_OWN = ("<frozen ", os.path.dirname(os.__file__) + os.sep, _OURS)
_INSTALLED = "-packages" + os.sep
"""Ending of the folder of what is installed. A first look: ``agent.core.frames`` decides when the notes are written."""

_PEERS = "/peers.jsonl"
"""``wire.env.PEERS_NAME``, which costs an import."""

_signal: Foreign = __import__("_signal")
"""The interpreter's own module: ``signal`` costs an import of ``enum``."""

HOOK: ImportHook | None = None


class _Exec:
    """Replacement of one loader's ``exec_module`` until it has run once."""

    __slots__ = ("hook", "loader", "name", "original")

    def __init__(self, hook: ImportHook, loader: Foreign, name: str) -> None:
        self.hook = hook
        self.loader = loader
        self.name = name
        self.original = loader.exec_module

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Exec) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> tuple[object, ...]:
        return (getattr, (self.loader.__class__, "exec_module"))

    def __call__(self, module: ModuleType) -> None:
        if module.__name__ != self.name:
            self.original(module)
            return
        self.remove()
        self.hook.starting(self.name)
        self.original(module)
        self.hook.finished(self.name, module)

    def remove(self) -> None:
        """Restore the loader's own method."""
        if vars(self.loader).get("exec_module") is self:
            del self.loader.exec_module


class ImportHook:
    """A finder that finds nothing itself but reports when an awaited module has been imported."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.pid = os.getpid()
        self.began: dict[str, int] = {}
        """When the import of each of ``ROOTS`` began, CLOCK_MONOTONIC nanoseconds."""
        self._awaited: dict[str, list[Callback]] = {name: [] for name in ROOTS}
        self._running: set[str] = set()
        self._once = _thread.allocate_lock()
        self.notes = True
        """Whether imports are noted."""
        self.asked: list[Asked] = []
        """When own code asked for a module, CLOCK_MONOTONIC nanoseconds, the CPU time of the main thread by then, the
        module's name, and the lines of own code that led there, root to leaf."""
        self.main = _thread.get_ident()
        self._own: dict[str, bool] = {}
        self._starting = 0
        """The thread that starts the measurement, by its number in the kernel; -1: it has not begun; 0: none."""
        self.plain: Optional[Callable[[], object]] = None
        """Starts the agent's thread in a process without a framework; None until the process is measured."""
        self.end: Optional[Callback] = None
        """Ends the measurement of a process that stays; None until the process is measured."""
        try:
            self.folder = os.getcwd()
        except OSError:
            self.folder = "/"

    def find_spec(self, name: str, path: Foreign = None, target: Foreign = None) -> ModuleSpec | None:
        """The other finders' spec, with a watched loader; None for names that are not awaited."""
        if self.notes:
            self._note(name)
        if name not in self._awaited:
            return None
        for finder in list(sys.meta_path):
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                self._watch(spec.loader, name)
                return spec
        return None

    def _note(self, name: str) -> None:
        """Note an import that own code on the main thread asks for; one that others ask for costs 0.5 us."""
        frame = _asker()
        if frame is None or not self._is_own(frame.f_code.co_filename) or _thread.get_ident() != self.main:
            return
        now, used, lines = time.monotonic_ns(), time.thread_time_ns(), []
        while frame is not None:
            code = frame.f_code
            if self._is_own(code.co_filename):
                lines.append((code.co_filename, code.co_name, frame.f_lineno or 0))
            frame = frame.f_back
        lines.reverse()
        self.asked.append((now, used, name, lines))
        self.notes = self.notes and len(self.asked) < MOST_NOTES

    def _is_own(self, file: str) -> bool:
        known = self._own.get(file)
        if known is None:
            known = self._own[file] = not file.startswith(_NOT_OWN) and _INSTALLED not in file
        return known

    def _watch(self, loader: Foreign, name: str) -> None:
        if isinstance(loader, type) or not hasattr(loader, "exec_module") or not hasattr(loader, "__dict__"):
            return
        try:
            loader.exec_module = _Exec(self, loader, name)
        except Exception as error:
            self._report(name, error)

    def starting(self, name: str) -> None:
        """The body of ``name`` is about to run."""
        if name in ROOTS:
            self.began.setdefault(name, time.monotonic_ns())
            self.activate()

    def finished(self, name: str, module: ModuleType) -> None:
        """The body of ``name`` has run: run its callbacks, once, even if loaders wrap each other."""
        if name in self._running:
            return
        self._running.add(name)
        try:
            for callback in list(self._awaited.get(name, ())):
                self._call(callback, name, sys.modules.get(name, module))
        finally:
            self._running.discard(name)

    def after_import(self, name: str, callback: Callback) -> None:
        """Call ``callback(module)`` after each execution of ``name``; at once if it has been imported already."""
        self._awaited.setdefault(name, []).append(callback)
        module = sys.modules.get(name)
        spec = getattr(module, "__spec__", None)
        if module is not None and not getattr(spec, "_initializing", False):
            self._call(callback, name, module)

    def _call(self, callback: Callback, name: str, module: Foreign) -> None:
        try:
            callback(module)
        except Exception as error:
            self._report(name, error)

    def _report(self, name: str, error: Exception) -> None:
        state = sys.modules.get("stepscope.agent.state")
        current = getattr(state, "CURRENT", None)
        if current is not None:
            current.lines.diagnostic("DX901", "import hook, %s: %s: %s" % (name, type(error).__name__, error))

    def activate(self) -> None:
        """Start measuring this process, once. If that fails, remove the hook."""
        # Acquired and never released. Not waited for: a signal handler may get here while its own thread holds it.
        if not self._once.acquire(blocking=False):
            return
        try:
            from stepscope.agent import start  # the run directory may have gone since this process was armed

            measured = start.start(self, ROOTS, COMPUTES)
        except Exception as error:
            measured = False
            self._tell(error)
        if not measured:
            self.remove()

    def wake(self) -> None:
        """On the main thread, in the handler of a signal: measure this process although it has imported no framework.

        The first signal only makes a thread, which imports our code: here some module may be half imported. It handles
        none of the job's signals, as those of ``agent.core.side_thread``. A later signal starts the sampling.
        """
        if self.plain is not None:
            self.plain()
        elif not self._starting and not self._once.locked():
            import threading  # the thread that imports it first is the main one to it

            del threading
            os.register_at_fork(before=self.await_start)
            before = _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())
            try:
                self._starting = -1
                _thread.start_new_thread(self._start, ())
            except RuntimeError:
                self._starting = 0
                raise
            finally:
                _signal.pthread_sigmask(_signal.SIG_SETMASK, before)

    def _start(self) -> None:
        self._starting = _thread.get_native_id()
        self.activate()

    def await_start(self) -> None:
        """Before a fork: let the thread that starts the measurement end.

        A child would find modules half imported for ever, and Python 3.12 warns of a fork while there are two threads.
        """
        until = time.monotonic() + _START_S
        while self._starting and time.monotonic() < until:
            if self._starting > 0 and not os.path.exists("/proc/self/task/%d" % self._starting):
                self._starting = 0
            else:
                time.sleep(_LOOK_S)
        self._starting = 0  # a child has no such thread

    def _tell(self, error: Exception) -> None:
        """Leave a line in the run directory: this process has no log to report the error in."""
        try:
            from stepscope.wire import trouble
        except Exception:  # our files are gone, and the run with them: there is nowhere to report it
            return
        trouble.tell(self.run, "start of the agent", error)

    def remove(self) -> None:
        """Leave ``sys.meta_path``; no callback runs after this."""
        self._awaited = {}
        self.plain, self.end, self.notes, self.asked = None, None, False, []
        if self in sys.meta_path:
            sys.meta_path.remove(self)


def _asker() -> Optional[FrameType]:
    """The frame that asks for the import for which the finder is called; None: nothing is imported."""
    frame: Optional[FrameType] = sys._getframe(2)
    for _ in range(_ASKS):
        frame = frame.f_back if frame is not None else None
        if frame is None or frame.f_code.co_name == "_find_and_load":
            break
    else:
        return None
    while frame is not None and frame.f_code.co_filename.endswith(_IMPORT_SYSTEM):
        frame = frame.f_back
    return frame


def arm(run: str) -> None:
    """Wait for a framework on behalf of the run in directory ``run``. Does nothing if the directory is gone."""
    global HOOK
    if HOOK is not None or not os.path.isdir(run):
        return
    HOOK = ImportHook(run)
    sys.meta_path.insert(0, HOOK)
    if os.path.exists(run + _PEERS):
        from stepscope.agent import peers  # only trials pay for it

        peers.watch(run)
    for name in ROOTS:
        if name in sys.modules:
            HOOK.activate()
            return


def begin(run: str) -> bool:
    """Arm this process, which runs already, and measure it at once, with or without a framework; False: it cannot be.

    Ended by ``end``, after which it may begin again, for another run.
    """
    if HOOK is not None:
        return False
    arm(run)
    hook = HOOK
    if hook is None:
        return False
    hook.activate()
    if hook.plain is None:
        end()
        return False
    hook.plain()
    return True


def end() -> None:
    """Measure this process no more, and leave nothing of ours in it but loaded modules."""
    global HOOK
    hook, HOOK = HOOK, None
    if hook is not None:
        leave = hook.end
        try:
            if leave is not None:
                hook._call(leave, "end", None)
        finally:
            hook.remove()


def listen() -> None:
    """Have the collector's signal wake this process; a program that handles that signal itself is left alone.

    SIGURG is ignored by default, so that it cannot harm a program that another has replaced meanwhile by ``exec``.
    """
    try:
        if HOOK is not None and _signal.getsignal(_signal.SIGURG) == _signal.SIG_DFL:
            _signal.signal(_signal.SIGURG, _woken)
            _signal.siginterrupt(_signal.SIGURG, False)
    except (OSError, ValueError):  # not the main thread, or not the main interpreter: such a process is not woken
        pass


def _woken(_number: int, _frame: Foreign) -> None:
    """The collector says that this process has lived for some seconds, and computes."""
    hook = HOOK
    if hook is None:
        return
    try:
        hook.wake()
    except (ImportError, OSError, RuntimeError) as error:
        hook._tell(error)
