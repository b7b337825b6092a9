"""The use case ``doctor``: check this machine and a Python's packages, without a job. Nothing is changed."""

from __future__ import annotations

import os
import platform

import msgspec
from msgspec import Struct

from stepscope._version import __version__
from stepscope.launcher import jobs
from stepscope.machine import calibration, cpu, gpu, libraries, memory, profiling
from stepscope.machine.host import Host
from stepscope.machine.python import ask
from stepscope.machine.replay import replay_process
from stepscope.model.report.doctor import DoctorReport
from stepscope.model.session.replays import ReplayOrder, ReplayPart
from stepscope.native.memory import page_walks
from stepscope.report import doctor_text
from stepscope.tables.errors import TargetError, UsageError
from stepscope.tables.page_walks import PageWalks
from stepscope.use_cases.record import python_of_job


class DoctorOptions(Struct, frozen=True, kw_only=True):
    """Options of the command."""

    python: str | None = None
    """None: the Python that ``stepscope run`` would use."""
    load: bool = True
    """Import TensorFlow, if installed, and read its messages."""


def doctor(options: DoctorOptions, host: Host | None = None) -> DoctorReport:
    """Run all checks.

    Raises:
        TargetError: the Python cannot be run.
    """
    host = host or Host()
    facts = ask(options.python or python_of_job(), load=options.load)
    return DoctorReport(
        version=__version__,
        host=platform.node(),
        kernel=platform.release(),
        python=facts.executable,
        checks=(
            *profiling.checks(host),
            *cpu.checks(host),
            *memory.checks(host),
            *gpu.checks(host, facts),
            *libraries.checks(host, facts),
        ),
    )


CALIBRATE_S = 5.0
"""Time that measuring the roofs may take, but for the import of TensorFlow."""


def calibrate(python: str | None = None) -> str:
    """Measure the machine's roofs and keep them; returns the text for people.

    Raises:
        UsageError: a job is being measured, which both would disturb.
        TargetError: the Python has no TensorFlow, or the roofs could not be measured or kept.
    """
    if running := [job for job in jobs.running() if job.state in {"starting", "running"}]:
        raise UsageError(f"{running[0].name} is being measured (stepscope ps); calibrate when it has ended")
    wanted = python or python_of_job()
    order = ReplayOrder(seconds=CALIBRATE_S, least_s=1.0, parts=(ReplayPart(roofs=True),))
    lines, problem = replay_process.run(wanted, order, os.environ)
    found = [line.roofs() for line in lines if line.what == "roofs"]
    if not found:
        raise TargetError(f"{wanted}: the roofs were not measured: {problem or 'no answer'}; it needs TensorFlow")
    try:
        path = calibration.save(found[0])
    except OSError as error:
        raise TargetError(f"the roofs could not be kept: {error}") from error
    return doctor_text.roofs(found[0], str(path)) + doctor_text.page_walks(_page_walks())


def _page_walks() -> PageWalks:
    """What translating addresses costs; kept if it was measured."""
    walks = page_walks.run()
    if not walks.complete:
        return walks
    try:
        calibration.save_page_walks(walks)
    except OSError as error:
        return msgspec.structs.replace(walks, problem=f"not kept: {error}")
    return walks


def exit_code(report: DoctorReport) -> int:
    """1 if something should be changed; blind checks and notes are not errors."""
    return int(any(check.outcome == "change" for check in report.checks))


def to_json(report: DoctorReport) -> str:
    """For programs: schema ``stepscope.doctor/1``."""
    return msgspec.json.format(msgspec.json.encode(report), indent=1).decode()


def to_text(report: DoctorReport, *, color: bool, width: int) -> str:
    """For people."""
    return doctor_text.render(report, color=color, width=width)
