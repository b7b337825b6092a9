"""Ledgers of sessions that tests write, and their parts by name."""

from __future__ import annotations

from stepscope.derive.ledger import build
from stepscope.derive.ledger.part import Ledger
from stepscope.derive.steps import step_makers
from stepscope.derive.view import SessionView
from stepscope.model.session.session import Session


def ledgers(session: Session) -> tuple[Ledger, ...]:
    """The ledgers of a session without input wait in compiled calls."""
    view = SessionView(session)
    makers = step_makers.build(view.steps) if view.steps is not None else ()
    return build.ledgers(session, view.workers, makers, lambda _: 0.0)


def times(ledger: Ledger) -> dict[str, int]:
    """Time of each part by name."""
    return {f"{p.phase}/{p.component}" if p.component else str(p.phase): p.ns for p in ledger.parts}


def whole(ledger: Ledger) -> int:
    """All parts together."""
    return sum(part.ns for part in ledger.parts)
