"""Captures of all tasks of a job at the same time: of the same steps, where the tasks step together.

The sidecar that is asked leads. It knows the other tasks on its host by the file that their collectors share, other
processes of its session, and those of other hosts if collectors there compare clocks with it (``far_captures``). It
asks each for a capture that begins at one moment some steps ahead, and says at the end which steps all have in common
and who missed. All record from that moment on, and the first step that counts begins a little later, when every
profiler runs. A task whose step ended just before that moment, where it ended just after it for the others, is one step
ahead: so each traces one step more than was asked for.

Tasks that share parameter servers without waiting for each other have no step in common; they trace the same time.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepscope.collector import host_members
from stepscope.collector.captures.asked import Aim
from stepscope.collector.captures.reason import USER
from stepscope.derive.cluster import same_steps
from stepscope.derive.view import SessionView
from stepscope.model.api.capture_ask import MAX_STEPS
from stepscope.model.session import clock_domain
from stepscope.report.words import plural
from stepscope.sidecar import capture_target, far_captures, joint_tasks, live_makers
from stepscope.sidecar.far_captures import MOST_NAMES, NOTE
from stepscope.sidecar.joint_tasks import SERVER, Task
from stepscope.tables.errors import CaptureError
from stepscope.tables.units import format_ns
from stepscope.wire import commands

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stepscope.collector.captures.asked import CaptureExtent
    from stepscope.collector.captures.reason import Reason
    from stepscope.collector.recorder import Recording
    from stepscope.collector.recording.drain import WorkerDrain
    from stepscope.derive.cluster.same_steps import SameSteps
    from stepscope.derive.steps.steps import Steps
    from stepscope.model.api.capture_ask import CaptureAsk
    from stepscope.model.api.status import LiveTask
    from stepscope.model.session.member import MemberInfo
    from stepscope.model.session.session import CaptureInfo
    from stepscope.sidecar.far_captures import FarTasks
    from stepscope.sidecar.live import Live
    from stepscope.tables.records import I64

AHEAD_NS = 5_000_000_000
"""How far ahead the common moment lies: the other sidecars look once a second and may have to analyse, and their
processes look twice a second. Processes are asked at once, and record all their steps from then on."""
LOOKS = 2
"""Times that an analysis took which it lies further ahead: on a full machine the others take as long for theirs."""
BEGIN_NS = 100_000_000
"""Time for every profiler to begin, with two steps more. Measured: 10 to 40 ms, once 115 ms on a loaded machine."""
SPARE = 1
"""Steps that each task traces beyond those that were asked for."""
ALIKE = 2.0
"""Factor between the steps of two tasks from which they are not the same steps."""
PATIENCE_NS = 45_000_000_000
"""How long the task that leads waits for the others once it is done."""
AIM_SECONDS = 60.0
UNSEEN = "with run or enable --clock-hosts on all hosts one request traces them too"


class JointCapture:
    """A joint capture, as one of its tasks sees it."""

    def __init__(self, ask: CaptureAsk, name: str = "") -> None:
        """``ask``: what the task that leads asks all others for; ``name``: that task, if it is this one."""
        self.ask = ask
        self.name = name
        self.worker = ""
        """Key of this session's process that was asked first."""
        self.tasks: list[Task] = []
        """The other tasks on this host, where this one leads."""
        self.far: FarTasks | None = None
        """Those on other hosts; None: they cannot be asked."""
        self.absent: frozenset[str] = frozenset()
        """Tasks that are not on this host."""
        self._runs = False
        """Whether runs of a session are traced, which hold what the servers did for them."""
        self.ahead_ns = 0
        """How far ahead it began when it was decided."""
        self.mine: CaptureInfo | None = None
        """Capture of the task that leads, once it is done."""
        self._deadline_ns = 0

    @property
    def leads(self) -> bool:
        """Whether this task was asked by a person."""
        return bool(self.name)

    @property
    def says(self) -> str:
        """What is going on before it begins."""
        names = ", ".join(task.name for task in self.tasks)
        others = " and ".join(filter(None, (names, "the tasks of other hosts" if self.far is not None else "")))
        return f"begins in {self.ahead_ns / 1e9:.1g} s, together with {others}"

    def aimed(self, asked: CaptureExtent) -> CaptureExtent:
        """A capture of this task, at the common moment."""
        ask = self.ask
        self.worker, self._runs = self.worker or asked.worker, asked.task is not None
        aim = Aim(begin_ns=ask.begin_ns, mark_ns=ask.mark_ns, seconds=AIM_SECONDS)
        made = replace(asked, aim=aim, at_once=True, joint=ask.joint, leads=self.leads and asked.worker == self.worker)
        if asked.task is not None:
            return made
        if not asked.anchors:
            seconds = (ask.mark_ns - ask.begin_ns + ask.span_ns) / 1e9 if ask.span_ns else asked.seconds
            return replace(made, seconds=seconds)
        steps = asked.steps
        if asked.step_ns and ask.span_ns and not 1 / ALIKE <= ask.span_ns / (asked.step_ns * steps) <= ALIKE:
            steps = math.ceil(ask.span_ns / asked.step_ns)
        return replace(made, steps=min(MAX_STEPS, steps + SPARE))

    def begin_others(self, recording: Recording, live: Live, now_ns: int) -> None:
        """Ask the other processes of this session; where another task leads, they are found now."""
        info = recording.drainer.workers[self.worker].info.member if self.worker in recording.drainer.workers else None
        if not self.leads and info is not None:
            self.tasks = [task for task in _processes(recording, info) if not (self._runs and task.serves)]
        for task in self.tasks:
            if task.entry is not None:
                continue
            try:
                asked = replace(
                    capture_target.resolve(self.ask, USER, recording, _known(live, task.worker)), worker=task.worker
                )
                recording.captures.begin(self.aimed(asked), now_ns)
            except CaptureError as error:
                task.missed = str(error)

    def takes(self, done: CaptureInfo) -> bool:
        """Whether a capture is that of another process of this session; it is then noted."""
        task = next((one for one in self.tasks if one.worker and one.worker == done.worker), None)
        if task is None or done.joint != self.ask.joint:
            return False
        joint_tasks.note(task, done, 0)
        return True

    def done(self, mine: CaptureInfo, now_ns: int) -> None:
        """The capture of the task that leads is done."""
        self.mine = mine
        self._deadline_ns = now_ns + PATIENCE_NS

    def complete(self, now_ns: int) -> bool:
        """Whether it is known what became of all others; looks at those that it is not known of."""
        for task in self.tasks:
            if task.open and task.entry is not None:
                joint_tasks.look(task, task.entry, self.ask.joint)
            if task.open and now_ns >= self._deadline_ns:
                task.missed = "it did not answer in time"
        return not any(task.open for task in self.tasks) and (now_ns >= self._deadline_ns or self._far_known())

    def waits(self) -> str:
        """Whom it waits for."""
        return f"waits for {', '.join(task.name for task in self._others() if task.open) or 'other hosts'}"

    def close(self) -> None:
        """Ask no more."""
        if self.far is not None:
            self.far.close()

    def _others(self) -> list[Task]:
        """The other tasks that are known by now."""
        here = {self.name, *(name for task in self.tasks for name in task.name.split(", "))}
        far = self.far.tasks() if self.far is not None else []
        return [*self.tasks, *(task for task in far if here.isdisjoint(task.name.split(", ")))]

    def _far_known(self) -> bool:
        """Whether it is known what became of the tasks on other hosts."""
        if self.far is None or self.far.settled():
            return True
        there = {name for task in self.far.tasks() if not task.open for name in task.name.split(", ")}
        return self.absent <= there

    def summary(self, recording: Recording, remark: str) -> str:
        """Which steps all have in common, who missed, and the remark on this task's capture; who missed is noted in the
        session.
        """
        origin_ns, mine = recording.manifest.origin_monotonic_ns, self.mine
        others = self._others()
        for task in others:
            if task.open:
                task.missed = f"{task.host or 'it'} did not answer in time"
        there = [task for task in others if not task.missed]
        missed = [f"{task.name} ({task.missed})" for task in others if task.missed]
        why = self.far.why() if self.far is not None else f"not measured on this host; {UNSEEN}"
        missed += [f"{name} ({why})" for name in _absent(recording, self.name, others)]
        if missed:
            recording.note(NOTE, f"not in the joint capture of {self.name}: {', '.join(missed)}")
        ends = {self.name: np.array(mine.ends_ns if mine is not None else (), np.int64) + origin_ns}
        ends |= {task.name: task.ends + origin_ns if task.worker else task.ends for task in there}
        unsure = {task.name: task.unsure_ns for task in there}
        said = [
            common(ends, unsure, serves=_serves(recording)),
            f"missed: {', '.join(missed)}" if missed else "",
            remark,
        ]
        return "; ".join(filter(None, said))


