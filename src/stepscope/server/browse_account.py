"""What the report says besides its findings, in its own words and rows, so that page and report cannot differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.model.api.browsing import Account, DetectorSaid, Ledger, LedgerRow, StageSaid
from stepscope.model.api.rest_api import Said

if TYPE_CHECKING:
    from stepscope.model.report.report import Report
    from stepscope.server.open_sessions import OpenSession


def account(opened: OpenSession, *, running: bool = False) -> Account:
    """Where the job's time went, pipeline stages, outcomes of detectors, and the report's other lines.

    Of a job that runs and has no steps yet there is nothing to account for.
    """
    from stepscope.report import words
    from stepscope.report.document import sections
    from stepscope.report.section import Asked, Where

    report = opened.report
    if running and not report.session.steps:
        return Account(ledgers=(), lines=(), stages=(), detectors=())
    imported = words.is_imported(report)
    return Account(
        ledgers=() if imported else _ledgers(report),
        lines=tuple(
            Said(label=one.label, text=text)
            for one in sections.lines(Asked(report=report))
            if one.web and (one.where == Where.IMPORTED or not imported)
            for text in one.flat()
        ),
        stages=tuple(
            StageSaid(stage=words.stage_word(one.stage), ratio=one.ratio, basis=words.basis_text(one))
            for one in report.stages
        ),
        detectors=_detectors(report),
    )


def _ledgers(report: Report) -> tuple[Ledger, ...]:
    from stepscope.report import ledger_rows

    return tuple(
        Ledger(
            title=title,
            ns=sum(entry.ns for entry in entries),
            rows=tuple(
                LedgerRow(
                    label=row.label,
                    component=row.component,
                    ns=row.ns,
                    ratio=row.ratio,
                    settled=row.settled,
                    text=row.text,
                    where=row.where,
                )
                for row in ledger_rows.rows(entries)
            ),
        )
        for title, entries in ledger_rows.ledgers(report)
    )


def _detectors(report: Report) -> tuple[DetectorSaid, ...]:
    from stepscope.report import checked_words

    return tuple(
        DetectorSaid(
            code=one.detector, name=one.name, outcome=checked_words.outcome(one), why_not=checked_words.why_not(one)
        )
        for one in checked_words.in_order(report.checked)
    )
