"""A request for a capture in which something must happen (``stepscope trace --when``): tries, aim and account.

Captures of a few steps are repeated until one holds such a moment; the others are discarded unread and only counted,
and their cost is charged like any other's. Where the moments come at a regular distance, the capture is aimed: the
job's process waits for one moment and begins some steps before the next, so that one try is enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec.structs import replace

from stepscope.collector.captures.asked import Aim
from stepscope.collector.captures.op_captures import SECONDS
from stepscope.derive.numeric import intervals
from stepscope.derive.steps import anatomy, moments
from stepscope.detectors import registry
from stepscope.diagnosis import exclusive
from stepscope.model.api import capture_when
from stepscope.model.api.capture_ask import DEFAULT_STEPS, MAX_STEPS
from stepscope.model.report.components import COMPONENTS
from stepscope.sidecar import moment_forecast
from stepscope.tables.errors import UsageError
from stepscope.tables.units import format_ns, format_ratio
from stepscope.wire.kinds import Trait, kinds_with

if TYPE_CHECKING:
    from stepscope.collector.captures.asked import CaptureExtent
    from stepscope.collector.recorder import Recording
    from stepscope.model.api.capture_ask import CaptureAsk
    from stepscope.model.api.capture_when import When
    from stepscope.model.api.status import LiveCapture
    from stepscope.model.log.events import CaptureTaken
    from stepscope.model.session.session import CaptureInfo
    from stepscope.sidecar.live import Live
    from stepscope.sidecar.moment_forecast import Forecast
    from stepscope.tables.findings import Finding
    from stepscope.tables.records import I64

AIM_NS = 60_000_000_000
"""Moments that are further apart are not aimed at: the job's process waits for one moment to capture the next, and its
wrappers stay attached meanwhile."""
NEAR_NS = 5_000_000_000
"""Moments that are further apart: captures are tried from this long before the next one is expected, ..."""
NEAR_RATIO = 0.1
"""... or this share of the time between two."""
START_NS = 50_000_000
"""Time that the profiler takes to start. Measured: 10 to 40 ms, once 115 ms on a loaded machine."""
MOST_LEAD = 50
"""Steps by which a capture begins early, at most."""
MARGIN = 5
"""Untraced steps before the traced ones, for comparison."""
MAX_USUAL = 64
"""Calls that are named as no evaluation, at most: a command has little room."""
MAX_KEPT = 100_000
"""Steps whose ends are kept for the forecast."""
MAX_FAILURES = 3
"""Captures that fail, one after the other, before the request does."""


def problem(ask: CaptureAsk) -> str:
    """Why a request with a condition cannot be served; "" if it can, or has none."""
    if not ask.when:
        return ""
    try:
        when = capture_when.parse(ask.when)
    except UsageError as error:
        return str(error)
    if ask.kind != "ops" or ask.task or ask.every_s or ask.count > 1:
        return (
            "--when captures ops of the job's own steps, once: expected no other --kind, no --task, --every or --count"
        )
    if when.code and when.code not in {detector.code for detector in registry.ALL}:
        return f"--when {when.code}: no detector has this code; stepscope rule lists them"
    return ""


def of(ask: CaptureAsk, recording: Recording, live: Live) -> MomentCapture | None:
    """What a valid request waits for; None: nothing."""
    return MomentCapture(ask, capture_when.parse(ask.when), recording, live) if ask.when else None


def shown(moment: MomentCapture | None, capture: LiveCapture, *, aims_ns: int = 0) -> LiveCapture:
    """A request in the job's status; ``aims_ns``: the capture began then, and waits for its moment."""
    if moment is None:
        return capture
    return msgspec.structs.replace(
        capture,
        when=moment.when.word,
        tries=moment.tries,
        cost_ns=capture.cost_ns or moment.cost_ns,
        text=moment.aim_text(aims_ns) if aims_ns else capture.text,
    )


