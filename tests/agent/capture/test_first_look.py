"""When a process begins its first look, and when it leaves it to others."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from tests.agent.capture.made import MS, calls

from stepscope.agent.capture.first_look import FirstLook
from stepscope.agent.capture.orders import CaptureCommand
from stepscope.agent.core.graph_sizes import GraphSizes
from stepscope.wire.env import LOOKED_NAME
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.agent.capture.host import LookHost

BOUND_NS = 100 * MS


class Process:
    """The state of a process, with its records."""

    def __init__(self, run: Path, names: dict[int, dict[str, object]]) -> None:
        self.now = lambda: 0
        self.records = self
        self.hooks = SimpleNamespace(apart_ns=0)
        self.written: list[tuple[int, ...]] = []
        self.logged: list[dict[str, object]] = []
        self.orders: list[dict[str, object]] = []
        self.lines = SimpleNamespace(run=str(run), named=lambda n: names.get(n, {}), log=self.logged.append)
        self.captures = SimpleNamespace(
            asked=0, served=False, profiled=bool, order=self.orders.append, sizes=GraphSizes()
        )
        self.captures.tracers = {"profiler": None}

    def since(self, index: int, _most: int) -> tuple[int, list[tuple[int, ...]]]:
        """Records from ``index`` on."""
        return len(self.written), self.written[index:]


@pytest.fixture
def process(tmp_path: Path) -> Process:
    """One that trains with Keras and runs a session."""
    return Process(tmp_path, {1: {"role": "train", "text": "train"}, 4: {"text": "train_op"}})


def looking(process: Process) -> FirstLook:
    """Its first look."""
    return FirstLook(cast("LookHost", process), BOUND_NS)


def test_the_look_begins_with_steady_steps_and_once(process: Process) -> None:
    """The order is one that the collector could have given, and its line says what it is of."""
    look = looking(process)
    process.written += calls(4)
    look.tick(400 * MS)
    assert (process.orders, process.captures.sizes.wanted) == ([], True)
    process.written += calls(4, at_ms=400)
    look.tick(800 * MS)
    look.tick(900 * MS)
    (fields,) = process.orders
    order = CaptureCommand(fields)
    assert (order.anchors, order.thread, order.task) == (frozenset({(Kind.EXECUTION, 1)}), 1, None)
    assert (order.before, order.margin, order.echo["asked_by"]) == (0, 10, "first-look")
    (line,) = process.logged
    assert (line["begun"], line["role"], line["work"]) == (True, "train", "training")
    assert line["id"] == order.identity
    assert not process.captures.sizes.wanted


def test_a_session_s_runs_are_traced_by_their_fetches(process: Process) -> None:
    """As the collector asks for them."""
    process.written += calls(8, kind=Kind.SESSION_RUN, name=4)
    looking(process).tick(800 * MS)
    assert [order["task"] for order in process.orders] == ["train_op"]
    assert process.logged[0]["text"] == "train_op"


def test_only_one_process_of_a_run_looks(process: Process, tmp_path: Path) -> None:
    """The first whose steps are steady."""
    other = Process(tmp_path, {1: {"role": "train"}})
    for one in (process, other):
        one.written += calls(8)
        looking(one).tick(800 * MS)
    assert (len(process.orders), other.orders, other.logged) == (1, [], [])
    assert (tmp_path / LOOKED_NAME).exists()


@pytest.mark.parametrize("why", ["asked", "served", "profiled"])
def test_whoever_looks_already_is_left_alone(process: Process, why: str) -> None:
    """A capture was requested, the user's profiler runs, or a server of theirs may start one."""
    setattr(process.captures, why, (lambda: True) if why == "profiled" else 1)
    look = looking(process)
    process.written += calls(8)
    look.tick(800 * MS)
    setattr(process.captures, why, (lambda: False) if why == "profiled" else 0)
    look.tick(810 * MS)
    assert process.orders == []


def test_steps_that_are_too_dear_are_told_of(process: Process) -> None:
    """Nothing is traced, and the line says what one step would cost."""
    process.written += calls(3, 4_000, kind=Kind.APPLY, name=9)
    looking(process).tick(10_000 * MS)
    assert process.orders == []
    (line,) = process.logged
    assert line["begun"] is False
    assert "tracing one step would cost the job about 4." in str(line["problem"])


def test_a_process_that_nothing_can_trace_asks_for_nothing(process: Process) -> None:
    """PyTorch has steps, and no profiler of ours: no capture is begun that would be refused."""
    process.captures.tracers.clear()
    look = looking(process)
    for at_ms in (0, 400):
        process.written += calls(4, at_ms=at_ms)
        look.tick((at_ms + 400) * MS)
    assert (process.orders, process.logged) == ([], [])
