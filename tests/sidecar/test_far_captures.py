"""How a request of another host reaches the tasks of this one, and how those of other hosts are told of."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import msgspec
import numpy as np
import pytest
from tests.collector.host_entries import member

from stepscope.collector import host_members
from stepscope.collector.other_hosts.asking import FarTask
from stepscope.collector.other_hosts.message import JointRequest
from stepscope.launcher import rundir
from stepscope.model.api.capture_ask import CaptureAsk
from stepscope.model.session.member import MemberInfo
from stepscope.model.session.session import CaptureInfo, Manifest, WorkerInfo
from stepscope.sidecar import joint_captures
from stepscope.sidecar.far_captures import FarTasks, TasksHere
from stepscope.sidecar.joint_captures import JointCapture
from stepscope.tables import layout
from stepscope.wire.commands import REQUESTS_NAME

if TYPE_CHECKING:
    from stepscope.collector.host_members import MemberSession
    from stepscope.collector.other_hosts.asking import Asking
    from stepscope.collector.recorder import Recording

MS = 1_000_000
WANTED = JointRequest(joint="j", job="job", begin_ns=5_000 * MS, mark_ns=5_100 * MS, span_ns=100 * MS, steps=10)
ENDS = tuple(range(0, 120 * MS, 10 * MS))


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of members are in the test's folder."""
    monkeypatch.setattr(rundir, "temporary_directories", lambda: [tmp_path])


def entered(folder: Path, number: int, job: str, name: str) -> MemberSession:
    """A task of a job, whose sidecar takes requests."""
    entry = msgspec.structs.replace(member(folder, number), names=(name,))
    Path(entry.run, REQUESTS_NAME).mkdir()
    host_members.register(job, entry, folder / "joint")
    return entry


def asked(entry: MemberSession) -> list[CaptureAsk]:
    """What its sidecar finds."""
    found = sorted(Path(entry.run, REQUESTS_NAME).glob("*.json"))
    return [msgspec.convert(json.loads(path.read_text()), CaptureAsk) for path in found]


def test_all_tasks_of_the_job_are_asked_and_no_others(tmp_path: Path) -> None:
    """Each as by its own user, at the moment of this host's clock; servers where they are wanted."""
    mine, also = entered(tmp_path, 1, "job", "worker 1"), entered(tmp_path, 2, "job", "ps 0")
    other = entered(tmp_path, 3, "another", "worker 1")
    assert TasksHere().lead(msgspec.structs.replace(WANTED, job="unknown")) == "no task of the job is measured there"
    assert TasksHere().lead(msgspec.structs.replace(WANTED, joint="k", servers=False)) == ""
    assert (len(asked(mine)), asked(also), asked(other)) == (1, [], [])
    assert TasksHere().lead(WANTED) == ""
    (ask,) = asked(also)
    assert (ask.id, ask.joint, ask.steps, ask.force) == ("j", "j", 10, True)
    assert (ask.begin_ns, ask.mark_ns, ask.span_ns) == (WANTED.begin_ns, WANTED.mark_ns, WANTED.span_ns)
    assert ask.clock
    assert asked(other) == []


def test_what_became_of_them_is_read_from_their_sessions(tmp_path: Path) -> None:
    """One is traced, one takes no requests, one has ended; another collector of the host can say it too."""
    done, deaf, gone = (entered(tmp_path, number, "job", f"worker {number}") for number in (1, 2, 3))
    Path(deaf.run, REQUESTS_NAME).rmdir()
    tasks = TasksHere()
    assert tasks.lead(WANTED) == ""
    capture = CaptureInfo(id="c", joint="j", outcome="done", steps=11, ends_ns=ENDS)
    manifest = Manifest(origin_monotonic_ns=7, captures=(capture,))
    Path(done.session).mkdir()
    Path(done.session, layout.MANIFEST).write_bytes(msgspec.json.encode(manifest))
    rundir.remove(Path(gone.run))
    one, two, three = tasks.look("job", "j")
    assert (one.outcome, one.steps, one.ends) == ("done", 11, tuple(end + 7 for end in ENDS))
    assert (two.outcome, two.text[:31]) == ("missed", "its sidecar takes no requests: ")
    assert (three.outcome, three.text) == ("missed", "it has ended")
    assert TasksHere().look("job", "j")[0] == one


