"""The report of a stored session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.diagnosis.analyze import report_of
from stepscope.sessions import bundle

if TYPE_CHECKING:
    from pathlib import Path

    from stepscope.model.report.report import Report


def analyze(path: Path) -> Report:
    """Report of the session at ``path`` (a directory or a packed file).

    Raises:
        SessionError: the session is missing or damaged.
        IncompatibleSessionError: it was written by a newer stepscope.
    """
    return report_of(bundle.open_session(path))
