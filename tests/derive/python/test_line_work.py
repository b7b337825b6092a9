"""What some lines do, by their stacks."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from stepscope.derive.python import line_work
from stepscope.derive.python.stack_samples import Sample, Spot
from stepscope.model.log.waits import WaitSeen

LINE = Spot(file="/job/train.py", function="batch", line=2, own=True)
ENTRY = Spot(file="/x/site-packages/rows/table.py", function="Table.row", line=5, own=False)
LEAF = Spot(file="/x/site-packages/rows/codec.py", function="unpack", line=7, own=False)
KERAS = Spot(file="/x/site-packages/keras/src/layer.py", function="Layer.get_weights", line=7, own=False)


def stacks(count: int, *below: Spot, weight: int = 10, cpu: bool = False, wait: WaitSeen | None = None) -> list[Sample]:
    """Samples of the line and what it calls."""
    one = Sample(at=1, weight_ns=weight, component="other-python", frames=(LINE, *below), on_cpu=cpu, wait=wait)
    return [replace(one, at=at) for at in range(count)]


def test_parts_are_shares_of_time_by_the_function_that_is_called() -> None:
    """A part names the library's function and what runs innermost in it; time, not the number of stacks, counts."""
    found = line_work.build([*stacks(10, ENTRY, LEAF, weight=30), *stacks(10, weight=10)], lambda _: None)
    assert found is not None
    first, second = found.parts
    assert (first.entry, first.innermost, first.kind) == ("Table.row", "unpack", "")
    assert first.ratio == pytest.approx(0.75)
    assert first.low < first.ratio < first.high
    assert (second.entry, second.innermost) == ("", "")
    assert found.samples == 20


def test_few_stacks_say_nothing() -> None:
    """Seven stacks are no basis of a share."""
    assert line_work.build(stacks(7, ENTRY), lambda _: None) is None


def test_whether_it_ran_and_what_it_waited_for() -> None:
    """By the thread's CPU clock, and by what most looks found."""
    look = WaitSeen(id=1, call="fsync", kind="file", target="/job/journal")
    found = line_work.build([*stacks(10, cpu=True), *stacks(30, wait=look)], lambda _: None)
    assert found is not None
    assert found.waited is not None
    assert found.ran_ratio == pytest.approx(0.25)
    assert (found.waited.reason, found.waited.call, found.waited.target) == ("file", "fsync", "/job/journal")
    unclocked = line_work.build(stacks(10), lambda _: None)
    assert unclocked is not None
    assert (unclocked.ran_ratio, unclocked.waited) == (None, None)


def test_a_frameworks_time_is_known_as_its_own() -> None:
    """Where most of it is below a framework's function."""
    found = line_work.build([*stacks(10, KERAS), *stacks(8, ENTRY)], lambda _: None)
    assert found is not None
    assert found.framework
    assert [part.framework for part in found.parts] == [True, False]
