"""What all detectors say of a job; none may fail."""

from __future__ import annotations

from tests.derive.graph_tables import Tables
from tests.derive.sessions import Job
from tests.detectors.graph_jobs import graph_only

from stepscope.detectors.base import run
from stepscope.detectors.registry import ALL
from stepscope.tables.findings import Checked, Finding


def look(job: Job) -> tuple[tuple[Finding, ...], dict[str, Checked]]:
    """The findings, the costliest first, and what became of each detector."""
    findings, checked, failures = run(ALL, job.view())
    assert failures == ()
    return findings, {c.detector: c for c in checked}


def find(job: Job) -> tuple[Finding, ...]:
    """The findings alone."""
    return look(job)[0]


def codes(job: Job) -> list[str]:
    """The codes of what is found."""
    return [f.code for f in find(job)]


def asked(tables: Tables) -> list[str]:
    """Codes of the detectors that ask for an op trace of a job with these graphs."""
    return asked_of(graph_only(tables))


def asked_of(job: Job) -> list[str]:
    """The same of a job in which nothing is found."""
    findings, checked = look(job)
    assert findings == ()
    return [c.detector for c in checked.values() if c.outcome == "undecided" and c.capture == "ops"]
