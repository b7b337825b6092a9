"""Starts the job with its sidecar, stands between it and the terminal, and ends as it ended.

The launcher is in the job's process group and owns no terminal business: signals that the terminal sends reach the
job without it, signals that somebody sends to the launcher are passed on, a stop stops both. It must stay light:
nothing here imports numpy, pyarrow or rich (tests/run checks it), so the job starts at once.
"""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope._version import __version__
from stepscope.collector import arm, mask, rundir
from stepscope.errors import CaptureError, SessionError, TargetError
from stepscope.store import layout
from stepscope.wire.env import ARM_NAME, RUN_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Sequence

_FORWARDED = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGQUIT,
    signal.SIGTSTP,
    signal.SIGCONT,
    signal.SIGWINCH,
)
_WAITED = frozenset({*_FORWARDED, signal.SIGCHLD})
_SI_KERNEL = 0x80
"""si_code of a signal that the terminal sent: the whole foreground group has it already (sigaction(2))."""
_RESTART_AFTER_S = 0.8
"""A sidecar that died is started again this long after its last start at the earliest: back within 1 s."""
_MAX_QUICK_DEATHS = 20
"""A sidecar that dies this often within its first 5 s each is given up."""
_QUICK_S = 5.0
_MAX_DEATHS_AT_END = 3
_FINISH_TIMEOUT_S = 120.0
_LEAVE = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOptions:
    """What to run and where to keep what is measured."""

    argv: tuple[str, ...]
    """The job's command line, program first."""
    payload: arm.Payload
    """What arms the job's processes."""
    session: Path | None = None
    """The new session's directory; None: named after the script, in the current directory."""
    sources: bool = True
    budget: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a run ended. ``exit_code`` is the job's, negative for a signal."""

    exit_code: int
    session: Path
    messages: tuple[str, ...] = ()
    """Lines for the user: what was lost, where the session went."""
    interrupted: bool = False
    """The user did not wait for the report, which is being written all the same."""


