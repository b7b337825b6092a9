"""Starts the sidecar of an enabled job: ``stepscope.sidecar.always_on_start.main([RUN, STARTS])``.

Nothing of the job's is held: a pipe that never closes would stall its reader.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.launcher import background
from stepscope.native.garbage import collect_less

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str]) -> None:
    """Entry point."""
    background.leave_the_job()
    background.become()
    collect_less()
    from stepscope.sidecar import always_on  # what it loads is loaded at low priority

    always_on.follow_job(Path(argv[0]), int(argv[1]))
