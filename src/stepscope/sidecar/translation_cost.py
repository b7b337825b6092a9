"""Stores in an ended job's session what a TLB miss costs on its machine; measured if it is not known yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.machine import calibration
from stepscope.native.memory import page_walks
from stepscope.store import page_walks as stored
from stepscope.tables import layout

if TYPE_CHECKING:
    from stepscope.collector.recorder import Recording
    from stepscope.tables.page_walks import PageWalks

FAILED = "DX181"
"""It could not be measured, or not be stored."""


def store(recording: Recording) -> None:
    """Store it if the memory of a process of the job was looked at: else nothing asks for it.

    Cost: up to 8 s and 1 GiB of memory on a machine on which it was not measured before, usually 2 s.
    """
    if not (recording.session / layout.MEMORY).is_dir():
        return
    try:
        walks = calibration.load_page_walks() or _measured()
        if walks.points:
            stored.write(recording.session, walks)
        problem = walks.problem
    except OSError as error:
        problem = str(error)
    if problem:
        recording.note(
            FAILED, f"the cost of TLB misses was not measured: {problem}; to measure it: stepscope doctor --calibrate"
        )
        recording.write_notes()


def _measured() -> PageWalks:
    """Measured now; kept for later runs if it is complete."""
    walks = page_walks.run()
    if walks.complete:
        calibration.save_page_walks(walks)
    return walks