class _Sidecar:
    """The sidecar's process, its pipes and its restarts."""

    def __init__(self, run: Path, session: Path) -> None:
        self.run = run
        self.session = session
        self.pid = 0
        self.starts = 0
        self.deaths = 0
        self.started_at = 0.0
        self.given_up = False
        self.output = b""
        self._tell = -1
        self._hear = -1

    def start(self) -> None:
        """Start it; a failure to start counts as a death."""
        self._close()
        read_end, self._tell = os.pipe()
        self._hear, write_end = os.pipe()
        os.set_blocking(self._hear, False)
        os.set_blocking(self._tell, False)
        self.starts += 1
        self.started_at = time.monotonic()
        log = str(self.run / rundir.SIDECAR_LOG)
        actions = [
            (os.POSIX_SPAWN_DUP2, read_end, 0),
            (os.POSIX_SPAWN_DUP2, write_end, 1),
            (os.POSIX_SPAWN_OPEN, 2, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
        ]
        argv = [sys.executable, "-E", "-c", _SIDECAR_CODE, json.dumps(sys.path), str(self.run), str(self.session)]
        try:
            self.pid = os.posix_spawn(
                sys.executable,
                [*argv, str(self.starts)],
                _without_arming(os.environ),
                file_actions=actions,
                setsid=True,
                setsigmask=[],
                setsigdef=[signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE],
            )
        except OSError:
            self.pid = 0
            self.deaths += 1
        finally:
            os.close(read_end)
            os.close(write_end)

    def reaped(self) -> bool:
        """Whether it has ended since the last look."""
        if not self.pid:
            return False
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:
            pid, status = self.pid, 1
        if not pid:
            return False
        self._read_output()
        self.pid = 0
        quick = time.monotonic() - self.started_at < _QUICK_S
        self.deaths = self.deaths + 1 if quick and status else 0
        self.finished = status == 0
        return True

    finished = False

    def due(self) -> float:
        """Seconds until it may be started again."""
        return max(0.0, self.started_at + _RESTART_AFTER_S - time.monotonic())

    def tell_ended(self) -> None:
        """Wake it: the job has ended."""
        try:
            os.write(self._tell, b"ended\n")
        except OSError as error:
            if error.errno not in (errno.EPIPE, errno.EAGAIN, errno.EBADF):
                raise

    def _read_output(self) -> None:
        while True:
            try:
                data = os.read(self._hear, 65536)
            except OSError:
                return
            if not data:
                return
            self.output += data

    def _close(self) -> None:
        for fd in (self._tell, self._hear):
            if fd >= 0:
                os.close(fd)
        self._tell = self._hear = -1

    def last_words(self) -> str:
        """The last line of its log, for a person."""
        try:
            lines = (self.run / rundir.SIDECAR_LOG).read_text("utf-8", "replace").strip().splitlines()
        except OSError:
            return ""
        return lines[-1] if lines else ""


_SIDECAR_CODE = (
    "import sys, json; "
    "own = json.loads(sys.argv.pop(1)); "
    "sys.path.pop(0); "
    "sys.path.extend(p for p in own if p and p not in sys.path); "
    "from stepscope.app.sidecar import main; main(sys.argv[1:])"
)
"""Neither the user's directory nor a PYTHONPATH that was made for the job may shadow what the sidecar imports; what
the launcher itself could import is appended."""


def _without_arming(environment: os._Environ[str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name != RUN_VARIABLE}


def session_stem(argv: Sequence[str]) -> str:
    """Name of a session after the script that a command line runs."""
    program = os.path.basename(argv[0])  # noqa: PTH119 - text, not a path
    words = list(argv[1:])
    name = program
    if program.startswith(("python", "pypy")):
        if "-m" in words[:-1]:
            name = words[words.index("-m") + 1].rsplit(".", 1)[-1]
        else:
            name = next((os.path.basename(w) for w in words if w.endswith(".py")), program)  # noqa: PTH119
    stem = name.rsplit(".", 1)[0] if name.endswith((".py", ".sh", ".bash", ".exe")) else name
    safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in stem).strip("-.")
    return safe[:60] or "job"


def _claim_session(options: LaunchOptions) -> tuple[Path, list[str]]:
    """Make the session's directory; where that cannot be, one elsewhere, with a line that says so.

    Raises:
        SessionError: the place was given and is taken.
        CaptureError: there is no place at all.
    """
    stem = f"{session_stem(options.argv)}-{time.strftime('%m%d-%H%M')}"
    wanted = options.session
    try:
        if wanted is not None:
            wanted = Path(os.path.abspath(wanted))  # noqa: PTH100 - links stay as the user wrote them
            wanted.parent.mkdir(parents=True, exist_ok=True)
            layout.claim(wanted)
            _check_writable(wanted)
            return wanted, []
        return _claim_free_name(Path.cwd(), stem), []
    except OSError as error:
        place = wanted or "the current directory"
        why = error.strerror or str(error)
    for folder in reversed(rundir.temporary_directories()):
        try:
            path = _claim_free_name(folder, stem)
        except OSError:
            continue
        return path, [f"{place} cannot hold a session ({why}): it is {path}"]
    raise CaptureError(f"{place} cannot hold a session ({why}), nor can a temporary directory: set TMPDIR")


def _claim_free_name(folder: Path, stem: str) -> Path:
    for number in range(1, 1000):
        suffix = f"-{number}" if number > 1 else ""
        path = folder / f"{stem}{suffix}{layout.SUFFIX}"
        try:
            path.mkdir(mode=0o755)
        except FileExistsError:
            continue
        _check_writable(path)
        return path
    raise SessionError(f"{folder}: a thousand sessions {stem}*; choose another place with --session")


_MIN_SESSION_BYTES = 8 << 20


def _check_writable(path: Path) -> None:
    """Raise OSError where the start of a session does not fit; what was made is taken away again."""
    try:
        info = os.statvfs(path)
        if info.f_bavail * info.f_frsize < _MIN_SESSION_BYTES:
            _raise_full(info.f_bavail * info.f_frsize)
        layout.write_atomic(path / ".probe", b"x" * 4096)
        (path / ".probe").unlink()
    except OSError:
        path.rmdir()
        raise


def _raise_full(free_bytes: int) -> None:
    raise OSError(errno.ENOSPC, f"only {free_bytes >> 10} KiB free")


def run(options: LaunchOptions) -> Outcome:
    """Run the job measured, and wait until its report stands.

    Raises:
        TargetError: the job's program cannot be started.
        SessionError: the session's place is taken.
        CaptureError: there is no room to measure.
    """
    mask_before = signal.pthread_sigmask(signal.SIG_BLOCK, _WAITED)
    try:
        return _run(options, mask_before)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask_before)


