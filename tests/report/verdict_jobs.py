"""Reports whose time is or is not explained."""

from __future__ import annotations

import msgspec
from tests.report import samples

from stepscope.model.report.ledger import LedgerEntry
from stepscope.model.report.report import Report
from stepscope.tables.findings import Cost, Finding

replace = msgspec.structs.replace


def entry(ratio: float, settled: str = "unexplained", **fields: object) -> LedgerEntry:
    """A part of the job's ledger."""
    every = {"phase": "steps", "component": "call", "ns": round(ratio * 1e9), "ratio": ratio, "settled_by": settled}
    return msgspec.convert({**every, **fields}, LedgerEntry)


def clean(*ledger: LedgerEntry) -> Report:
    """A report without findings whose time went there."""
    left = sum(e.ratio * (1 - e.explained_ratio) for e in ledger if e.settled_by == "unexplained")
    return replace(samples.clean(), ledger=ledger, unexplained_ratio=left)


def general(code: str = "GEN010", high: float = 0.4, **fields: object) -> Finding:
    """A general finding."""
    general = replace(samples.input_bound().findings[0], code=code, severity="info")
    cost = Cost(ratio=0.0, low=0.0, high=high, basis="unknown")
    return replace(general, title="garbage collection takes 40 % of the steps", cost=cost, **fields)
