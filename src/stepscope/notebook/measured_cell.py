"""Measures one cell in the kernel that runs it: one session, and a sidecar that is no child of the kernel.

The kernel is armed for the cell alone. At the cell's end the probes, the thread and the import hook are taken off, and
the sidecar, which sees the end or the kernel's death, completes the session.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from stepscope._version import __version__
from stepscope.agent import bootstrap
from stepscope.agent.core import daemon
from stepscope.collector.captures import budget
from stepscope.launcher import mask, rundir, session_place
from stepscope.model.session.session import CELL, Manifest
from stepscope.native import own_python, process_stat
from stepscope.tables import layout
from stepscope.tables.errors import CaptureError
from stepscope.wire import trouble

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepscope.tables.nearby import NotebookCell

REPORT_S = 120.0
"""Longest wait for a report."""
_LOOK_S = 0.05
_DEAD_S = 5.0
"""Time without a sidecar after which there is none: one that has just started takes the lock within a second or two."""


class MeasuredCell(Struct, frozen=True, kw_only=True):
    """A cell that is being measured, or was."""

    session: Path
    run: Path

    def end(self, exit_code: int) -> None:
        """The cell has ended: take the agent off; ``exit_code`` as of a program, 1 if the cell raised.

        Raises:
            OSError: the end cannot be written: the session ends with the kernel.
        """
        try:
            bootstrap.end()
        finally:
            if self.run.is_dir():
                rundir.write_ended(self.run, exit_code)

    def wait(self, timeout_s: float = REPORT_S) -> bool:
        """Wait for the report; False: it is still being written, or no process writes it."""
        until = time.monotonic() + timeout_s
        heard = time.monotonic()
        while self.run.is_dir():
            now = time.monotonic()
            heard = now if _locked(self.run) else heard
            if now > until or now - heard > _DEAD_S:
                return False
            time.sleep(_LOOK_S)
        return True


def begin(
    name: str, cells: tuple[NotebookCell, ...], texts: Mapping[str, str], wanted: Path | None = None
) -> MeasuredCell:
    """Arm this process for a cell and start the sidecar.

    Args:
        name: of the cell, as the report says it.
        cells: those that have run, by the number that the kernel gives them.
        texts: sources of cells, by the path under which the kernel compiles them.
        wanted: where the session goes; None: named after the cell, in the current folder.

    Raises:
        CaptureError: this process is measured already, cannot be measured, or nothing can be recorded.
        SessionError: the wanted place is taken.
    """
    if bootstrap.HOOK is not None:
        raise CaptureError(
            "this kernel is measured already, by stepscope enable or run; see `stepscope ps`, or start it with "
            "STEPSCOPE_ALWAYS=0 to measure single cells"
        )
    if not daemon.available():
        raise CaptureError("no sidecar can be started here; expected glibc and /bin/sh: stepscope run -- jupyter ...")
    origin_ns = time.monotonic_ns()
    session, _ = session_place.claim((name,), wanted)
    run: Path | None = None
    try:
        run = rundir.make(session, origin_ns)
        _describe(run, session, name, origin_ns, cells)
        _write_job(run, name, texts)
        rundir.arm_first_look(run, budget.first_look_ns(budget.parse(budget.DEFAULT)))
        _arm(run)
        words = own_python.command("stepscope.sidecar.sidecar", str(run), str(session), "1", CELL, nice=0)
        daemon.start(daemon.detached(words, str(run / rundir.SIDECAR_LOG)))
    except BaseException as error:
        bootstrap.end()
        _discard(session, run)
        if isinstance(error, OSError):
            raise CaptureError(f"nothing can be recorded: {error}") from error
        raise
    return MeasuredCell(session=session, run=run)


def _describe(run: Path, session: Path, name: str, origin_ns: int, cells: tuple[NotebookCell, ...]) -> None:
    """Write the manifest from which an unfinished session can be recovered; the sidecar completes it."""
    manifest = Manifest(
        stepscope_version=__version__,
        id=os.urandom(8).hex(),
        name=session.name.removesuffix(layout.SUFFIX),
        command=(name,),
        cwd=str(Path.cwd()),
        started_unix_ns=time.time_ns() - (time.monotonic_ns() - origin_ns),
        origin_monotonic_ns=origin_ns,
        mode=CELL,
        job_pid=os.getpid(),
        run_dir=str(run),
        cells=cells,
    )
    layout.write_atomic(session / layout.MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")


def _write_job(run: Path, name: str, texts: Mapping[str, str]) -> None:
    """Tell the sidecar which process the job is, and where the cells' sources are: they lie in no file."""
    replaced = {}
    for number, (path, text) in enumerate(texts.items()):
        copy = run / f"source-{number}.py"
        copy.write_text(mask.mask_source(text), "utf-8")
        replaced[os.path.realpath(path)] = str(copy)
    job = rundir.JobFacts(
        pid=os.getpid(),
        start_ticks=process_stat.start_ticks(os.getpid()),
        launcher_pid=0,
        command=(name,),
        mode=CELL,
        cwd=str(Path.cwd()),
        replaced=replaced,
    )
    rundir.write_job(run, job)


def _arm(run: Path) -> None:
    if not bootstrap.begin(str(run)):
        raise CaptureError("; ".join(text for _, _, text in trouble.read(str(run))) or "the agent did not start")


def _discard(session: Path, run: Path | None) -> None:
    """Remove what was made for a cell that is not measured."""
    if run is not None:
        rundir.remove(run)
    try:
        (session / layout.MANIFEST).unlink(missing_ok=True)
        session.rmdir()
    except OSError:
        return


def _locked(run: Path) -> bool:
    """Whether a sidecar works in the run directory."""
    try:
        with (run / rundir.LOCK_NAME).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False
