"""What the looks at eager code say of dispatch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.derive.sessions import MS, SCRIPT, US
from tests.detectors.eager_jobs import LOOK, looked_at

from stepscope.derive.python import eager_looks
from stepscope.model.log.eager import EagerOp

if TYPE_CHECKING:
    from tests.derive.sessions import Job

    from stepscope.derive.steps.steps import Steps


def _row(op: str, line: int, count: int, ns: int) -> EagerOp:
    return EagerOp(op=op, file=SCRIPT, line=line, function="draw", scope="", count=count, ns=ns)


def steps_of(job: Job) -> Steps:
    """The steps of a job that has some."""
    steps = job.view().steps
    assert steps is not None
    return steps


def test_ops_that_took_longer_than_elsewhere_are_dispatch_at_most() -> None:
    """A Mul that took 25 us elsewhere may have waited for a CPU in its 2 ms; a MatMul of 2 ms everywhere computes."""
    job = looked_at(_row("Mul", 1, 100, 2_500 * US), _row("Mul", 2, 100, 200 * MS), _row("MatMul", 3, 100, 200 * MS))
    looks = eager_looks.build(steps_of(job))
    assert looks is not None
    assert looks.dispatch_ratio == pytest.approx((2.5 + 4 + 4) * MS / LOOK)
    assert looks.most_dispatch_ratio == pytest.approx((2.5 + 200 + 4) * MS / LOOK)


def test_ops_without_work_say_what_dispatch_takes_on_a_slow_machine() -> None:
    """Reads of variables take 200 us each here: a Mul of 250 us is dispatch up to that, not up to a usual 40 us."""
    reads = _row("ReadVariableOp", 1, 100, 20 * MS)
    looks = eager_looks.build(steps_of(looked_at(reads, _row("Mul", 2, 100, 25 * MS))))
    assert looks is not None
    assert looks.dispatch_ns == 200 * US
    assert looks.dispatch_ratio == pytest.approx((20 + 20) * MS / LOOK)


def test_few_ops_without_work_say_nothing_of_dispatch() -> None:
    """Five reads, of which one may have waited."""
    looks = eager_looks.build(steps_of(looked_at(_row("ReadVariableOp", 1, 5, 5 * MS))))
    assert looks is not None
    assert looks.dispatch_ns == eager_looks.DISPATCH_NS
