"""Measures every job of an environment (``stepscope enable``): finds or makes the run directory and starts the sidecar.

Runs when a framework is imported, never before. A process whose ancestor is being measured joins that ancestor's run
directory; any other process makes a run directory and is the *owner* of the job. Only the owner starts the sidecar,
from the agent's thread, once the framework has been in use for some seconds: a program that only checks a version
leaves nothing behind. A sidecar that goes silent is restarted a few times. After that, or if it cannot be
started at all, the agent stops measuring and the run directory is removed.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import sys
import time

from stepscope.agent import bootstrap, state
from stepscope.agent.core import daemon, memory_limits, process, side_thread
from stepscope.wire import off, run_directory, sessions_folder, share, trouble
from stepscope.wire.env import CONFIG_NAME, ENABLED_NAME, JOB_NAME, PROCS_NAME, RUN_PREFIX, STATUS_NAME
from stepscope.wire.ring import DEFAULT_SLOTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

    from stepscope.agent.bootstrap import ImportHook
    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

MARK = "# stepscope enable "
"""Prefix of the line in the .pth file that holds the settings as JSON."""
SLOTS = DEFAULT_SLOTS // 4
"""Ring slots: 15 MB of memory per process instead of 60, still more than a minute at the governor's limit."""
DELAY_NS = 3_000_000_000
"""Delay from the end of the framework's import to the start of the sidecar."""
_LOOK_NS = 30_000_000_000
_SILENT_S = 60.0
"""Seconds without a published status after which the sidecar counts as dead or stopped."""
_MAX_STARTS = 4
_MAX_ANCESTORS = 64
SIDECAR_BYTES = 64 << 20
"""What a sidecar takes: without so much room in the control group none is started, or started again."""
_CODE = (
    "import sys; sys.path.append(sys.argv.pop(1)); "
    "from stepscope.sidecar.always_on_start import main; main(sys.argv[1:])"
)


def read_settings(pth: str) -> Optional[dict[str, Any]]:
    """The settings that ``enable`` wrote into the .pth file; None if the file is gone or damaged."""
    try:
        with open(pth, encoding="utf-8") as stream:
            lines = stream.read(65_536).splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith(MARK):
            try:
                settings = json.loads(line[len(MARK) :])
            except ValueError:
                return None
            return settings if isinstance(settings, dict) else None
    return None


def arm(pth: str) -> Optional[ImportHook]:
    """Arm this process for the job that it belongs to; None if that is impossible.

    The reason for a failure is written where the sessions are, for ``enable --status``: there is no run to report it.
    """
    settings = read_settings(pth)
    if settings is None or not os.access(str(settings.get("python")), os.X_OK) or not daemon.available():
        return None
    try:
        return _arm(settings)
    except Exception as error:
        _tell(str(settings.get("sessions") or ""), error)
        return None


def _arm(settings: dict[str, Any]) -> Optional[ImportHook]:
    if off.why(functools.partial(off.programs, os.getpid()), harmed=True):
        return None
    above = ancestors()
    run = joined(above)
    owner = None
    if run is None:
        identity = share.job_id(os.environ, above)
        if not share.drawn(identity, float(settings.get("share", 1.0))):
            return None
        owner = Owner({**settings, "drawn_by": identity})
        run = owner.run
    bootstrap.arm(run)
    if owner is not None and bootstrap.HOOK is not None:
        for name in bootstrap.COMPUTES:
            bootstrap.HOOK.after_import(name, owner.begin)
    return bootstrap.HOOK


def _tell(sessions: str, error: Exception) -> None:
    for folder in sessions_folder.candidates(sessions):
        with contextlib.suppress(OSError):
            os.makedirs(folder, 0o700, exist_ok=True)
        if trouble.tell(folder, "arming", error):
            return


def ancestors() -> dict[int, int]:
    """This process and its ancestors: pid to start time in clock ticks since boot."""
    found: dict[int, int] = {}
    pid = os.getpid()
    while pid > 0 and len(found) < _MAX_ANCESTORS and pid not in found:
        try:
            with open("/proc/%d/stat" % pid, "rb") as stream:
                fields = stream.read().rpartition(b")")[2].split()
        except OSError:
            break
        found[pid] = int(fields[19])
        pid = int(fields[1])
    return found


