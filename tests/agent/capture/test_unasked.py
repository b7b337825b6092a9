"""Who may ask for an op trace of a rank of Horovod."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
from tests.agent.capture.made import GOOD

from stepscope.agent.capture import profiler
from stepscope.agent.capture.orders import Order
from stepscope.agent.capture.profiler import HOROVOD, UNASKED, Profiler
from stepscope.agent.capture.watch import StepWatch


@pytest.mark.parametrize(
    ("asked_by", "loaded", "text"),
    [
        ("first-look", True, UNASKED),
        ("GEN001", True, UNASKED),
        ("user", True, "traced"),
        ("first-look", False, "traced"),
    ],
)
def test_a_rank_of_horovod_is_traced_when_a_person_asks(
    asked_by: str, loaded: bool, text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    """A trace that nobody asked for ended one of four such jobs."""
    monkeypatch.delitem(sys.modules, HOROVOD, raising=False)
    if loaded:
        monkeypatch.setitem(sys.modules, HOROVOD, ModuleType(HOROVOD))
    monkeypatch.setattr(profiler, "MIN_FREE_BYTES", 0)
    order, watch = Order({**GOOD, "asked_by": asked_by, "anchors": []}), StepWatch(frozenset())

    class Traced(Profiler):
        """Traces nothing."""

        def __init__(self) -> None:
            """Without a framework."""

        def _attempt(self, order: Order, watch: StepWatch, folder: str) -> dict[str, object]:
            return {"text": "traced"}

    assert Traced().trace(order, watch, str(tmp_path))["text"] == text
