"""Settles the entries of the ledger: what explains each part of the wall time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.derive.view import SessionView
    from stepscope.model.report.finding import Finding
    from stepscope.model.report.ledger import LedgerEntry

SMALL_RATIO = 0.05
"""Share of the wall time from which a part has to be settled (DESIGN 3.3)."""


def settled(entries: Sequence[LedgerEntry], findings: Sequence[Finding], view: SessionView) -> tuple[LedgerEntry, ...]:
    """The entries, small ones settled as such and all others unexplained."""
    del findings, view  # by size alone
    return tuple(
        msgspec.structs.replace(entry, settled_by="small" if entry.ratio < SMALL_RATIO else "unexplained")
        for entry in entries
    )