def joined(above: dict[int, int]) -> Optional[str]:
    """The run directory of the nearest process of ``above`` that already belongs to a job."""
    order = list(above)
    best: Optional[tuple[int, str]] = None
    prefix = "%s%d-" % (RUN_PREFIX, os.getuid())
    for folder in run_directory.temporary_directories():
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for name in names:
            run = os.path.join(folder, name)
            if not name.startswith(prefix):
                continue
            pid, ticks = _job_of(run)
            if pid in above and above[pid] == ticks and (best is None or order.index(pid) < best[0]):
                best = (order.index(pid), run)
    return best[1] if best is not None else None


def _job_of(run: str) -> tuple[int, int]:
    try:
        if os.lstat(run).st_uid != os.getuid() or not os.path.isdir(os.path.join(run, PROCS_NAME)):
            return 0, 0
        with open(os.path.join(run, JOB_NAME), encoding="utf-8") as stream:
            job = json.load(stream)
        return int(job["pid"]), int(job["start_ticks"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0, 0


def has_room() -> bool:
    """Whether a sidecar fits into this process's control group."""
    limit, usage = memory_limits.control_group()
    if not limit:
        return True
    try:
        with open(usage, encoding="ascii") as stream:
            used = int(stream.read())
    except (OSError, ValueError):
        return True
    return limit - (used - (memory_limits.cache(usage) or 0)) >= SIDECAR_BYTES


class Owner:
    """The first process of a job: its run directory and its sidecar."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self.pid = os.getpid()
        me = (self.pid, process.start_ticks())
        self.run = run_directory.make("", time.monotonic_ns(), me, SLOTS)
        self.starts = 0
        self._next_ns = 0
        try:
            run_directory.write_json(os.path.join(self.run, ENABLED_NAME), settings)
            run_directory.write_json(os.path.join(self.run, JOB_NAME), self._job(me))
        except BaseException:
            run_directory.remove(self.run)
            raise
        atexit.register(self.leave)

    def _job(self, me: tuple[int, int]) -> dict[str, object]:
        argv = list(getattr(sys, "orig_argv", None) or [sys.executable, *getattr(sys, "argv", ())])
        folder = bootstrap.HOOK.folder if bootstrap.HOOK is not None else None
        try:
            folder = folder or os.getcwd()
        except OSError:
            folder = ""
        return {
            "pid": me[0],
            "start_ticks": me[1],
            "launcher_pid": 0,
            "command": argv,
            "sources": bool(self._settings.get("sources", True)),
            "mode": "enable",
            "cwd": folder,
        }

    def begin(self, module: Foreign) -> None:
        """Called when a framework that computes has been imported: the agent's thread now looks after the sidecar."""
        del module
        current = state.CURRENT
        if current is None:
            self.leave()
            return
        if not self._next_ns:
            self._next_ns = current.now() + DELAY_NS
            current.hooks.on_tick(self.tick)
            if side_thread.FORK_WARNS:
                os.register_at_fork(before=self._hurry)

    def _hurry(self) -> None:
        """The process forks: start the sidecar now, because the thread that would do it may rest (``Sampler.rest``)."""
        if not self.starts and self.pid == os.getpid() and state.CURRENT is not None:
            self._next_ns = 1
            self.tick(state.CURRENT.now())

    def tick(self, now_ns: int) -> None:
        """Called a few times a second; starts the sidecar when it is due."""
        if now_ns < self._next_ns:
            return
        self._next_ns = now_ns + _LOOK_NS
        current = state.CURRENT
        if current is None or self.pid != os.getpid() or self._heard():
            return
        if not has_room():
            return
        if self.starts >= _MAX_STARTS or not os.path.exists(os.path.join(self.run, CONFIG_NAME)):
            current.take_out("its sidecar does not live")
            self._remove()
            return
        self._start(current)

    def _start(self, current: AgentState) -> None:
        self.starts += 1
        try:
            daemon.start(self.command())
        except OSError as error:
            current.take_out("its sidecar cannot be started: %s" % error)
            self._remove()

    def command(self) -> str:
        """The shell command that starts the sidecar."""
        package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        words = [str(self._settings["python"]), "-I", "-c", _CODE, package, self.run, str(self.starts)]
        return daemon.detached(words, os.path.join(self.run, "sidecar.log"))

    def _heard(self) -> bool:
        """Whether the sidecar has published its status recently."""
        try:
            age = time.time() - os.stat(os.path.join(self.run, STATUS_NAME)).st_mtime
        except OSError:
            return False
        return age < _SILENT_S

    def leave(self) -> None:
        """At exit: remove the run directory if no sidecar reads it."""
        if self.pid == os.getpid() and not self.starts:
            self._remove()

    def _remove(self) -> None:
        run_directory.remove(self.run)
