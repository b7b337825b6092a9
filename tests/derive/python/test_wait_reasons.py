"""What a look at a thread means."""

from __future__ import annotations

import pytest

from stepscope.derive.python.stack_samples import Sample, Spot
from stepscope.derive.python.wait_reasons import reason, waits_in_lock
from stepscope.model.log.waits import WaitSeen

QUEUE = Spot(file="/usr/lib/python3.11/queue.py", function="Queue.get", line=171, own=False)
JOIN = Spot(file="/usr/lib/python3.11/threading.py", function="Thread.join", line=1119, own=False)
THEIRS = Spot(file="/usr/lib/python3.11/site-packages/lib/queue.py", function="Queue.get", line=1, own=False)
SOURCE = "import numpy as np\nwith lock:\n    c = a @ b\n"


def own(line: int) -> Spot:
    """A line of the user's file."""
    return Spot(file="/job/train.py", function="main", line=line, own=True)


def sample(call: str, kind: str = "", *, leaf: Spot | None = None) -> Sample:
    """A sample of a thread that was looked at; by default on line 3."""
    return Sample(at=1, weight_ns=1, component="", frames=(leaf or own(3),), wait=WaitSeen(id=1, call=call, kind=kind))


@pytest.mark.parametrize(
    ("taken", "expected"),
    [
        (sample("running"), "runs"),
        (sample("gil"), "gil"),
        (sample("sleep"), "sleep"),
        (sample("pwrite64", "file"), "file"),
        (sample("poll", "socket"), "socket"),
        (sample("recvfrom", "client"), "client"),
        (sample("accept4", "socket"), "client"),
        (sample("wait4", "process"), "process"),
        (sample("ioctl", "device"), "other"),
        (sample("page-fault"), "other"),
        (sample("futex", leaf=QUEUE), "lock"),
        (sample("futex", leaf=THEIRS), "native"),
        (sample("futex", leaf=own(2)), "lock"),  # the line takes a lock
        (sample("futex"), "native"),  # it multiplies: threads of a library
        (Sample(at=1, weight_ns=1, component="", frames=(own(3),)), "unknown"),
    ],
)
def test_reason(taken: Sample, expected: str) -> None:
    """A futex is a lock of Python's only where a frame or the line says so; anything else says what it is."""
    assert reason(taken, {"/job/train.py": SOURCE}.get) == expected


def test_a_wait_for_the_end_of_a_thread_is_no_wait_for_its_work() -> None:
    """Who joins a thread does not wait for what the step makes."""
    assert [waits_in_lock(sample("futex", leaf=leaf)) for leaf in (QUEUE, JOIN)] == [True, False]
