"""Fixtures of the detector of contention for the interpreter lock."""

from __future__ import annotations

from tests.derive.sessions import MS
from tests.detectors.fixture import Expected, Fixtures
from tests.detectors.jobs import CALL, train_loop
from tests.detectors.lock_jobs import beside

HST011 = Fixtures(
    firing=lambda: beside(70),
    expected=Expected(
        severity="high",
        cost=0.6,
        where=(("words.py", 12), ("train.py", CALL)),
        metrics=(
            "lock_wait_ratio",
            "blocked_ratio",
            "ready_ratio",
            "elsewhere_ratio",
            "looks",
            "holder_cores",
            "samples_on_code",
        ),
        title=("another Python thread holds the GIL", "count", "0.7 CPUs", "60 ms of 100 ms", "60 %"),
        pipeline_stage="forward-backward",
        remedy="move-to-process",
    ),
    silent=lambda: beside(70, waits=0, elsewhere=40),
    not_applicable=lambda: train_loop(80 * MS),
    missing="CPU samples of the host",
    below=lambda: beside(9),
    at=lambda: beside(10),
)
