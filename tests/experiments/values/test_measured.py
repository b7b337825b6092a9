"""Shares of claims by the times of ops."""

from __future__ import annotations

import pytest

from stepscope.experiments.values import measured
from stepscope.experiments.values.claims import Claim, LineOps
from stepscope.model.report.op_table import OpTable, OpTime

CLAIM = Claim(
    kind="zeros",
    ratio=0.8,
    text="",
    remedy="",
    places=(LineOps(file="train.py", line=3, function="", ratio=0.6), LineOps(file="", line=0, function="", ratio=0.2)),
    ops=("lookup/MatMul", "grad/MatMul"),
    needless=(("lookup/MatMul", 1.0), ("grad/MatMul", 0.5)),
)


def table(*ops: tuple[str, float]) -> OpTable:
    """Times of ops."""
    times = tuple(OpTime(name=name, type="MatMul", device="", calls=1, ns=1, ratio=ratio) for name, ratio in ops)
    return OpTable(trace="ops-001", steps=5, ns=100, joined_ratio=1.0, named_ratio=1.0, ops=times)


def test_a_claim_by_times() -> None:
    """Times count in the share that is needless of each op, names without the call of the function; lines scale."""
    traced = table(("StatefulPartitionedCall/lookup/MatMul", 0.3), ("grad/MatMul", 0.2), ("other", 0.5))
    claim = measured.with_times(CLAIM, measured.times(traced))
    assert claim.basis == "op-times"
    assert claim.ratio == pytest.approx(0.4)
    assert [place.ratio for place in claim.places] == [pytest.approx(0.3), pytest.approx(0.1)]


def test_an_op_that_was_not_traced() -> None:
    """A fused op has another name: the claim stays by shapes. So it does without a trace."""
    assert measured.with_times(CLAIM, measured.times(table(("lookup/MatMul", 0.3)))) is CLAIM
    assert measured.with_times(CLAIM, measured.times(None)) is CLAIM
