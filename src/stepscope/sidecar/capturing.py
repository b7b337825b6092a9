"""Decides when the next capture is made: asked for, by a schedule, or because a detector cannot decide without one.

What somebody asks for begins at once, unless earlier captures have overdrawn the budget, or the job still starts and
there are no steps to capture; what nobody waits for begins when the budget covers it. Detectors are served under
``run`` only: who enabled measuring for a whole environment has not agreed to traces.

A native window of a process that runs TensorFlow has an op trace over the same time, which tells the ops that generated
code works for: always where a person asks, else where the budget covers both. The steps that both slow down are in the
window's account; the op trace's account has only the cost of writing and reading it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from stepscope.collector.captures import budget
from stepscope.collector.captures.asked import CaptureExtent
from stepscope.collector.captures.reason import FIRST, SCHEDULE, STACKS, USER
from stepscope.diagnosis import capture_account
from stepscope.model.api.capture_ask import DEFAULT_STEPS, CaptureAsk
from stepscope.model.api.status import LiveCapture
from stepscope.model.session.session import ASKED
from stepscope.native.kernel import perf
from stepscope.native.windows import native_window
from stepscope.sidecar import capture_requests, capture_size, capture_target, first_look, moment_captures
from stepscope.sidecar.first_look import FirstLook
from stepscope.sidecar.joint_parts import FRESH_NS, JointParts
from stepscope.sidecar.triggers import repeated_calls
from stepscope.sidecar.wanted_capture import WantedCapture
from stepscope.tables.errors import CaptureError
from stepscope.wire.commands import REQUESTS_NAME, Inbox

if TYPE_CHECKING:
    from stepscope.collector.captures.reason import Reason
    from stepscope.collector.recorder import Captures, Recording
    from stepscope.model.session.session import CaptureInfo
    from stepscope.sidecar.live import Live

FIRST_COST_NS = 50_000_000
"""What a capture is expected to cost before there has been one: 10 steps of a small model."""
BESIDE_COST_NS = 300_000_000
"""What the op trace beside a native window is expected to cost before there has been one."""
BESIDE_SECONDS = 20.0
"""It lasts so long at most."""
BESIDE_MARGIN_S = 6.0
"""So much later than the window should be over it ends by itself: perf takes its time to start."""
MAX_TRIES = 3
"""For one detector: captures may fail."""
RETRY_NS = 30_000_000_000
REPEATS = 6
"""Calls of one thing that may be steps: four, and those that warm up."""
SHOWN = 16


class Capturing:
    """The captures of one recording. ``tick`` about once a second."""

    def __init__(self, recording: Recording, live: Live, now_ns: int) -> None:
        """Begin; the account opens at the session's start."""
        self._recording = recording
        self._live = live
        self._captures: dict[str, Captures] = {
            "ops": recording.captures,
            "native": recording.native,
            "syscalls": recording.system_calls,
            "memory": recording.memory,
            "python": recording.python,
        }
        self._wanted: list[WantedCapture] = []
        self._now: WantedCapture | None = None
        """Whose capture goes on."""
        self._beside = ""
        """Id of the op trace that goes on beside a native window."""
        self._beside_told = True
        """It knows that the window is over."""
        self._beside_cost_ns = BESIDE_COST_NS
        self._tracing = LiveCapture(request="")
        self._look = FirstLook(recording, live)
        self._joint = JointParts(recording, live)
        self._served: dict[Reason, int] = {}
        self._last_cost: dict[tuple[str, str], float] = {}
        """By kind of capture and by what the steps are: of an op trace per step, of a native window the whole."""
        self._past: deque[LiveCapture] = deque(maxlen=SHOWN)
        manifest = recording.manifest
        share = budget.stored(manifest.budget)
        spent = sum(capture.cost_ns for capture in manifest.captures)
        self._budget = budget.Budget(share, manifest.origin_monotonic_ns or now_ns, spent)
        try:
            self._inbox: Inbox | None = Inbox(str(recording.run / REQUESTS_NAME))
        except OSError:  # a full disk: nobody can ask
            self._inbox = None

    def tick(self, now_ns: int, state: str) -> None:
        """What is due at this moment."""
        if state != "running":
            self._past += self._joint.results(now_ns, final=True)
            self._tell_unmade(now_ns)
            return
        self._take_requests(now_ns)
        self._take_wanted(now_ns)
        for captures in self._captures.values():
            done = captures.poll(now_ns)
            if done is not None:
                self._finish(done, now_ns)
        if not self._beside_told and not self._recording.native.recording:
            self._beside_told = True
            self._recording.captures.enough()
        self._budget.book(self._recording.captures.read_due(now_ns))
        self._wanted += self._look.again(now_ns)
        for wanted in self._open():
            if wanted.moment is not None:
                wanted.moment.look(now_ns)
        if not self._recording.sampling.spare and not any(captures.busy for captures in self._captures.values()):
            self._begin_next(now_ns)
        self._past += self._joint.results(now_ns)
        self._show(now_ns)

    # -- what is asked -------------------------------------------------------------------------------------------

    def _take_requests(self, now_ns: int) -> None:
        if self._inbox is None or not self._inbox.changed():
            return
        requests, problems = self._inbox.take()
        for problem in problems:
            self._recording.note("DX117", f"invalid request for a capture: {problem}")
        for fields in requests:
            try:
                self._accept(msgspec.convert(fields, CaptureAsk), now_ns)
            except msgspec.ValidationError as error:
                self._recording.note("DX117", f"a request for a capture was ignored: {error}")

    def _accept(self, ask: CaptureAsk, now_ns: int) -> None:
        problem = capture_requests.problem(ask, len(self._wanted)) or self._joint.refusal(ask)
        if problem:
            self._past.append(LiveCapture(request=ask.id, asked_by=USER.word, state="failed", text=problem))
            return
        repeated = ask.every_s > 0 or ask.count > 1
        left = ask.count or (-1 if ask.every_s > 0 else 1)
        moment, by = moment_captures.of(ask, self._recording, self._live), SCHEDULE if repeated else USER
        wanted = WantedCapture(ask=ask, by=by, due_ns=now_ns, left=left, moment=moment)
        if ask.joint:
            self._joint.accept(wanted, now_ns)
        self._wanted.append(wanted)

    def _take_wanted(self, now_ns: int) -> None:
        """What detectors cannot decide without."""
        manifest = self._recording.manifest
        if manifest.mode not in ASKED or not self._budget.share:
            return
        waiting = {wanted.by for wanted in self._wanted}
        for wish in self._live.wanted:
            by, tries = wish.by, self._served.get(wish.by, 0)
            going = self._now is not None and self._now.by == by
            if (by.spare and self._asked_for(wish.kind)) or (wish.kind == "ops" and self._look.answers):
                continue
            if by not in waiting and not going and tries < MAX_TRIES and not self._profiled():
                due_ns = now_ns + tries * RETRY_NS
                ask = CaptureAsk(id=by.word, kind=wish.kind, wait_s=0.0, ops=by != STACKS)  # traced steps are others
                self._wanted.append(WantedCapture(ask=ask, by=by, due_ns=due_ns, left=1))

    def _asked_for(self, kind: str) -> bool:
        """Whether somebody has asked for a capture of this kind, whatever became of it."""
        made = self._recording.manifest.captures
        return any(one.ask.kind == kind for one in self._open()) or any(one.kind == kind for one in made)

    def _open(self) -> list[WantedCapture]:
        """What waits, and what is being captured."""
        return [*self._wanted, *([self._now] if self._now is not None else [])]

    def _profiled(self) -> bool:
        """Whether the user profiles: nobody asked for ours."""
        return any(worker.profiled for worker in self._recording.drainer.workers.values() if not worker.closed)

    # -- making them ---------------------------------------------------------------------------------------------

    def _begin_next(self, now_ns: int) -> None:
        for wanted in sorted(self._wanted, key=lambda w: (w.by != USER, w.due_ns)):
            if wanted.due_ns > now_ns or self._gave_up(wanted, now_ns) or self._must_wait(wanted, now_ns):
                continue
            absent = self._absent(wanted, now_ns)
            if absent and now_ns < wanted.until_ns:
                wanted.says = f"waiting up to {wanted.ask.wait_s:g} s for {absent}"
                continue
            early = wanted.moment.early(now_ns) if wanted.moment is not None else ""
            if early:
                wanted.says = early
                continue
            if self._joint.lead(wanted, now_ns):
                continue
            self._wanted.remove(wanted)
            if wanted.phase is None:
                self._live.refresh(now_ns, FRESH_NS if self._live.steps is not None else 0)
            elif not self._look.goes_on(wanted.phase, now_ns):
                continue
            known = wanted.phase or self._live
            try:
                asked = capture_target.resolve(self._sized(wanted, now_ns), wanted.by, self._recording, known)
                asked = replace(asked, at_once=True) if wanted.phase is not None else asked
                asked = wanted.moment.aimed(asked, now_ns) if wanted.moment is not None else asked
                asked = self._joint.aimed(wanted, asked)
                self._captures[wanted.ask.kind].begin(asked, now_ns)
                self._joint.begun(wanted, now_ns)
                self._trace_beside(wanted, asked, now_ns)
            except CaptureError as error:
                self._failed(wanted, str(error), now_ns)
                continue
            self._now = wanted
            self._tracing = LiveCapture(
                request=wanted.ask.id,
                asked_by=wanted.by.word,
                state="tracing",
                title=asked.title,
                number=wanted.made + 1,
            )
            self._tracing = moment_captures.shown(wanted.moment, self._tracing, aims_ns=now_ns)
            return

    def _gave_up(self, wanted: WantedCapture, now_ns: int) -> bool:
        """Whether what must happen in a capture has not happened in time."""
        if wanted.moment is None or not wanted.moment.over(now_ns):
            return False
        self._wanted.remove(wanted)
        self._failed(wanted, wanted.moment.gave_up(now_ns), now_ns)
        return True

    def _trace_beside(self, wanted: WantedCapture, window: CaptureExtent, now_ns: int) -> None:
        """Begin an op trace over a native window that has begun, where there may be one."""
        worker = self._recording.drainer.workers.get(window.worker)
        if wanted.ask.kind != "native" or not wanted.ask.ops or worker is None:
            return
        if "tensorflow" not in worker.info.frameworks or not self._covers_both(wanted, now_ns):
            return
        seconds = (window.seconds or native_window.SECONDS) + perf.COUNT_SECONDS + BESIDE_MARGIN_S
        beside = CaptureExtent(
            by=wanted.by,
            worker=window.worker,
            steps=1,
            title="beside native stacks",
            seconds=min(seconds, BESIDE_SECONDS),
            keep_raw=wanted.ask.keep_raw,
        )
        why = "the user's own profiler is running" if self._profiled() else ""
        try:
            self._beside = self._recording.captures.begin(beside, now_ns) if not why else ""
            self._beside_told = bool(why)
        except CaptureError as error:
            why = str(error)
        if why:
            self._recording.note("DX118", f"no op trace with the native stacks: {why}")

    def _covers_both(self, wanted: WantedCapture, now_ns: int) -> bool:
        """Whether an op trace may cost what it will, beside a window."""
        if wanted.by == USER:
            return True
        step_ns = capture_size.step_ns(self._live.steps)
        steps = native_window.SECONDS * 1e9 / step_ns if step_ns else 0.0
        known = self._live.events_per_step is not None
        seen = capture_size.cost_ns(round(steps), self._each_ns()) if known else 0
        beside = max(self._beside_cost_ns, seen)
        return self._budget.wait_ns(now_ns, self._expected_ns(wanted.ask) + beside) == 0

    def _must_wait(self, wanted: WantedCapture, now_ns: int) -> bool:
        """Whether the budget does not allow it yet."""
        expected = self._expected_ns(wanted.ask) if wanted.by != USER else 0
        if self._sizes(wanted):
            least = capture_size.cost_ns(self._steps_of(wanted) if wanted.whole else 1, self._each_ns(wanted))
            wanted.dear = least > FIRST_COST_NS
            expected = max(FIRST_COST_NS, least) if wanted.phase is None else least
        wait_ns = 0 if wanted.ask.force else self._budget.wait_ns(now_ns, expected)
        if wanted.phase is not None and self._budget.ahead_ns(now_ns) >= expected:
            wait_ns = 0
        share = f"{100 * self._budget.share:g} %"
        if wait_ns >= budget.FOREVER_NS:
            wanted.says = "--budget 0 allows no captures"
        elif wait_ns:
            why = "one step is expected to cost more than" if wanted.dear else "captures have used up"
            wanted.says = f"waits {wait_ns / 1e9:.0f} s: {why} the budget of {share}"
        return wait_ns > 0

    def _sizes(self, wanted: WantedCapture) -> bool:
        """Whether it has as many steps as the budget covers."""
        return wanted.ask.kind == "ops" and not wanted.by.person

    def _steps_of(self, wanted: WantedCapture) -> int:
        return wanted.ask.steps or DEFAULT_STEPS

    def _each_ns(self, wanted: WantedCapture | None = None) -> float:
        """What a traced step costs: the dearest so far, before there was one by what the graphs of steps hold."""
        known = [cost for (kind, _), cost in self._last_cost.items() if kind == "ops"]
        if wanted is not None and wanted.phase is not None:
            return max(*known, 0.0, capture_size.step_cost_ns(wanted.phase.events, wanted.phase.steps))
        return max(known) if known else capture_size.step_cost_ns(self._live.events_per_step, self._live.steps)

    def _sized(self, wanted: WantedCapture, now_ns: int) -> CaptureAsk:
        """What is asked, with as many steps as the budget covers."""
        if not self._sizes(wanted):
            return wanted.ask
        left = self._budget.balance_ns if wanted.phase is None else self._budget.ahead_ns
        steps = capture_size.affordable(left(now_ns), self._each_ns(wanted), self._steps_of(wanted))
        return msgspec.structs.replace(wanted.ask, steps=max(1, steps))

    def _tell_unmade(self, now_ns: int) -> None:
        """The job ends: which captures were too dear for it, and how to have them."""
        if any(wanted.dear and not wanted.whole for wanted in self._wanted):
            cost_ns, age_ns = capture_size.cost_ns(1, self._each_ns()), self._budget.age_ns(now_ns)
            self._recording.note("DX118", capture_account.unmade(cost_ns, age_ns, self._budget.share))
        self._wanted = [w for w in self._wanted if not w.dear]

    def _absent(self, wanted: WantedCapture, now_ns: int) -> str:
        """What it is to capture and is not there yet, "" where it is; the job is analysed where that may tell."""
        wanted.until_ns = wanted.until_ns or now_ns + int(wanted.ask.wait_s * 1e9)
        workers = [w for w in self._recording.drainer.workers.values() if not w.closed]
        if now_ns < wanted.until_ns and any(repeated_calls.count(worker) >= REPEATS for worker in workers):
            self._live.refresh(now_ns, FRESH_NS)
        return capture_target.absent(wanted.ask, self._recording, self._live)

    def _expected_ns(self, ask: CaptureAsk) -> int:
        """By the dearest of its kind so far."""
        known = [cost for (kind, _), cost in self._last_cost.items() if kind == ask.kind]
        if not known:
            return FIRST_COST_NS
        return int(max(known) * ((ask.steps or DEFAULT_STEPS) if ask.kind == "ops" else 1))

    def _finish(self, done: CaptureInfo, now_ns: int) -> None:
        self._budget.book(done.cost_ns)
        if done.id == self._beside:
            self._beside, self._beside_cost_ns = "", done.cost_ns or self._beside_cost_ns
            return
        if self._joint.take(done, self._now):
            return
        own = done.asked_by == FIRST.word and not done.request
        wanted, self._now = (None, self._now) if own else (self._now, None)
        if done.outcome == "done" and (done.steps or done.kind != "ops"):
            self._last_cost[done.kind, done.title] = done.cost_ns / (done.steps if done.kind == "ops" else 1)
        if wanted is None:  # an earlier sidecar asked for it, or the job took it by itself
            self._past.append(capture_account.live(done))
            if own and done.outcome == "done":
                self._look.made(done, now_ns)
                self._serve_others("ops")
                self._want_more(done, first_look.once_more(now_ns), now_ns)
            return
        if done.outcome != "done":
            if wanted.moment is not None and wanted.moment.again(done):
                self._wanted.append(wanted)
                return
            self._failed(wanted, done.text, now_ns)
            return
        wanted.made += 1
        shown = moment_captures.shown(wanted.moment, capture_account.live(done, wanted.made))
        self._past += self._joint.finish(wanted, done, shown, now_ns)
        self._served[wanted.by] = MAX_TRIES
        if not wanted.by.person:
            self._serve_others(wanted.ask.kind)
        self._again(wanted, now_ns)
        if self._sizes(wanted) and self._look.takes(done, wanted, now_ns):
            self._want_more(done, wanted, now_ns)

    def _want_more(self, done: CaptureInfo, after: WantedCapture, now_ns: int) -> None:
        """Ask for all steps, once they are earned, if a capture had fewer than half of them."""
        steps = after.ask.steps or DEFAULT_STEPS
        if 2 * done.steps < steps:
            more = msgspec.structs.replace(after.ask, steps=steps)
            again = WantedCapture(ask=more, by=after.by, due_ns=now_ns, left=1, whole=True, phase=after.phase)
            self._wanted.append(again)

    def _serve_others(self, kind: str) -> None:
        """Detectors look at the same steps: what one of them asked for answers all who ask by now."""
        self._served.update((wish.by, MAX_TRIES) for wish in self._live.wanted if wish.kind == kind)
        self._wanted = [w for w in self._wanted if w.by.person or w.ask.kind != kind]

    def _failed(self, wanted: WantedCapture, why: str, now_ns: int) -> None:
        failed = LiveCapture(request=wanted.ask.id, asked_by=wanted.by.word, state="failed", text=why)
        failed = moment_captures.shown(wanted.moment, failed)
        self._past.append(msgspec.structs.replace(failed, number=wanted.made + 1))
        self._served[wanted.by] = self._served.get(wanted.by, 0) + 1
        if wanted.by == SCHEDULE:
            self._again(wanted, now_ns)

    def _again(self, wanted: WantedCapture, now_ns: int) -> None:
        wanted.left -= wanted.left > 0
        if wanted.left:
            wanted.due_ns = now_ns + int(wanted.ask.every_s * 1e9)
            wanted.says, wanted.until_ns = "", 0
            self._wanted.append(wanted)

    def _show(self, now_ns: int) -> None:
        waiting = [
            moment_captures.shown(
                w.moment, LiveCapture(request=w.ask.id, asked_by=w.by.word, text=w.says, number=w.made + 1)
            )
            for w in self._wanted[:SHOWN]
            if not w.made
        ]
        going = [*self._joint.going(), *([self._tracing] if self._now is not None else [])]
        self._live.show_captures((*self._past, *going, *waiting), self._budget.ratio(now_ns))
