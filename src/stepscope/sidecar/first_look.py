"""Checks the first look, which a job has taken by itself: did it show the job's own steps, and does it still?

The process elected them within a second (``agent.capture.first_look``): it may have seen an evaluation, a warm-up, or a
prediction next to the training. Whether it did shows in the next analysis, which is run early if other calls repeat
instead of the traced ones. A look at the right steps answers all who would ask for an op trace; a look at others is
repeated once, within the budget.

A look at the right steps says nothing of a later phase: where the traced calls have ceased and others take the time,
these are captured as well (``later_phase``), whichever of them will have been the job's steps in the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.collector.captures import reason
from stepscope.collector.captures.reason import FIRST
from stepscope.model.api.capture_ask import CaptureAsk
from stepscope.sidecar import capture_size, capture_target, later_phase
from stepscope.sidecar.wanted_capture import WantedCapture
from stepscope.tables.errors import CaptureError
from stepscope.wire.kinds import Trait, kinds_with

if TYPE_CHECKING:
    from stepscope.collector.recorder import Recording
    from stepscope.model.session.session import CaptureInfo
    from stepscope.sidecar.later_phase import LaterPhase
    from stepscope.sidecar.live import Live

GONE_NS = 3_000_000_000
"""Time without one of the traced calls after which others may be the steps."""
OTHERS = 16
"""Calls of others that must have come meanwhile: an analysis needs as many to see steps."""
MAX_LOOKS = 3
"""Analyses that are run early for this."""
FRESH_NS = 10_000_000_000
OTHER_STEP = 2.0
"""Factor between the traced steps and the job's from which they are others, even of the same call."""
OTHER_WORK = frozenset({"evaluation", "prediction"})
"""Of steps that a job makes before it trains, or beside it."""
CEASED_NS = 500_000_000
"""Time without one of the traced calls after which a later phase is looked for, once a second; twice as long each time
that there was none."""
MAX_PHASES = 2
"""Later phases that are captured."""
OVER_STEPS = 4
"""Steps without a call after which a phase is over; two seconds at least."""
OVER_NS = 2_000_000_000
_STEPS = frozenset(map(int, kinds_with(Trait.STEP)))


def once_more(now_ns: int, phase: LaterPhase | None = None) -> WantedCapture:
    """Another look, by the sidecar."""
    ask = CaptureAsk(id=FIRST.word, wait_s=0.0)
    return WantedCapture(ask=ask, by=FIRST, due_ns=now_ns, left=1, phase=phase)


class _Ceased:
    """Whether the traced calls have ceased, and others repeat."""

    def __init__(self, patience_ns: int, others: int) -> None:
        self.patience_ns = patience_ns
        self._least = others
        self._counts = (0, 0)
        self._since_ns = 0
        """The later of when the traced calls had grown last, and of the last look."""

    def begin(self, counts: tuple[int, int], now_ns: int) -> None:
        """The traced calls go on."""
        self._counts, self._since_ns = counts, now_ns

    def due(self, counts: tuple[int, int], now_ns: int) -> bool:
        """``counts``: of the traced calls, and of others."""
        if counts[0] != self._counts[0]:
            self.begin(counts, now_ns)
        return now_ns - self._since_ns >= self.patience_ns and counts[1] - self._counts[1] >= self._least

    def looked(self, now_ns: int) -> None:
        """It was looked at what they are."""
        self._since_ns = now_ns