def common(ends: Mapping[str, I64], unsure: Mapping[str, int], *, serves: bool) -> str:
    """What the tasks of a joint capture have in common, in words.

    Args:
        ends: by task, begin of its first step and end of each; empty where it traced no whole steps.
        unsure: how far these may be off, in nanoseconds; not named: not at all.
        serves: whether parameter servers are tasks of the job.
    """
    names, stepping = list(ends), {name: times for name, times in ends.items() if len(times) > 1}
    if serves or len(stepping) <= 1:
        if len(names) <= 1:
            return f"of {names[0]} alone"
        why = ": tasks of a job with parameter servers have no steps in common" if serves else ""
        return f"the same time of {', '.join(names)}{why}"
    first = next(iter(stepping.values()))
    known = int(same_steps.MAX_APART * float(np.median(np.diff(first))))
    vague = [name for name in stepping if unsure.get(name, 0) > known]
    same = same_steps.of({name: times for name, times in stepping.items() if name not in vague})
    said = [_same(same, stepping)] if len(same.first) > 1 else []
    if vague:
        bound = format_ns(max(unsure[name] for name in vague))
        said.append(f"the same time of {', '.join(vague)}: the clock of the host is only known to {bound}")
    if same.apart:
        said.append(f"the same time of {', '.join(same.apart)}, whose steps do not end with those of {names[0]}")
    rest = [name for name in names if name not in stepping]
    if rest:
        said.append(f"the same time of {', '.join(rest)}, without steps")
    return "; ".join(said)


