"""The joint captures of one recording: those that it leads, and its part in those that others lead."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from stepscope.collector.captures.reason import USER
from stepscope.sidecar import capture_target, joint_captures
from stepscope.sidecar.joint_captures import JointCapture
from stepscope.tables.errors import CaptureError

if TYPE_CHECKING:
    from stepscope.collector.captures.asked import CaptureExtent
    from stepscope.collector.recorder import Recording
    from stepscope.model.api.capture_ask import CaptureAsk
    from stepscope.model.api.status import LiveCapture
    from stepscope.model.session.session import CaptureInfo
    from stepscope.sidecar.live import Live
    from stepscope.sidecar.wanted_capture import WantedCapture

FRESH_NS = 10_000_000_000
"""An analysis of that age says well enough what the steps are."""


class JointParts:
    """Joint captures among the captures of a recording (``sidecar.capturing``)."""

    def __init__(self, recording: Recording, live: Live) -> None:
        """Begin without any."""
        self._recording = recording
        self._live = live
        self._done: list[tuple[JointCapture, LiveCapture]] = []
        """Captures that are done here, and wait for those of the other tasks."""
        self._followed: list[JointCapture] = []
        """Those that another task leads, of which other processes of this session are not done."""

    def refusal(self, ask: CaptureAsk) -> str:
        """Why this task cannot take part in a joint capture; "" if it can, or it is none."""
        return joint_captures.refusal(ask, self._recording)

    def accept(self, wanted: WantedCapture, now_ns: int) -> None:
        """Another task leads: this one begins when it does, and has no time for an analysis then."""
        wanted.joint = JointCapture(wanted.ask)
        self._live.refresh(now_ns, FRESH_NS)

    def lead(self, wanted: WantedCapture, now_ns: int) -> bool:
        """Whether the job has other tasks, which are asked for the same steps: it begins later, when they do."""
        if not self._possible(wanted):
            return False
        wanted.ask = msgspec.structs.replace(wanted.ask, task="")
        began_ns = time.monotonic_ns()
        self._live.refresh(now_ns, FRESH_NS if self._live.steps is not None else 0)
        at_ns = time.monotonic_ns()
        try:
            wanted.joint = joint_captures.lead(
                wanted.ask, wanted.by, self._recording, self._live, at_ns, at_ns - began_ns
            )
        except CaptureError:  # said when the capture is to begin, which is now
            return False
        if wanted.joint is not None:
            wanted.says = wanted.joint.says  # shown until the next look
        return wanted.joint is not None

    def _possible(self, wanted: WantedCapture) -> bool:
        """Whether it may be a capture of all tasks: what a person asks for, of the job's steps."""
        ask = wanted.ask
        if wanted.joint is not None or wanted.moment is not None or not wanted.by.person or ask.kind != "ops":
            return False
        several = any(info.tasks > 1 and info.job_id for _, info in joint_captures.members(self._recording))
        return several and not ask.alone and (not ask.task or self._of_steps(ask))

    def _of_steps(self, ask: CaptureAsk) -> bool:
        """Whether the task that is asked for is what makes the job's steps, which all tasks have."""
        try:
            named = capture_target.resolve(ask, USER, self._recording, self._live)
            steps = capture_target.resolve(msgspec.structs.replace(ask, task=""), USER, self._recording, self._live)
        except CaptureError:
            return False
        return (named.worker, named.anchors) == (steps.worker, steps.anchors) and bool(steps.anchors)

    def aimed(self, wanted: WantedCapture, asked: CaptureExtent) -> CaptureExtent:
        """A capture at the moment that all tasks share, if it is a joint one."""
        return wanted.joint.aimed(asked) if wanted.joint is not None else asked

    def begun(self, wanted: WantedCapture, now_ns: int) -> None:
        """The capture of one process has begun: ask the other processes of the session."""
        if wanted.joint is not None:
            wanted.joint.begin_others(self._recording, self._live, now_ns)

    def take(self, done: CaptureInfo, now: WantedCapture | None) -> bool:
        """Whether a capture is that of another process of this session, in the one being made, or just made."""
        self._followed = [joint for joint in self._followed if any(task.open for task in joint.tasks)]
        going = [*(joint for joint, _ in self._done), *self._followed]
        if now is not None and now.joint is not None:
            going.append(now.joint)
        return any(joint.takes(done) for joint in going)

    def finish(
        self, wanted: WantedCapture, done: CaptureInfo, shown: LiveCapture, now_ns: int
    ) -> tuple[LiveCapture, ...]:
        """What is published of a capture that is done: nothing yet, if it is not known what became of the others."""
        joint, wanted.joint = wanted.joint, None
        if joint is None and wanted.by.person and wanted.ask.kind == "ops" and not wanted.ask.alone:
            said = [shown.text, joint_captures.elsewhere(self._recording)]
            return (msgspec.structs.replace(shown, text="; ".join(filter(None, said))),)
        if joint is not None and not joint.leads:
            self._followed.append(joint)
        if joint is None or not joint.leads:
            return (shown,)
        joint.done(done, now_ns)
        self._done.append((joint, shown))
        return ()

    def results(self, now_ns: int, *, final: bool = False) -> list[LiveCapture]:
        """Captures of which it is known now what became of all tasks; ``final``: of all, with what is known."""
        ready = [pair for pair in self._done if pair[0].complete(now_ns) or final]
        self._done = [pair for pair in self._done if pair not in ready]
        for joint, _ in ready:
            joint.close()
        return [msgspec.structs.replace(one, text=joint.summary(self._recording, one.text)) for joint, one in ready]

    def going(self) -> list[LiveCapture]:
        """Those that wait for other tasks."""
        return [msgspec.structs.replace(one, state="tracing", text=joint.waits()) for joint, one in self._done]
