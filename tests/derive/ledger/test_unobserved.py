"""Steps that were counted but not observed."""

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from stepscope.derive.ledger import unobserved
from stepscope.derive.ledger.own_steps import OwnSteps


def test_counted_steps_without_a_time_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """More steps are counted than were observed, but no time is left in which they could be: none is placed."""
    nothing = (np.empty(0, np.int64), np.empty(0, np.int64))
    monkeypatch.setattr(unobserved, "spans_of", lambda own: nothing)
    own = SimpleNamespace(later=np.array([True]), seen=np.array([1]), steps=SimpleNamespace(count=3))
    found = unobserved.build(cast("OwnSteps", own), nothing, {"call": 5.0}, {})
    assert (found.count, found.parts, found.unseen_ns) == (0, {}, 0)
