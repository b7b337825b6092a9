"""Switches measuring off for a program that came to harm while it was measured, by whatever.

Harm: a measured process died of a signal that is not sent on purpose, or its program had ended and the process had not
until a signal ended it. Decided when the job has ended, by the collector.
"""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

from stepscope.collector.recorder import ended_by
from stepscope.launcher import rundir
from stepscope.wire import off

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.collector.recorder import Recording

CODE = "DX104"
FAULTS = frozenset((signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL))
"""Signals that no user, shell or scheduler ends a job with."""


def enter(recording: Recording) -> None:
    """Enter the programs that came to harm into the user's list, and say so in the session.

    A trial changes the job on purpose, and what becomes of it says nothing of measuring.
    """
    if rundir.is_trial(recording.run):
        return
    today = time.strftime("%Y-%m-%d")
    for program, what in dict(_harmed(recording)).items():
        entry = {"program": program, "since": today, "what": what}
        try:
            off.add_harmed(**entry)
        except OSError as error:
            recording.note(
                CODE, f"{off.short(program)} {what} while it was measured; it could not be switched off: {error}"
            )
        else:
            recording.note(CODE, off.told(entry))
        recording.write_notes()


def _harmed(recording: Recording) -> Iterator[tuple[str, str]]:
    """(program, what happened) of each measured process that came to harm."""
    for key, number in ended_by(recording).items():
        worker = recording.drainer.workers[key]
        lines = (worker.info.command, recording.manifest.command)  # multiprocessing's have no program
        named = (off.program_of(line, recording.manifest.cwd) for line in lines if off.is_python(line))
        program = next(filter(None, named), "")
        if program and number in FAULTS:
            yield program, f"died of {signal.Signals(number).name}"
        elif program and number and key in recording.drainer.ends.stuck:
            yield program, "did not end"
