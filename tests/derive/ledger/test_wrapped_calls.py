"""What calls cost that are only counted."""

from __future__ import annotations

import numpy as np
import pytest

from stepscope.derive.ledger import wrapped_calls
from stepscope.tables.records import Gaps, RecordTable
from stepscope.wire.call_cost import HOOK_LIGHTS
from stepscope.wire.kinds import Kind


def gap(kind: Kind, calls: int) -> Gaps:
    """A second of one."""
    columns = {"start_ns": 0, "end_ns": 1_000_000_000, "kind": int(kind), "calls": calls}
    return Gaps(**{name: np.array([value], np.int64) for name, value in columns.items()})


@pytest.mark.parametrize("calls", [10, 1_000, 100_000])
def test_a_step_that_a_hook_counts_costs_more_than_a_call_that_c_counts(calls: int) -> None:
    """PyTorch's hook is a function in Python, in gaps too."""
    nothing = RecordTable.empty()
    hooked, counted = (wrapped_calls.of_gaps(gap(kind, calls), nothing) for kind in (Kind.APPLY, Kind.NEXT))
    assert (hooked.calls, counted.calls) == (calls, calls)
    assert hooked.ns == pytest.approx([HOOK_LIGHTS * ns for ns in counted.ns])


def test_what_was_recorded_in_gaps_is_counted_there() -> None:
    """An update of Keras has a wrapper that nothing detaches."""
    columns = {name: np.zeros(7, np.int64) for name in RecordTable.__struct_fields__}
    recorded = RecordTable(**{**columns, "kind": np.full(7, int(Kind.APPLY))})
    assert wrapped_calls.of_gaps(gap(Kind.APPLY, 7), recorded).calls == 0
