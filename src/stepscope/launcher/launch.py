"""Starts the job with its sidecar, relays signals between the terminal and the job, and ends as the job ended.

The launcher is in the job's process group and does not control the terminal: signals from the terminal reach the job
directly, signals sent to the launcher alone are passed on (``launcher.relay``), a stop stops both. It must stay
light-weight: nothing here imports numpy, pyarrow or rich (tests/run checks it), so that the job starts immediately.
"""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from stepscope._version import __version__
from stepscope.launcher import apply, arm, caretaker, mask, offline, peers, relay, rundir, session_place
from stepscope.launcher.sidecar_process import SidecarProcess
from stepscope.native import process_stat
from stepscope.native.cgroups import memory_kills
from stepscope.sandbox import isolation
from stepscope.tables import layout
from stepscope.tables.errors import CaptureError, TargetError
from stepscope.wire.env import ARM_NAME, RUN_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepscope.clocks.settings import ClockSettings
    from stepscope.launcher.caretaker import Caretaker
    from stepscope.launcher.patience import Patience
    from stepscope.launcher.peers import Contacts
    from stepscope.launcher.trial import Trial

_FORWARDED = (
    *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT),
    *(signal.SIGUSR1, signal.SIGUSR2, signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH),
)
_WAITED = frozenset({*_FORWARDED, signal.SIGCHLD})
_MAX_DEATHS_AT_END = 3
_FINISH_TIMEOUT_S = 120.0


class CompanionProcess(Protocol):
    """A process started together with the job that is not part of it."""

    def announce(self, session: Path) -> None:
        """Announce it, before the job has the terminal."""

    def start(self, session: Path, job: int, start_ticks: int) -> list[str]:
        """Start it; return lines for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOptions:
    """The job to run and the place of its session."""

    argv: tuple[str, ...]
    """The job's command line, program first."""
    payload: arm.Payload
    """Files that arm the job's processes."""
    session: Path | None = None
    """Directory of the new session; None: named after the script, in the current directory."""
    sources: bool = True
    budget: str = ""
    first_look_ns: int = 0
    """Cost allowed for the first look of the job's processes (``wire.env.CONFIG_KEYS``); 0: they take none."""
    keep_raw: bool = False
    apply: tuple[str, ...] = ()
    """Remedies (``model.report.remedies``) applied to the job's environment."""
    beside: CompanionProcess | None = None
    memory_looks_ns: int = 0
    stacks: bool = False
    """Both: ``rundir.JobFacts``."""
    trial: Trial | None = None
    """Trial that this run is: interventions, and an early end; None: the job runs as it is, to its end."""
    isolation: isolation.Isolation | None = None
    """How the job is kept from leaving anything behind; None: it runs as without stepscope."""
    patience: Patience | None = None
    """When the job is ended from outside; None: never."""
    offline: bool = False
    """Whether the job is a trial that sends nothing to trackers; an isolated one never does."""
    clocks: ClockSettings | None = None
    """Hosts to compare clocks with; None: nothing listens, and nothing is sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Result of a run. ``exit_code`` is the job's, negative for a signal."""

    exit_code: int
    session: Path | None
    """Directory of the session; None: nothing was recorded."""
    messages: tuple[str, ...] = ()
    """Lines for the user: what was lost, where the session went."""
    interrupted: bool = False
    """Flag: the user did not wait for the report, which is still being written."""
    contacts: Contacts | None = None
    """What a trial's processes wanted to reach; None if it was no trial."""
    given_up: str = ""
    """Why the job was ended from outside (``LaunchOptions.patience``); "" if it was not."""
    asked_to_end: int = 0
    """The last signal to end that came while the job ran, whatever the job made of it; 0: none."""


def run(options: LaunchOptions) -> Outcome:
    """Run the job measured, and wait until its report is written.

    Raises:
        TargetError: the job's program cannot be started.
        SessionError: the session's place is taken.
        UsageError: a remedy is not known, or its library is not installed.
    """
    mask_before = signal.pthread_sigmask(signal.SIG_BLOCK, _WAITED)
    try:
        with caretaker.present(wanted=options.isolation is not None) as carer:
            return _run(options, mask_before, carer)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask_before)


