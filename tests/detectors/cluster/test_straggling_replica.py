"""DST011 straggling-replica: its fixtures, and who is never blamed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.derive.sessions import Job
from tests.detectors.fixture import CLAIMS, AnyDetector, Claim, Edge, Expected, Fixtures, look
from tests.detectors.replica_jobs import LINE, MORE, mirrored
from tests.detectors.traced_jobs import TRACE

from stepscope.derive.view import SessionView
from stepscope.detectors import base
from stepscope.detectors.cluster.straggling_replica import DETECTOR
from stepscope.store import reader


def unread() -> Job:
    """Two replicas, of which the graphs were read and no step was traced."""
    job = mirrored([[30.0], [30.0]])
    del job.resources["op_traces"]
    return job


ONLY: Sequence[AnyDetector] = (DETECTOR,)
FIXTURES = Fixtures(
    firing=lambda: mirrored([[30.0], [60.0]]),
    expected=Expected(
        severity="high",
        cost=0.30,
        where=(("train.py", MORE),),
        metrics=("own_ns", "others_own_ns", "blame_ns", "last_ratio", "waits_ns", "traced_steps"),
        title=("the replica on CPU:1 holds the other back", "30 ms more in each step", "30 % less"),
        pipeline_stage="forward-backward",
        remedy="equal-replicas",
        basis="modelled",
    ),
    silent=lambda: mirrored([[60.0], [60.0]]),
    not_applicable=unread,
    missing=TRACE,
    below=lambda: mirrored([[30.0], [34.9]]),
    at=lambda: mirrored([[30.0], [35.1]]),
    edges={
        "min_last": Edge(
            below=lambda: mirrored([[30.0, 60.0, 30.0, 60.0, 30.0], [60.0, 30.0, 60.0, 30.0, 60.0, 30.0]]),
            at=lambda: mirrored([[30.0], [60.0, 60.0, 60.0, 60.0, 30.0]]),
        ),
        "max_group": Edge(
            below=lambda: mirrored([[30.0], [60.0], [59.0], [30.0]]),
            at=lambda: mirrored([[30.0], [60.0], [30.0], [30.0]]),
        ),
    },
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """Every claim of ``tests/detectors/fixture.py``."""
    claim(DETECTOR, FIXTURES)


def test_work_that_nobody_waits_for_is_no_delay() -> None:
    """A replica whose ops run longer, while the others come to the exchange as late for another reason."""
    assert look(DETECTOR, mirrored([[30.0], [60.0]], waits=False))[0] == ()


def test_replicas_that_are_slow_in_turn_are_not_blamed() -> None:
    """On shared cores one runs after the other; who is last changes."""
    assert look(DETECTOR, mirrored([[30.0, 60.0], [60.0, 30.0]]))[0] == ()


def test_lines_that_all_replicas_run_are_named_where_one_needs_longer_for_them() -> None:
    """The line is that of the ops beyond the others', not the longest."""
    (found,), _ = look(DETECTOR, mirrored([[60.0], [90.0], [60.0]]))
    assert [place.line for place in found.where] == [MORE]
    assert LINE not in [place.line for place in found.where]
    assert "holds the others back" in found.title


def test_one_device_has_no_replicas() -> None:
    """It does not apply: nothing is said of exchanges in a job of one device."""
    _, checked = look(DETECTOR, mirrored([[30.0]]))
    assert (checked.outcome, checked.missing) == ("not-applicable", ())


def test_a_recorded_job_on_a_full_machine() -> None:
    """Real: six traced steps, own times that vary by a third; the line is that of what one replica adds."""
    data = Path(__file__).parents[2] / "data" / "mirrored-replicas" / "slow.stepscope"
    (found,), *_ = base.run(ONLY, SessionView(reader.read(data)))
    assert found.title.startswith("the replica on CPU:1 holds the other back: its ops take 86.1 ms more")
    assert [place.line for place in found.where] == [27]
    assert (found.cost.low, found.cost.ratio) == pytest.approx((0.20, 0.51), abs=0.01)
