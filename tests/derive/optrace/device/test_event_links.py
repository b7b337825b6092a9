"""What led to what in an op trace, as the profiler wrote it, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from tests.derive.op_traces import Maker

from stepscope.derive.optrace.device import event_links
from stepscope.derive.optrace.device.event_links import LinkKind

if TYPE_CHECKING:
    from stepscope.tables.optrace import OpTrace

Told = set[tuple[str, str, LinkKind]]


def told(trace: OpTrace) -> Told:
    """Links by what the events are called and when they begin, in us."""
    links = event_links.build(trace)

    def named(row: int) -> str:
        return f"{trace.strings[trace.names()[row]]} {int(trace.events.start_ns[row]) // 1000}"

    rows = zip(links.source.tolist(), links.target.tolist(), links.kind.tolist(), strict=True)
    found = {(named(source), named(target), LinkKind(kind)) for source, target, kind in rows}
    assert len(found) == len(links)
    return found


def test_a_launch_and_its_work() -> None:
    """By their number; a kernel whose call was not recorded has none, and so has a call without its work."""
    maker = Maker()
    stream = maker.stream(maker.device())
    maker.launch(maker.main, stream, "sgemm", 10, 20, 5)
    maker.launch(maker.main, stream, "relu", 15, 26, 5)
    maker.span(stream, "lost", 40, 5, correlation_id=77)
    maker.span(maker.main, "cudaLaunchKernel", 50, 1, correlation_id=78)
    assert told(maker.trace()) == {
        ("cudaLaunchKernel 10", "sgemm 20", LinkKind.LAUNCH),
        ("cudaLaunchKernel 15", "relu 26", LinkKind.LAUNCH),
    }


def test_arrows_of_numbers_that_are_used_again() -> None:
    """An arrow comes from the last one that began before; one that waited already comes from the only one there is."""
    maker = Maker()
    other = maker.thread("other")
    maker.span(maker.main, "send", 10, 5, flow_out=1)
    maker.span(other, "take", 20, 5, flow_in=1)
    maker.span(maker.main, "send", 30, 5, flow_out=1)
    maker.span(other, "take", 40, 5, flow_in=1)
    maker.span(other, "take", 50, 5, flow_in=1)
    maker.span(maker.main, "wake", 60, 5, flow_out=2)
    maker.span(other, "wait", 55, 9, flow_in=2)
    maker.span(other, "alone", 70, 9, flow_in=3)
    assert told(maker.trace()) == {
        ("send 10", "take 20", LinkKind.FLOW),
        ("send 30", "take 40", LinkKind.FLOW),
        ("send 30", "take 50", LinkKind.FLOW),
        ("wake 60", "wait 55", LinkKind.FLOW),
    }


def test_producers_and_consumers_of_the_same_type() -> None:
    """The same number of another type is another one; numbers may be hashes of 64 bits."""
    maker = Maker()
    other = maker.thread("other")
    large = (1 << 63) + 5 - (1 << 64)
    maker.span(maker.main, "run", 10, 5, _p=large, _pt=4)
    maker.span(maker.main, "other run", 16, 5, _p=large, _pt=5)
    maker.span(other, "op", 20, 5, _c=large, _ct=4)
    maker.span(other, "op", 30, 5, _c=large, _ct=5)
    maker.span(other, "op", 40, 5, _c=large, _ct=6)
    assert told(maker.trace()) == {("run 10", "op 20", LinkKind.FLOW), ("other run 16", "op 30", LinkKind.FLOW)}


def test_what_tells_nothing_has_no_links() -> None:
    """Neither nesting nor time makes one; nothing leads to itself."""
    maker = Maker()
    maker.step(0, 100, 1)
    maker.call(10, 50)
    maker.span(maker.main, "itself", 70, 5, flow_out=1, flow_in=1)
    assert told(maker.trace()) == set()
    assert event_links.build(Maker().trace()).kind.dtype == np.int64