def _run(options: LaunchOptions, mask_before: set[int], carer: Caretaker | None) -> Outcome:
    messages: list[str] = []
    environment = apply.environment(options.apply, os.environ)
    try:
        session, run_dir = _prepare(options, messages, carer)
    except (CaptureError, OSError) as error:
        if options.isolation is not None:  # a trial that is not recorded is of no use
            raise CaptureError(f"nothing can be recorded: {error}") from error
        messages.append(f"nothing is recorded: {error}")  # the job comes first: it runs as without us
        job = _spawn(options.argv, environment, mask_before)
        exit_code, asked = _stand_between(job, None)
        return Outcome(exit_code=exit_code, session=None, messages=tuple(messages), asked_to_end=asked)
    if options.beside is not None:
        options.beside.announce(session)
    isolated: isolation.IsolatedJob | None = None
    environment = _job_environment(run_dir, environment)
    if options.offline and options.isolation is None:
        environment = offline.environment(environment, network=True, folder=str(run_dir))
    try:
        if options.isolation is None:
            job = _spawn(options.argv, environment, mask_before)
        else:
            isolated = _isolate(options, options.isolation, environment, mask_before, (session, run_dir))
            job = isolated.pid
    except BaseException:
        _discard(session, run_dir)
        raise
    sidecar = SidecarProcess(run_dir, session)
    try:
        _write_job(run_dir, job, options)
        sidecar.start()
        if carer is not None:
            carer.dismiss()
        if options.beside is not None:
            messages.extend(options.beside.start(session, job, process_stat.start_ticks(job)))
        exit_code, asked = _stand_between(job, sidecar, run_dir, isolated, options.patience)
        contacts = _contacts(options, run_dir, isolated)
    finally:
        if isolated is not None:
            messages += [*isolated.notes, *isolated.end(sidecar.pid)]
    _write_ended(run_dir, exit_code)
    given_up = options.patience.why if options.patience is not None else ""
    outcome = _finish(exit_code, session, sidecar, messages)
    return replace(outcome, contacts=contacts, given_up=given_up, asked_to_end=asked)


def _contacts(options: LaunchOptions, run_dir: Path, isolated: isolation.IsolatedJob | None) -> Contacts | None:
    """What the processes of a trial wanted to reach; None if it is none."""
    if not options.offline and isolated is None:
        return None
    return peers.read(run_dir, peers.unrouted(isolated.guard) if isolated is not None else 0)


def _prepare(options: LaunchOptions, messages: list[str], carer: Caretaker | None) -> tuple[Path, Path]:
    """Make the session and the run directory; add lines for the user to ``messages``."""
    origin_ns = time.monotonic_ns()
    session, said = session_place.claim(options.argv, options.session)
    messages.extend(said)
    run_dir: Path | None = None
    try:
        run_dir = rundir.make(session, origin_ns)
        if carer is not None:
            carer.watch(rundir.ring_directories(run_dir))
        arm.build(run_dir, options.payload)
        if options.first_look_ns:
            rundir.arm_first_look(run_dir, options.first_look_ns)
        if options.trial is not None:
            rundir.arm_trial(run_dir, options.trial)
        if options.offline or options.isolation is not None:
            rundir.arm_peers(run_dir)
        if options.clocks is not None:
            options.clocks.write(run_dir)
        _write_first_manifest(session, options, origin_ns, run_dir, messages)
    except BaseException:
        _discard(session, run_dir)
        raise
    return session, run_dir


def _discard(session: Path, run_dir: Path | None) -> None:
    """Remove what was made for a job that did not start."""
    if run_dir is not None:
        rundir.remove(run_dir)
    try:
        (session / layout.MANIFEST).unlink(missing_ok=True)
        session.rmdir()
    except OSError:
        return


def _write_job(run_dir: Path, job: int, options: LaunchOptions) -> None:
    about = rundir.JobFacts(
        pid=job,
        start_ticks=process_stat.start_ticks(job),
        launcher_pid=os.getpid(),
        command=tuple(mask.mask_command(options.argv)),
        sources=options.sources,
        budget=options.budget,
        keep_raw=options.keep_raw,
        memory_looks_ns=options.memory_looks_ns,
        stacks=options.stacks,
        replaced=dict(options.isolation.replaced) if options.isolation is not None else {},
    )
    try:
        rundir.write_job(run_dir, about)
    except OSError:  # the disk has just become full: only the measured processes are sampled
        return


def _write_ended(run_dir: Path, exit_code: int) -> None:
    try:
        rundir.write_ended(run_dir, exit_code)
    except OSError:  # /dev/shm is full: the sidecar notices the job's end by itself, without its exit code
        return


def _write_first_manifest(
    session: Path, options: LaunchOptions, origin_ns: int, run_dir: Path, messages: list[str]
) -> None:
    """Write the manifest from which an unfinished session can be recovered; the sidecar completes it."""
    try:
        cwd = str(Path.cwd())
    except OSError:
        cwd = ""
    manifest = {
        "memory_kill_counters": memory_kills.counters(),
        "schema_version": 1,
        "stepscope_version": __version__,
        "id": os.urandom(8).hex(),
        "name": session.name.removesuffix(layout.SUFFIX),
        "command": mask.mask_command(options.argv),
        "cwd": cwd,
        "started_unix_ns": time.time_ns() - (time.monotonic_ns() - origin_ns),
        "origin_monotonic_ns": origin_ns,
        "state": "running",
        "budget": options.budget,
        "applied": list(options.apply),
        "run_dir": str(run_dir),
        "diagnostics": [{"code": "DX107", "text": text} for text in messages],
    }
    layout.write_atomic(session / layout.MANIFEST, json.dumps(manifest, indent=1).encode() + b"\n")


