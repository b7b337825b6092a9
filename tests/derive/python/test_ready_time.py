"""The time for which the thread of the steps did not run: where it ran, or where it was seen blocked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stepscope.derive.python import ready_time, stack_samples
from stepscope.derive.python.stack_samples import Sample, Spot
from stepscope.model.log.waits import WaitSeen

if TYPE_CHECKING:
    from stepscope.model.report.components import ComponentName

LEAVES = {name: Spot(file="/job/a.py", function=name, line=1, own=True) for name in ("means", "ranks", "pause")}


def sample(
    name: str, weight: int, call: str = "", *, clock: bool = False, component: ComponentName = "other-python"
) -> Sample:
    """A sample of a function. ``call``: in which a look found the thread."""
    wait = WaitSeen(id=1, at=0, call=call) if call else None
    return Sample(
        at=0,
        weight_ns=weight,
        component=component,
        frames=(LEAVES[name],),
        on_cpu=clock,
        wait=wait,
    )


def shares(taken: list[Sample], per_run: float | None) -> dict[str, int]:
    """Weight of each function."""
    found = ready_time.spread(taken, per_run)
    assert stack_samples.weight_of(found) == stack_samples.taken_of(found) == stack_samples.weight_of(taken)
    return {n: stack_samples.weight_of(s for s in found if s.frames == (leaf,)) for n, leaf in LEAVES.items()}


RAN = [sample("means", 300, clock=True), sample("ranks", 100, clock=True)]


@pytest.mark.parametrize(
    ("waits", "per_run", "expected"),
    [
        ([sample("ranks", 800, "running")], 2.0, (900, 300, 0)),
        ([sample("ranks", 500, "running"), sample("ranks", 300)], 2.0, (900, 300, 0)),
        ([sample("ranks", 800, "gil")], 9.0, (900, 300, 0)),
        ([sample("ranks", 800)], 2.0, (900, 300, 0)),
        ([sample("ranks", 800, "running")], None, (300, 900, 0)),
        ([sample("ranks", 800, "running")], 1.0, (600, 600, 0)),
        ([sample("ranks", 400, "running"), sample("pause", 400, "sleep")], 1.0, (600, 200, 400)),
        ([sample("ranks", 400, "running"), sample("pause", 400, "sleep")], 0.5, (450, 150, 600)),
        ([sample("pause", 400, "running"), sample("pause", 400, "sleep")], 2.0, (300, 100, 800)),
        ([sample("ranks", 400, "running"), sample("pause", 400)], 0.5, (450, 150, 600)),
        ([sample("ranks", 400, "running"), sample("pause", 400)], 1.5, (750, 250, 200)),
        ([], 2.0, (300, 100, 0)),
    ],
)
def test_time_not_run(waits: list[Sample], per_run: float | None, expected: tuple[int, int, int]) -> None:
    """A sample that finds the thread ready says nothing of where it was: that time is where it ran. What is left of
    waiting is where looks find it blocked, or where there was none.
    """
    assert tuple(shares([*RAN, *waits], per_run).values()) == expected


def test_without_samples_of_the_clock_nothing_moves() -> None:
    """Where it ran is not known."""
    assert shares([sample("ranks", 800, "running")], 2.0) == {"means": 0, "ranks": 800, "pause": 0}


def test_components_by_themselves() -> None:
    """How long each component took is measured: no time moves from one to another."""
    call = [sample("ranks", 500, "running", component="call"), sample("means", 100, clock=True, component="call")]
    found = ready_time.spread([*RAN, *call], 9.0)
    assert [s.weight_ns for s in found] == [300, 100, 0, 600]
