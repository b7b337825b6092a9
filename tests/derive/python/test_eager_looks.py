"""What the looks at eager code say of dispatch."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, SCRIPT, US
from tests.detectors.eager_jobs import LOOK, looked_at

from stepscope.derive.python import eager_looks
from stepscope.model.log.eager import EagerOp


def _row(op: str, line: int, count: int, ns: int) -> EagerOp:
    return EagerOp(op=op, file=SCRIPT, line=line, function="draw", scope="", count=count, ns=ns)


def test_ops_that_took_longer_than_elsewhere_are_dispatch_at_most() -> None:
    """A Mul that took 25 us elsewhere may have waited for a CPU in its 2 ms; a MatMul of 2 ms everywhere computes."""
    job = looked_at(_row("Mul", 1, 100, 2_500 * US), _row("Mul", 2, 100, 200 * MS), _row("MatMul", 3, 100, 200 * MS))
    steps = job.view().steps
    assert steps is not None
    looks = eager_looks.build(steps)
    assert looks is not None
    assert looks.dispatch_ratio == pytest.approx((2.5 + 4 + 4) * MS / LOOK)
    assert looks.most_dispatch_ratio == pytest.approx((2.5 + 200 + 4) * MS / LOOK)
