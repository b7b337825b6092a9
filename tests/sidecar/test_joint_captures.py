"""What each task of a job is asked for in a joint capture, and what is said of it at the end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from stepscope.collector.captures.asked import CaptureExtent
from stepscope.collector.captures.reason import USER
from stepscope.model.api.capture_ask import CaptureAsk
from stepscope.model.session.member import MemberInfo
from stepscope.sidecar import joint_captures
from stepscope.sidecar.joint_captures import BEGIN_NS, SPARE, JointCapture

if TYPE_CHECKING:
    from pathlib import Path

    from stepscope.collector.recorder import Recording

MS = 1_000_000
S = 1_000_000_000
ASK = CaptureAsk(id="j", joint="j", begin_ns=9 * S, mark_ns=9 * S + BEGIN_NS, span_ns=100 * MS, clock="c")
ASKED = CaptureExtent(by=USER, worker="10-1", steps=10, anchors=((2, 7),), step_ns=10 * MS)
"""A capture of ten steps of 10 ms."""
ENDS = np.arange(12, dtype=np.int64) * 10 * MS


def test_every_task_begins_at_one_moment_with_a_step_more() -> None:
    """The one that was asked leads; the others follow."""
    for name in ("worker 0", ""):
        made = JointCapture(ASK, name).aimed(ASKED)
        assert made.aim is not None
        assert (made.aim.begin_ns, made.aim.mark_ns) == (ASK.begin_ns, ASK.mark_ns)
        assert (made.steps, made.joint, made.leads, made.at_once) == (10 + SPARE, "j", bool(name), True)


def test_a_task_whose_steps_are_others_traces_the_same_time() -> None:
    """Steps of a hundredth of the time, a task that only serves, and runs of a session."""
    joint = JointCapture(ASK)
    assert joint.aimed(replace(ASKED, step_ns=MS // 10)).steps == 1_000
    assert joint.aimed(replace(ASKED, anchors=())).seconds == 0.2
    assert joint.aimed(replace(ASKED, task="train_op", steps=1)).steps == 1


def common(serves: bool = False, unsure_ns: int = 0, **ends: npt.NDArray[np.int64]) -> str:
    """What is said of some tasks, of which worker 1 is on another host."""
    named = {name.replace("_", " "): times for name, times in ends.items()}
    return joint_captures.common(named, {"worker 1": unsure_ns}, serves=serves)


def test_what_is_the_same_is_said() -> None:
    """Steps, or only the time, and of whom."""
    none = np.empty(0, np.int64)
    assert common(worker_0=ENDS, worker_1=ENDS[1:] + 1) == "the same 10 steps of worker 0, worker 1"
    apart = common(worker_0=ENDS, worker_1=ENDS + 5 * MS)
    assert apart == "the same time of worker 1, whose steps do not end with those of worker 0"
    assert common(worker_0=ENDS, worker_1=ENDS, ps_0=none).endswith("; the same time of ps 0, without steps")
    serves = common(serves=True, worker_0=none, worker_1=none)
    assert (
        serves == "the same time of worker 0, worker 1: tasks of a job with parameter servers have no steps in common"
    )


def test_steps_are_not_said_to_be_the_same_where_clocks_do_not_tell() -> None:
    """A bound of more than a quarter of a step says nothing about which step it is."""
    assert common(worker_0=ENDS, worker_1=ENDS, unsure_ns=2 * MS) == "the same 11 steps of worker 0, worker 1"
    vague = common(worker_0=ENDS, worker_1=ENDS, worker_2=ENDS, unsure_ns=3 * MS)
    assert vague == (
        "the same 11 steps of worker 0, worker 2; "
        "the same time of worker 1: the clock of the host is only known to 3 ms"
    )


def test_a_task_that_reads_another_clock_takes_no_part() -> None:
    """Its moment would be another one; a request of one task is none of a joint capture."""
    info = MemberInfo(launcher="TF_CONFIG", role="worker", tasks=2, size=2, rank=0, job_id="d", boot_id="b")
    worker = SimpleNamespace(closed=False, info=SimpleNamespace(member=info))
    recording = cast("Recording", SimpleNamespace(drainer=SimpleNamespace(workers={"10-1": worker})))
    assert "its clock" in joint_captures.refusal(ASK, recording)
    assert not joint_captures.refusal(CaptureAsk(id="1"), recording)


def test_tasks_that_are_not_on_this_host_are_named(tmp_path: Path) -> None:
    """A capture of a task alone lacks them; servers are in a traced run, and those on this host could be asked."""
    jobs = {"ps": 1, "worker": 3}
    info = MemberInfo(launcher="program", role="worker", tasks=4, size=3, rank=0, job_id=str(tmp_path), jobs=jobs)

    def said(*names: int) -> str:
        workers = {
            str(n): SimpleNamespace(closed=False, info=SimpleNamespace(member=msgspec.structs.replace(info, index=n)))
            for n in names
        }
        recording = SimpleNamespace(drainer=SimpleNamespace(workers=workers), session=tmp_path)
        return joint_captures.elsewhere(cast("Recording", recording))

    assert said(0).startswith("not in it: worker 1, worker 2 (not measured on this host")
    assert said(0, 1).startswith("not in it: worker 2 (")
    assert said(0, 1, 2) == ""