def _run(options: LaunchOptions, mask_before: set[int]) -> Outcome:
    origin_ns = time.monotonic_ns()
    session, messages = _claim_session(options)
    run_dir: Path | None = None
    try:
        run_dir = rundir.make(session, origin_ns)
        arm.build(run_dir, options.payload)
        _write_first_manifest(session, options, origin_ns, run_dir, messages)
        environment = _job_environment(run_dir)
        job = _spawn(options.argv, environment, mask_before)
    except BaseException:
        if run_dir is not None:
            rundir.remove(run_dir)
        _remove_claimed(session)
        raise
    rundir.write_job(
        run_dir,
        rundir.Job(
            pid=job,
            start_ticks=rundir.start_ticks(job),
            launcher_pid=os.getpid(),
            command=tuple(mask.mask_command(options.argv)),
            sources=options.sources,
            budget=options.budget,
        ),
    )
    sidecar = _Sidecar(run_dir, session)
    sidecar.start()
    exit_code = _stand_between(job, sidecar)
    _write_ended(run_dir, exit_code)
    return _finish(exit_code, session, sidecar, messages)


def _write_ended(run_dir: Path, exit_code: int) -> None:
    try:
        rundir.write_ended(run_dir, exit_code)
    except OSError:  # a full /dev/shm: the sidecar sees the job's end by itself, without its exit code
        return


def _remove_claimed(session: Path) -> None:
    try:
        (session / layout.MANIFEST).unlink(missing_ok=True)
        session.rmdir()
    except OSError:
        return


def _write_first_manifest(
    session: Path, options: LaunchOptions, origin_ns: int, run_dir: Path, messages: list[str]
) -> None:
    """The manifest from which an unfinished session can be recovered; the sidecar completes it."""
    try:
        cwd = str(Path.cwd())
    except OSError:
        cwd = ""
    manifest = {
        "schema_version": 1,
        "stepscope_version": __version__,
        "id": os.urandom(8).hex(),
        "name": session.name.removesuffix(layout.SUFFIX),
        "command": mask.mask_command(options.argv),
        "cwd": cwd,
        "started_unix_ns": time.time_ns() - (time.monotonic_ns() - origin_ns),
        "origin_monotonic_ns": origin_ns,
        "state": "running",
        "run_dir": str(run_dir),
        "diagnostics": [{"code": "DX107", "text": text} for text in messages],
    }
    layout.write_atomic(session / layout.MANIFEST, json.dumps(manifest, indent=1).encode() + b"\n")


def _job_environment(run_dir: Path) -> dict[str, str]:
    environment = dict(os.environ)
    environment[RUN_VARIABLE] = str(run_dir)
    own = str(run_dir / ARM_NAME)
    before = environment.get("PYTHONPATH", "")
    environment["PYTHONPATH"] = own + os.pathsep + before if before else own
    return environment