class FirstLook:
    """The first look of a recording, and those of later phases."""

    def __init__(self, recording: Recording, live: Live) -> None:
        """There is none yet."""
        self._recording = recording
        self._live = live
        self._made: list[CaptureInfo] = []
        self._wrong = False
        self._repeated = False
        self._doubted: CaptureInfo | None = None
        """Made by itself, and no training: the job's steps may turn out to be others."""
        self._checked_ns = 0
        self._looks = 0
        self._gone = _Ceased(GONE_NS, OTHERS)
        self._ceased = _Ceased(CEASED_NS, later_phase.MIN_CALLS)
        self._phases = 0
        self._phase: LaterPhase | None = None
        """To be captured."""
        self._phase_calls = (0, 0)
        """(number of the phase's calls, when they had grown last)."""

    @property
    def answers(self) -> bool:
        """Whether it was taken, and nothing shows that its steps are not the job's: no detector needs another."""
        return bool(self._made) and not self._wrong

    def made(self, done: CaptureInfo, now_ns: int) -> None:
        """It has ended."""
        if done.outcome == "done":
            self._phase = None
            self._made.append(done)
            for ceased in (self._gone, self._ceased):
                ceased.begin(self._count(), now_ns)

    def takes(self, done: CaptureInfo, wanted: WantedCapture, now_ns: int) -> bool:
        """Note a capture without a request. Returns whether more of its steps are of use: not of a doubtful one."""
        if wanted.phase is not None:
            self.made(done, now_ns)
        elif done.work in OTHER_WORK:
            self._doubted = done
            return False
        return not wanted.whole

    def again(self, now_ns: int) -> list[WantedCapture]:
        """Captures that are to follow: once, where the captured steps are not those of the job; of a later phase."""
        found = []
        if self.wrong(now_ns) and not self._repeated:
            self._repeated = True
            found.append(once_more(now_ns))
        made = self._doubted
        if made is not None and not self._repeated:
            self._live.refresh(now_ns, FRESH_NS)
            steps = self._live.steps
            calls = {(kind, name) for worker, kind, name in self._live.calls_of_steps() if worker == made.worker}
            if steps is not None and calls and calls.isdisjoint(made.anchors):
                self._repeated = True
                ask = CaptureAsk(id=made.asked_by, wait_s=0.0)
                found.append(WantedCapture(ask=ask, by=reason.of(made.asked_by), due_ns=now_ns, left=1))
        phase = self.later(now_ns)
        return [*found, *([once_more(now_ns, phase)] if phase is not None else [])]

    def wrong(self, now_ns: int) -> bool:
        """Whether it must be repeated."""
        if not self._made or self._wrong:
            return False
        due = self._gone.due(self._count(), now_ns)
        if due and self._looks < MAX_LOOKS:
            self._looks += 1
            self._gone.looked(now_ns)
            self._live.refresh(now_ns, FRESH_NS)
        last_ns = max(one.at_ns for one in self._made) + self._recording.manifest.origin_monotonic_ns
        if self._live.analysed_ns > max(self._checked_ns, last_ns):
            self._checked_ns = self._live.analysed_ns
            self._wrong = self._shows_others()
        return self._wrong

    def later(self, now_ns: int) -> LaterPhase | None:
        """A phase that began after the traced calls had ceased, once for each."""
        if self._phase is not None and self.goes_on(self._phase, now_ns):
            return None
        if not self._made or self._phases >= MAX_PHASES or not self._ceased.due(self._count(), now_ns):
            return None
        self._ceased.looked(now_ns)
        self._ceased.patience_ns *= 2
        self._phase = phase = later_phase.find(self._live.session(), self._anchors())
        if phase is not None:
            self._phases += 1
            self._ceased.patience_ns = CEASED_NS
            self._phase_calls = (self._calls_of(phase), now_ns)
        return phase

    def goes_on(self, phase: LaterPhase, now_ns: int) -> bool:
        """Whether its calls still come."""
        count = self._calls_of(phase)
        if count != self._phase_calls[0]:
            self._phase_calls = (count, now_ns)
        return now_ns - self._phase_calls[1] <= max(OVER_NS, OVER_STEPS * capture_size.step_ns(phase.steps))

    def _calls_of(self, phase: LaterPhase) -> int:
        """Calls of a phase so far."""
        workers = self._recording.drainer.workers
        known = [(workers[key].recent.counts, (kind, name)) for key, kind, name in phase.calls if key in workers]
        return sum(counts.get(pair, 0) for counts, pair in known)

    def _anchors(self) -> frozenset[tuple[str, int, int]]:
        """(worker, kind, name) of all traced calls."""
        return frozenset((made.worker, kind, name) for made in self._made for kind, name in made.anchors)

    def _count(self) -> tuple[int, int]:
        """(calls of the traced steps, calls of what else may be steps) so far, of all processes."""
        anchors = self._anchors()
        mine = others = 0
        for worker in self._recording.drainer.workers.values():
            for (kind, name), count in worker.recent.counts.items():
                if (worker.key, kind, name) in anchors:
                    mine += count
                elif kind in _STEPS:
                    others += count
        return mine, others

    def _shows_others(self) -> bool:
        """Whether a capture of the job's steps would be of other calls, or of much longer or shorter steps."""
        if self._live.steps is None:
            return False
        try:
            asked = capture_target.resolve(CaptureAsk(id=FIRST.word), FIRST, self._recording, self._live)
        except CaptureError:
            return False
        calls = {*asked.anchors, *asked.usual}
        same = [made for made in self._made if made.worker == asked.worker and not calls.isdisjoint(made.anchors)]
        usual = capture_size.step_ns(self._live.steps)
        return not any(
            not (usual and made.step_ns) or 1 / OTHER_STEP <= usual / made.step_ns <= OTHER_STEP for made in same
        )
