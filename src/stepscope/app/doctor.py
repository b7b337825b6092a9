"""The use case ``doctor``: check this machine and a Python's packages, without a job. Nothing is changed."""

from __future__ import annotations

import platform
from dataclasses import dataclass

import msgspec

from stepscope._version import __version__
from stepscope.app.record import python_of_job
from stepscope.collector.machine import cpu, libraries, memory, profiling
from stepscope.collector.machine.host import Host
from stepscope.collector.machine.python import ask
from stepscope.model.report.doctor import DoctorReport
from stepscope.reports import doctor_text


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorOptions:
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
            *libraries.checks(host, facts),
        ),
    )


def exit_code(report: DoctorReport) -> int:
    """1 if something should be changed; blind checks and notes are not errors."""
    return int(any(check.outcome == "change" for check in report.checks))


def to_json(report: DoctorReport) -> str:
    """For programs: schema ``stepscope.doctor/1``."""
    return msgspec.json.format(msgspec.json.encode(report), indent=1).decode()


def to_text(report: DoctorReport, *, color: bool, width: int) -> str:
    """For people."""
    return doctor_text.render(report, color=color, width=width)