def _job_environment(run_dir: Path, given: Mapping[str, str]) -> dict[str, str]:
    environment = dict(given)
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


def _isolate(
    options: LaunchOptions,
    how: isolation.Isolation,
    environment: dict[str, str],
    mask_before: set[int],
    places: tuple[Path, Path],
) -> isolation.IsolatedJob:
    """Start the job isolated; ``places``: session and run directory, which stay real."""
    session, run_dir = places
    keep = [session, *rundir.ring_directories(run_dir)]
    quiet = offline.environment(environment, network=how.network)
    try:
        return isolation.start(options.argv, quiet, mask_before, how, keep)
    except OSError as error:
        raise TargetError(_why_not_started(options.argv[0], error)) from error


def _why_not_started(program: str, error: OSError) -> str:
    if error.errno == errno.ENOENT:
        if os.path.exists(program):
            return f"cannot start {program}: the interpreter in its first line does not exist"
        return f"cannot start {program}: no such program; expected a file or a name on PATH"
    if error.errno == errno.EACCES:
        return f"cannot start {program}: not executable; chmod +x it, or name its interpreter: run -- bash {program}"
    return f"cannot start {program}: {error.strerror}"


def _stand_between(
    job: int,
    sidecar: SidecarProcess | None,
    run_dir: Path | None = None,
    isolated: isolation.IsolatedJob | None = None,
    patience: Patience | None = None,
) -> tuple[int, int]:
    """Pass signals on and keep the sidecar alive until the job ends; ``exit_code``, ``asked_to_end`` of the outcome."""
    with relay.present(job, lambda: rundir.write_signalled(run_dir) if run_dir is not None else None) as passing:
        return _watch(job, passing, sidecar, isolated, patience), passing.asked_to_end


def _watch(
    job: int,
    passing: relay.Relay,
    sidecar: SidecarProcess | None,
    isolated: isolation.IsolatedJob | None,
    patience: Patience | None,
) -> int:
    while True:
        timeout = patience.look(job) if patience is not None else None
        if sidecar is not None and not sidecar.pid and not sidecar.given_up and not sidecar.gave_way:
            if sidecar.due() <= 0:
                sidecar.start()
            timeout = max(0.01, sidecar.due() if timeout is None else min(timeout, sidecar.due()))
        info = signal.sigtimedwait(_WAITED, timeout) if timeout is not None else signal.sigwaitinfo(_WAITED)
        if info is None:
            continue
        if info.si_signo != signal.SIGCHLD:
            passing.pass_on(info)
            continue
        if sidecar is not None:
            sidecar.reaped()
            if isolated is not None:
                isolated.reap(sidecar.pid)
        pid, status = os.waitpid(job, os.WNOHANG | os.WUNTRACED)
        if not pid:
            continue
        if os.WIFSTOPPED(status):
            os.kill(os.getpid(), signal.SIGSTOP)  # the shell sees its job stopped; SIGCONT is passed on above
            continue
        return os.waitstatus_to_exitcode(status)


def _finish(exit_code: int, session: Path, sidecar: SidecarProcess, messages: list[str]) -> Outcome:
    """Wait until the sidecar has written the report."""
    deadline = time.monotonic() + _FINISH_TIMEOUT_S
    deaths = 0
    sidecar.tell_ended()
    while not sidecar.finished and time.monotonic() < deadline and deaths < _MAX_DEATHS_AT_END:
        if not sidecar.pid:
            if sidecar.given_up or not sidecar.run.is_dir():  # it removes that when its report stands
                break
            sidecar.start()
            sidecar.tell_ended()
        info = signal.sigtimedwait(_WAITED, 1.0)
        if info is not None and info.si_signo in relay.LEAVE:
            return Outcome(exit_code=exit_code, session=session, messages=tuple(messages), interrupted=True)
        if sidecar.reaped() and not sidecar.finished:
            deaths += 1
    if not sidecar.finished and sidecar.pid and (session / "report.json").exists():
        messages.append("the joint report of the job's members is still being written")
    elif not sidecar.finished and (sidecar.run.is_dir() or not (session / "report.json").exists()):
        why = sidecar.last_words() or "the sidecar does not end"
        messages.append(f"the report could not be written ({why}): stepscope report {session}")
    messages.extend(sidecar.messages())
    return Outcome(exit_code=exit_code, session=session, messages=tuple(messages))


def die_like(exit_code: int) -> None:
    """End this process as the job ended: by the same signal (without a core dump of ours), or with its exit code."""
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
