"""Fixtures of the detectors that look at memory."""

from __future__ import annotations

from tests.derive.sessions import MS
from tests.detectors.fixture import Expected, Fixtures
from tests.detectors.jobs import train_loop
from tests.detectors.memory_jobs import FAULT_NS, RELEASE_NS, faulting, refaulting

ROUNDING = 1e-4
"""Faults are whole."""
MEM002 = Fixtures(
    firing=lambda: refaulting(0.4),
    expected=Expected(
        severity="high",
        cost=0.4 * (FAULT_NS + RELEASE_NS) / FAULT_NS,
        where=(),
        metrics=("fault_ratio", "lasting_ratio", "faults_per_step", "fault_ns", "system_ratio", "kept_ratio"),
        title=("page faults in every step", "25,000 a step", "40 % of the CPU time"),
        introduced="unknown",
        pipeline_stage="forward-backward",
        remedy="find-the-allocator",
        basis="modelled",
    ),
    silent=lambda: faulting(lambda second: 60_000 if second < 3 else 0),
    not_applicable=lambda: train_loop(80 * MS),
    missing="counts of page faults",
    below=lambda: refaulting(0.03 - ROUNDING),
    at=lambda: refaulting(0.03 + ROUNDING),
)
