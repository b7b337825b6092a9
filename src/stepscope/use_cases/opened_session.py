"""A stored session for programs and notebooks: ``stepscope.open`` (docs/python.md)."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.derive.view import SessionView
from stepscope.diagnosis.analyze import report_of
from stepscope.exporters import arrow_tables
from stepscope.report import json_report, words
from stepscope.report.brief import document, fragment
from stepscope.sessions.bundle import open_session
from stepscope.sessions.latest import latest
from stepscope.tables.errors import UsageError

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    import pyarrow as pa

    from stepscope.model.report.brief import Brief
    from stepscope.model.report.report import Report
    from stepscope.tables.findings import Finding

TABLES = tuple(arrow_tables.SCHEMAS)
"""Names of the tables."""


class OpenedSession:
    """A session that is read: its report, its findings, its tables. What is asked for is computed once, then.

    In a notebook it is shown as the first lines of its report.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        """``path``: a .stepscope folder or a packed file; None: the newest of the current folder, else of ``enable``.

        Raises:
            SessionError: there is no session, or it cannot be read.
            IncompatibleSessionError: a newer stepscope wrote it.
        """
        self.path = latest() if path is None else Path(path)
        self._session = open_session(self.path)

    @cached_property
    def report(self) -> Report:
        """The whole report: what ``stepscope report --format json`` writes, as structs (docs/report-schema.md)."""
        return json_report.finite(report_of(self._session))

    @cached_property
    def brief(self) -> Brief:
        """The verdict, the step in figures, the first three findings, what is not known: ``--format json --brief``."""
        return document.brief_of(self.report, str(self.path))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, the costliest first."""
        return self.report.findings

    @property
    def sources(self) -> Mapping[str, str]:
        """The user's code as it ran: path to text."""
        return self._session.sources

    def table(self, name: str) -> pa.Table:
        """One of ``TABLES`` as an Arrow table; columns and units: docs/exporting.md#parquet.

        Raises:
            UsageError: there is no such table.
            SessionError: the session is damaged.
        """
        if name not in TABLES:
            raise UsageError(f"no table {name!r}; expected one of {', '.join(TABLES)}")
        rows = arrow_tables.Collected(name)
        found = self.findings if name == "findings" else ()
        arrow_tables.fill({name: rows}, SessionView(self._session), None, found)
        return rows.table()

    def __repr__(self) -> str:
        return f"<stepscope session {words.printable(str(self.path))}: {self.brief.verdict}>"

    def _repr_html_(self) -> str:
        """For notebooks: no script, no style sheet, no address outside of the page."""
        return str(fragment.render(self.report, str(self.path)))
