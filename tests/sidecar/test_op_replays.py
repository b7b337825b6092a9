"""Which jobs' ops are replayed, and in which order: time may end before all are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from stepscope.collector.recorder import Recording
from stepscope.model.session.replays import Recipe, ReplayInput, ReplayNode, Tensor
from stepscope.model.session.session import CaptureInfo, Manifest
from stepscope.sidecar import op_replays, sidecar
from stepscope.sidecar.op_replays import parts


def product(size: int, dtype: str) -> Recipe:
    side = Tensor(dtype=dtype, shape=(size, size))
    given = ReplayInput(dtype=dtype, shape=side.shape)
    node = ReplayNode(type="MatMul", attributes='{"transpose_a":false,"transpose_b":false}', inputs=((-1, 0), (-2, 0)))
    return Recipe(inputs=(given, given), nodes=(node,), output=side)


def test_single_precision_comes_with_each_op_in_double_precision() -> None:
    """What may be half of the step is known before the last of the ops as they are."""
    recipes = [product(512, "float64"), product(256, "float32"), product(128, "float64")]
    (part,) = parts(recipes, 0, 1, roofs=False)
    order = [(at, one.variant) for one in part.recipes for at, r in enumerate(recipes) if r.key() == one.key]
    assert order[:5] == [(0, ""), (0, "float32"), (1, ""), (2, ""), (2, "float32")]
    assert {variant for _, variant in order[5:]} == {"batch", "bfloat16"}


@pytest.mark.parametrize(
    ("changed", "replayed"),
    [({}, True), ({"exit_code": 3}, False), ({"budget": "0%"}, False), ({"captures": ()}, False)],
    ids=["as-usual", "failed", "no-budget", "not-traced"],
)
def test_only_a_job_that_ended_well_within_a_budget_is_replayed(
    changed: dict[str, object], replayed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The collector asks before it replays: after a job that failed, that would only be waited for."""
    usual = Manifest(id="x", mode="run", state="finished", exit_code=0, captures=(CaptureInfo(id="c"),))
    manifest = msgspec.structs.replace(usual, **changed)
    made: list[object] = []
    monkeypatch.setattr(op_replays, "replay", made.append)
    sidecar._replay(cast("Recording", SimpleNamespace(manifest=manifest, session="s")))
    assert made == (["s"] if replayed else [])