def _same(same: SameSteps, ends: dict[str, I64]) -> str:
    names = ", ".join(same.first)
    if same.count:
        return f"the same {plural(same.count, 'step')} of {names}"
    late = max(same.first, key=lambda name: int(ends[name][0]))
    over = min(same.first, key=lambda name: int(ends[name][-1]))
    apart = format_ns(max(0, int(ends[late][0] - ends[over][-1])))
    return f"no step is the same of all of {names}: {late} began to record {apart} after {over} had ended"


def elsewhere(recording: Recording) -> str:
    """What a capture of this task lacks, in words: tasks of its job that are not on this host; "": none is known."""
    mine = next((info for _, info in members(recording)), None)
    if mine is None or mine.tasks <= 1 or not mine.job_id:
        return ""
    here = {info.name for _, info in members(recording)}
    try:
        here.update(name for entry in host_members.running(mine.job_id, recording.session) for name in entry.names)
    except OSError:  # the file is somebody else's: what it holds is not known
        return ""
    names = [name for name in mine.names if name not in here and not name.startswith(SERVER)]
    if not names:
        return ""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"not in it: {', '.join(names[:MOST_NAMES])}{more} (not measured on this host; {UNSEEN})"


def refusal(ask: CaptureAsk, recording: Recording) -> str:
    """Why this task cannot take part in a joint capture that another one leads; "" if it can, or it is none."""
    mine = next((info for _, info in members(recording)), None)
    same = mine is not None and ask.clock == _clock(mine)
    return "its clock is not that of the task that was asked" if ask.joint and not same else ""