def test_several_tasks_of_one_session_are_asked_at_once_and_told_apart(tmp_path: Path) -> None:
    """Each by its own process."""
    entry = msgspec.structs.replace(entered(tmp_path, 1, "job", "worker 1"), names=("worker 1", "worker 2"))
    host_members.register("job", entry, tmp_path / "joint")
    tasks = TasksHere()
    assert tasks.lead(WANTED) == ""
    assert len(asked(entry)) == 1
    workers = tuple(
        WorkerInfo(key=f"k{n}", pid=n, member=MemberInfo(launcher="TF_CONFIG", role="worker", index=n)) for n in (1, 2)
    )
    captures = (
        CaptureInfo(id="a", joint="j", worker="k2", outcome="failed", text="no space"),
        CaptureInfo(id="b", joint="j", worker="k1", outcome="done", steps=11, ends_ns=ENDS),
    )
    Path(entry.session).mkdir()
    manifest = Manifest(workers=workers, captures=captures)
    Path(entry.session, layout.MANIFEST).write_bytes(msgspec.json.encode(manifest))
    said = [(task.name, task.outcome, task.text, task.steps) for task in tasks.look("job", "j")]
    assert said == [("worker 1", "done", "", 11), ("worker 2", "missed", "no space", 0)]


class Asked:
    """An ``Asking`` that knows all it will."""

    def __init__(self, *tasks: FarTask, silent: dict[str, str] | None = None, settled: bool = True) -> None:
        self._tasks, self._silent, self._settled = tasks, silent or {}, settled
        self.closed = False

    def tasks(self) -> list[FarTask]:
        """Those of the hosts that answered."""
        return list(self._tasks)

    def silent(self) -> dict[str, str]:
        """The other hosts."""
        return self._silent

    def settled(self) -> bool:
        """Whether nothing more comes."""
        return self._settled

    def close(self) -> None:
        """Asked no more."""
        self.closed = True


def far(name: str, outcome: str, text: str = "", ends: tuple[int, ...] = (), unsure_ns: int = 0) -> FarTask:
    """A task on another host."""
    return FarTask(name=name, host="b:7331", outcome=outcome, text=text, steps=11, ends=ends, unsure_ns=unsure_ns)


def summary(asking: Asked) -> tuple[str, list[str]]:
    """What worker 0 of three says of a joint capture, and what its session is to note."""
    info = MemberInfo(launcher="TF_CONFIG", role="worker", tasks=3, size=3, rank=0, job_id="job", boot_id="b")
    worker = SimpleNamespace(closed=False, info=SimpleNamespace(member=info))
    notes: list[str] = []
    recording = SimpleNamespace(
        drainer=SimpleNamespace(workers={"1": worker}),
        manifest=Manifest(),
        note=lambda _code, text: notes.append(text),
    )
    joint = JointCapture(CaptureAsk(id="j", joint="j"), "worker 0")
    joint.far, joint.absent = FarTasks(cast("Asking", asking)), frozenset({"worker 1", "worker 2"})
    joint.done(CaptureInfo(id="c", outcome="done", steps=11, ends_ns=ENDS), 0)
    assert joint.complete(0) is asking.settled()
    said = joint.summary(cast("Recording", recording), "")
    joint.close()
    assert asking.closed
    return said, notes


def test_steps_of_other_hosts_are_the_same_by_our_clock() -> None:
    """All that are known are counted."""
    ends = ENDS[1:]
    said, notes = summary(Asked(far("worker 1", "done", ends=ends), far("worker 2", "done", ends=ENDS)))
    assert said == "the same 10 steps of worker 0, worker 1, worker 2"
    assert notes == []


def test_who_is_missing_on_other_hosts_is_named_with_the_reason() -> None:
    """A task that ended, one that answers no more, and a host that was silent; an old answer for this task is none."""
    ended = far("worker 1", "missed", "the process ended first")
    said, notes = summary(Asked(ended, far("worker 0", "done", ends=ENDS), silent={"c:7331": "no answer"}))
    assert said == (
        "of worker 0 alone; missed: worker 1 (the process ended first), "
        "worker 2 (on none of the hosts that answered; c:7331: no answer)"
    )
    assert len(notes) == 1
    said, _ = summary(Asked(far("worker 1", ""), far("worker 2", "done", ends=ENDS), settled=False))
    assert said == "the same 11 steps of worker 0, worker 2; missed: worker 1 (b:7331 did not answer in time)"


def test_a_clock_that_is_not_known_well_tells_no_steps() -> None:
    """The time is the same."""
    vague = far("worker 1", "done", ends=ENDS, unsure_ns=5 * MS)
    said, _ = summary(Asked(vague, far("worker 2", "done", ends=ENDS)))
    assert said.startswith("the same 11 steps of worker 0, worker 2; the same time of worker 1: the clock of the host")
    assert joint_captures.common({"worker 0": np.array(ENDS)}, {}, serves=False) == "of worker 0 alone"