class MomentCapture:
    """One request that waits for its moment."""

    def __init__(self, ask: CaptureAsk, when: When, recording: Recording, live: Live) -> None:
        self.ask = ask
        self.when = when
        self.tries = 0
        """Captures that were discarded."""
        self.cost_ns = 0
        """What they cost."""
        self.failures = 0
        self.deadline_ns = 0
        """When it gives up; 0: it has not begun."""
        self._recording = recording
        self._live = live
        self._ends: I64 = np.empty(0, np.int64)
        self._moments: I64 = np.empty(0, np.int64)
        self._seen = moments.NONE
        self._calls: moments.StepCalls | None = None

    def look(self, now_ns: int) -> None:
        """Take in what has happened since the last look; about once a second."""
        self.deadline_ns = self.deadline_ns or now_ns + int(self.ask.wait_s * 1e9)
        steps = self._live.steps
        worker = self._recording.drainer.workers.get(steps.worker.info.key) if steps is not None else None
        if steps is None or worker is None or worker.closed:
            return
        key = steps.worker.info.key
        anchors = frozenset((kind, name) for owner, kind, name in self._live.calls_of_steps() if owner == key)
        calls = moments.StepCalls(anchors=anchors, thread=max(0, steps.thread))
        if calls != self._calls:  # another call makes the steps now
            self._calls, self._ends, self._moments = calls, self._ends[:0], self._moments[:0]
        recent = worker.recent.worker(worker.info)
        self._seen = moments.find(self.when, recent, calls)
        self._ends = _added(self._ends, moments.step_ends(recent, calls))
        self._moments = _added(self._moments, self._seen.start_ns)

    @property
    def forecast(self) -> Forecast | None:
        """When it may happen again; None if that is unknown."""
        return moment_forecast.build(self._ends, self._moments)

    def over(self, now_ns: int) -> bool:
        """Whether it has waited long enough."""
        return bool(self.deadline_ns) and now_ns >= self.deadline_ns

    def early(self, now_ns: int) -> str:
        """Why no capture is tried now; "" if one is."""
        forecast = self.forecast
        if forecast is None or forecast.period_ns <= AIM_NS:
            return ""
        origin_ns = self._recording.manifest.origin_monotonic_ns
        left_ns = forecast.next_ns(now_ns - origin_ns) - (now_ns - origin_ns)
        if left_ns <= max(NEAR_NS, NEAR_RATIO * forecast.period_ns):
            return ""
        return f"waits {format_ns(left_ns)}: {self.when.text} every {forecast.every:,} steps; {self.account(now_ns)}"

    def aimed(self, asked: CaptureExtent, now_ns: int) -> CaptureExtent:
        """The capture to try: of so many steps, from then on, and kept if the condition held in it."""
        key = asked.worker
        counts = self._recording.drainer.workers[key].recent.counts
        calls = set(kinds_with(Trait.STEP))
        usual = tuple(sorted(pair for pair in counts if pair[0] in calls and pair not in asked.anchors))
        wanted = self.ask.steps or DEFAULT_STEPS
        made = replace(asked, usual=usual[-MAX_USUAL:], steps=wanted, step_ns=0, when=self.when.word, holds=self.holds)
        forecast = self.forecast
        if forecast is None or forecast.period_ns > AIM_NS:
            return made
        lead = min(MOST_LEAD, 2 + START_NS // max(1, forecast.usual_ns))
        lead += forecast.loose
        steps = min(MAX_STEPS, max(self.ask.steps or 1, lead + forecast.loose + 2))
        skip = forecast.every - lead - MARGIN - 2
        if skip < 0:
            return replace(made, steps=min(MAX_STEPS, max(wanted, forecast.every + 2)))
        left_s = max(1.0, (self.deadline_ns - now_ns) / 1e9)
        seconds = min(left_s, 2.0 * forecast.period_ns / 1e9 + SECONDS)
        aim = Aim(
            pairs=tuple(sorted(self._seen.pairs)),
            flag=self._seen.flag,
            longer_ns=self._seen.longer_ns,
            skip=skip,
            seconds=seconds,
        )
        return replace(made, steps=steps, margin=MARGIN, aim=aim)

    def holds(self, answer: CaptureTaken) -> str:
        """What happened in a capture; "" if the condition did not hold in it."""
        begin, end = answer.at, answer.at + answer.recorded_ns
        worker = next((w for w in self._recording.drainer.workers.values() if answer.id in w.answers), None)
        if worker is None or not answer.steps:
            return ""
        if self.when.code:
            return self._holds_finding(begin, end)
        calls = moments.StepCalls(
            anchors=frozenset((kind, name) for kind, name in answer.anchors), thread=answer.thread
        )
        return moments.find(self.when, worker.recent.worker(worker.info), calls).within(begin, end)

    def _holds_finding(self, begin: int, end: int) -> str:
        """Whether the components of the step that a detector's finding is about have their usual share in a window."""
        self._live.refresh(self._recording.manifest.origin_monotonic_ns + end, 1)
        steps = self._live.steps
        found = next((one for one in self._live.found if one.code == self.when.code), None)
        if steps is None or found is None:
            return ""
        window = np.array([begin], np.int64), np.array([end], np.int64)
        shares = {part.component: part.ratio for part in self._live.status_anatomy()}
        about = _components(found) & shares.keys()
        for name in (name for name in COMPONENTS if name in about):
            inside = intervals.total(intervals.clip(anatomy.when(steps, name), window))
            if inside >= shares[name] * (end - begin) > 0:
                return f"{self.when.code}: {COMPONENTS[name].word} takes {format_ratio(inside / (end - begin))} of it"
        return ""

    def again(self, done: CaptureInfo) -> bool:
        """Whether another capture is tried after one that was discarded, or not made."""
        self.cost_ns += done.cost_ns
        if done.outcome == "discarded":
            self.tries += 1
            self.failures = 0
            return True
        self.failures += 1
        return self.failures < MAX_FAILURES and done.outcome == "failed"

    def account(self, now_ns: int) -> str:
        """``3 tries without it, which cost 120 ms (0.4 % of the job's time)``."""
        if not self.tries:
            return "no capture discarded so far"
        age = max(1, now_ns - self._recording.manifest.origin_monotonic_ns)
        plural = "tries" if self.tries > 1 else "try"
        cost = f"{format_ns(self.cost_ns)} ({format_ratio(self.cost_ns / age)} of the job's time)"
        return f"{self.tries} {plural} without it, discarded; cost {cost}"

    def aim_text(self, now_ns: int) -> str:
        """What the capture in progress waits for."""
        forecast = self.forecast
        expected = f"expected every {forecast.every:,} steps" if forecast is not None else "no regular distance known"
        return f"waits until {self.when.text} ({expected}); {self.account(now_ns)}"

    def gave_up(self, now_ns: int) -> str:
        """Why it ends without a capture."""
        seen = len(self._moments)
        if self._calls is None:
            why = "the job has made no steps"
        elif self.when.code:
            why = f"{self.when.code} was not seen in any of them"
        elif not seen:
            why = f"that {self.when.text} was not seen at all meanwhile"
        else:
            forecast = self.forecast
            every = f", every {forecast.every:,} steps" if forecast is not None else ", at no regular distance"
            why = f"it happened {seen:,} times{every}"
        more = "" if self.ask.force else "; --force does not wait for the budget, --wait SECONDS waits longer"
        return f"not caught in {self.ask.wait_s:g} s: {why}; {self.account(now_ns)}{more}"


def _added(kept: I64, fresh: I64) -> I64:
    """The kept times and those that follow them."""
    newer = fresh[fresh > kept[-1]] if len(kept) else fresh
    return np.concatenate([kept, newer])[-MAX_KEPT:]


def _components(found: Finding) -> frozenset[str]:
    """The components of the step that a finding is about."""
    claimed = exclusive.claims(found, {str(name): 1.0 for name in COMPONENTS})
    return frozenset().union(*(claim.components for claim in claimed)) or frozenset(COMPONENTS)