def lead(
    ask: CaptureAsk, by: Reason, recording: Recording, live: Live, now_ns: int, took_ns: int
) -> JointCapture | None:
    """Ask the other tasks of the job for the same steps; None if there are none that can be asked.

    Args:
        ask: what a person asks of this task.
        by: who asks.
        recording: of this task.
        live: what is known of its steps.
        now_ns: this moment.
        took_ns: what an analysis took just now; 0: there was none.

    Raises:
        CaptureError: nothing can be captured of this task.
    """
    asked = capture_target.resolve(ask, by, recording, live)
    mine = recording.drainer.workers[asked.worker].info.member
    tasks = _others(recording, asked, mine)
    absent = frozenset(_absent(recording, mine.name, tasks, servers=asked.task is None)) if mine is not None else ()
    hosts = bool(absent) and far_captures.possible(recording)
    if mine is None or not (tasks or hosts):
        return None
    ahead_ns = AHEAD_NS + LOOKS * took_ns
    begin_ns = now_ns + ahead_ns
    joint = msgspec.structs.replace(
        ask,
        id=commands.new_id(),
        every_s=0.0,
        count=0,
        wait_s=0.0,
        force=True,
        begin_ns=begin_ns,
        mark_ns=begin_ns + BEGIN_NS + 2 * asked.step_ns,
        span_ns=asked.steps * asked.step_ns if asked.anchors and asked.task is None else 0,
        clock=_clock(mine),
    )
    joint = msgspec.structs.replace(joint, joint=joint.id)
    found = JointCapture(joint, mine.name)
    found.tasks, found.ahead_ns = tasks, ahead_ns
    joint_tasks.ask_all(tasks, joint)
    if hosts:
        found.absent = frozenset(absent)
        found.far = far_captures.begin(recording, mine.job_id, joint, servers=asked.task is None)
    return found


def _others(recording: Recording, asked: CaptureExtent, mine: MemberInfo | None) -> list[Task]:
    """The other tasks of the job on this host."""
    if mine is None or mine.tasks <= 1 or not mine.job_id:
        return []
    tasks = _processes(recording, mine)
    try:
        entries = host_members.running(mine.job_id, recording.session)
    except OSError as error:
        recording.note(NOTE, f"other members of the job on this host cannot be found: {error}")
        entries = ()
    tasks += joint_tasks.of_entries(entry for entry in entries if mine.name not in entry.names)
    if asked.task is not None:  # a traced run of a session holds what the servers did for it
        tasks = [task for task in tasks if not task.serves]
    return tasks


def _processes(recording: Recording, mine: MemberInfo) -> list[Task]:
    """The other tasks of the job that are processes of this session."""
    here: dict[str, WorkerDrain] = {}
    for worker, info in members(recording):
        if info.job_id == mine.job_id and info.name != mine.name:
            known = here.get(info.name)
            if known is None or worker.recent.records > known.recent.records:  # a child may be the same task
                here[info.name] = worker
    return [Task(name=name, worker=worker.key) for name, worker in here.items()]


def members(recording: Recording) -> Iterator[tuple[WorkerDrain, MemberInfo]]:
    """Running processes of this session that are tasks of a cluster."""
    for worker in recording.drainer.workers.values():
        if not worker.closed and worker.info.member is not None:
            yield worker, worker.info.member


def _clock(info: MemberInfo) -> str:
    return clock_domain.key(info.boot_id, info.time_namespace)


def _serves(recording: Recording) -> bool:
    return any(SERVER in info.jobs for _, info in members(recording))


def _absent(recording: Recording, mine: str, tasks: Iterable[Task], *, servers: bool = False) -> list[str]:
    """Tasks of the job that are not among these, with ``servers`` parameter servers too."""
    info = next((info for _, info in members(recording) if info.name == mine), None)
    known = {mine, *(name for task in tasks for name in task.name.split(", "))}
    names = info.names if info is not None else ()
    return [name for name in names if name not in known and (servers or not name.startswith(SERVER))]


class _OneProcess(Struct, frozen=True, kw_only=True):
    """What is known of the steps of one process of the session (a ``capture_target.KnownJob``)."""

    steps: Steps | None
    calls: frozenset[tuple[str, int, int]]

    def calls_of_steps(self) -> frozenset[tuple[str, int, int]]:
        """The calls that make its steps."""
        return self.calls

    def calls_of_tasks(self) -> list[tuple[LiveTask, list[tuple[str, int, int]]]]:
        """None: it is not asked for by task."""
        return []


def _known(live: Live, key: str) -> _OneProcess:
    session = live.session()
    view = SessionView(replace(session, workers=[w for w in session.workers if w.info.key == key]))
    makers = live_makers.of(view)
    return _OneProcess(steps=view.steps, calls=makers[0][1] if makers else frozenset())