def _spawn(argv: Sequence[str], environment: dict[str, str], mask_before: set[int]) -> int:
    """Start the job in our process group with the signal mask and dispositions that it would have without us."""
    restored = [signal.SIGPIPE, signal.SIGXFSZ]  # Python ignores these two in itself
    try:
        return os.posix_spawnp(argv[0], list(argv), environment, setsigmask=mask_before, setsigdef=restored)
    except OSError as error:
        if error.errno == errno.ENOEXEC:  # no "#!": a shell would run it as a shell script
            return os.posix_spawnp(
                "/bin/sh", ["/bin/sh", *argv], environment, setsigmask=mask_before, setsigdef=restored
            )
        raise TargetError(_why_not_started(argv[0], error)) from error


def _why_not_started(program: str, error: OSError) -> str:
    if error.errno == errno.ENOENT:
        if os.path.exists(program):  # noqa: PTH110
            return f"cannot start {program}: the interpreter in its first line does not exist"
        return f"cannot start {program}: no such program; expected a file or a name on PATH"
    if error.errno == errno.EACCES:
        return f"cannot start {program}: not executable; chmod +x it, or name its interpreter: run -- bash {program}"
    return f"cannot start {program}: {error.strerror}"


def _stand_between(job: int, sidecar: _Sidecar) -> int:
    """Pass signals on and keep the sidecar alive until the job ends; returns its exit code, negative for a signal."""
    while True:
        timeout = None
        if not sidecar.pid and not sidecar.given_up:
            if sidecar.deaths >= _MAX_QUICK_DEATHS:
                sidecar.given_up = True
            elif sidecar.due() <= 0:
                sidecar.start()
            timeout = max(0.01, sidecar.due())
        info = signal.sigtimedwait(_WAITED, timeout) if timeout is not None else signal.sigwaitinfo(_WAITED)
        if info is None:
            continue
        if info.si_signo != signal.SIGCHLD:
            if info.si_code != _SI_KERNEL:
                _send(job, info.si_signo)
            continue
        sidecar.reaped()
        pid, status = os.waitpid(job, os.WNOHANG | os.WUNTRACED)
        if not pid:
            continue
        if os.WIFSTOPPED(status):
            os.kill(os.getpid(), signal.SIGSTOP)  # the shell sees its job stopped; SIGCONT is passed on above
            continue
        return os.waitstatus_to_exitcode(status)


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:  # ended just now, or not ours any more (set-user-id)
        return


def _finish(exit_code: int, session: Path, sidecar: _Sidecar, messages: list[str]) -> Outcome:
    """Wait until the sidecar has written the report."""
    deadline = time.monotonic() + _FINISH_TIMEOUT_S
    deaths = 0
    sidecar.tell_ended()
    while not sidecar.finished and time.monotonic() < deadline and deaths < _MAX_DEATHS_AT_END:
        if not sidecar.pid:
            if sidecar.given_up:
                break
            sidecar.start()
            sidecar.tell_ended()
        info = signal.sigtimedwait(_WAITED, 1.0)
        if info is not None and info.si_signo in _LEAVE:
            return Outcome(exit_code=exit_code, session=session, messages=tuple(messages), interrupted=True)
        if sidecar.reaped() and not sidecar.finished:
            deaths += 1
    if not sidecar.finished:
        messages.append(
            f"the report could not be written ({sidecar.last_words() or 'the sidecar does not end'}): "
            f"stepscope report {session}"
        )
    messages.extend(_words_of(sidecar.output))
    return Outcome(exit_code=exit_code, session=session, messages=tuple(messages))


def _words_of(output: bytes) -> list[str]:
    """What the sidecar has to say to the user: JSON lines with a ``message``."""
    words = []
    for line in output.splitlines():
        try:
            words.append(str(json.loads(line)["message"]))
        except (ValueError, KeyError, TypeError):
            continue
    return words


def die_like(exit_code: int) -> None:
    """End this process as the job ended: by the same signal (without a core of ours), or with its exit code."""
    sys.stdout.flush()
    sys.stderr.flush()
    if exit_code >= 0:
        os._exit(exit_code)
    number = -exit_code
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    os._exit(128 + number)
