"""The thread of the steps waits outside of the framework, and it is known for what.

## What it detects
Time in which the thread that makes the steps is blocked in a sleep, in a call on a file, pipe or socket, in a wait for
a child process, or in a lock or queue of Python's, by code of the user's or of a library that it calls: five percent of
the time or more.

## Why it matters
Nothing computes on that thread meanwhile, and a faster model, input or machine does not make the wait shorter.

## Evidence
`wait_ratio`: share of the steady wall time; `looks_waiting`: looks at the thread (ten a second) that found it waiting
there, by `/proc/self/task/TID/syscall`. `waits_per_step`: times that the thread gave up its CPU, for whatever reason;
`calls_per_step`, `bytes_per_call`: its calls that read or write. `holder_ratio`: for a lock or queue, share of these
moments at which another thread is seen in the function named.

## Known limits
A look takes a moment: of many short waits, the lines are sampled, not counted. How much of a wait the job needs is not
known, so the cost is at most the whole wait; of a sleep, all of it. It is information only where it is not known what
is waited for, where a service waits for its next request, for a pipe (the other process may compute), and below a tenth
of the time. Waits for tf.data and in the step's own call are input and compute. A lock of Python's differs from threads
of native code by the innermost frame, or by the text of the line.

## Remedy
Follow the wait: fewer and larger writes; one request for many things, or the next one while the step runs; no sleep; a
faster producer, or a shorter time under the lock. docs/decisions/0054 says when it is above information.

## References
proc(5), futex(2), socket(7); py-spy on idle threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.general import waits
from stepscope.detectors.base import Detector, Seen, Signal, cost_of, step_ns
from stepscope.detectors.general.parts import wait_words
from stepscope.detectors.shared import general_loss
from stepscope.model.report.components import stage_in_step
from stepscope.tables.findings import Evidence
from stepscope.tables.units import Ratio, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.general.waits import Rates, WaitOn
    from stepscope.derive.steps_view import StepsView
    from stepscope.tables.findings import Cause, Cost
    from stepscope.tables.place import Place

MOST = 3
"""Findings of one job."""
CONFIDENT, LESS_CONFIDENT = 0.9, 0.7
"""What is waited for is seen; who makes the thread wait for a lock is concluded."""
_CAUSES: dict[str, Cause] = {
    "socket": "Data: inefficient data transmission",
    "client": "Data: inefficient data transmission",
    "file": "API: inefficient API usage",
    "pipe": "API: inefficient API usage",
    "process": "API: inefficient API usage",
}


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.05)
    """Of steady wall time: the least share that a report must explain (docs/decisions/0042)."""
    min_looks: int = waits.MIN_LOOKS
    """Looks that found the thread waiting there; fewer name no line."""


def detect(view: StepsView, params: Params) -> Iterator[Seen]:
    """Yield a finding for each of the longest waits."""
    long = [wait for wait in view.get(waits.build) if wait.ratio >= params.min_ratio and wait.looks >= params.min_looks]
    sure = waits.sure(view)
    counted = waits.rates(view)
    for wait in long[:MOST]:
        yield _seen(view, params, wait, counted, sure=wait in sure)


def _seen(view: StepsView, params: Params, wait: WaitOn, counted: Rates | None, *, sure: bool) -> Seen:
    what, few = wait_words.what(wait, counted), wait.few
    long = (
        f"{format_ns(wait.ratio * step_ns(view))} a step"
        if few is None
        else f"{format_ns(few.each)} {few.said('steps')}"
    )
    return Seen(
        title=f"{wait_words.who(wait)} {what.verb} {long}{what.rest}: {format_ratio(wait.ratio)} of the time",
        severity=None if sure else "info",
        confidence=LESS_CONFIDENT if wait.reason == "lock" else CONFIDENT,
        cause=_CAUSES.get(wait.reason, "System: scheduling"),
        pipeline_stage=stage_in_step(wait.component),
        where=_places(view, wait),
        evidence=_evidence(params, wait, counted),
        cost=_cost(view, wait, sure=sure),
        remedies=(*what.remedies, general_loss.LOOK),
        about=general_loss.once(few),
        explanation=f"The thread of the steps is blocked on this line, in {wait_words.call(wait)}, and nothing of the "
        f"framework runs on it meanwhile{what.needed}.",
    )


def _cost(view: StepsView, wait: WaitOn, *, sure: bool) -> Cost:
    if not sure:
        return cost_of(view, 0.0, high=wait.ratio, basis="unknown")
    if wait.reason == "sleep":
        return cost_of(view, wait.ratio, low=wait.low, high=wait.high)
    return cost_of(view, wait.ratio, low=0.0, high=wait.high, basis="modelled")


def _places(view: StepsView, wait: WaitOn) -> tuple[Place, ...]:
    """The line that waits, that of the thread that it waits for, and that of the loop."""
    holder = wait.partners.holder if wait.partners is not None else None
    spots = [wait.spot, holder.spot if holder is not None else None, wait.statement]
    places = (view.place(spot.file, spot.line, function=spot.function) for spot in spots if spot is not None)
    return tuple(dict.fromkeys(places))


def _evidence(params: Params, wait: WaitOn, counted: Rates | None) -> tuple[Evidence, ...]:
    found = [
        Evidence(
            metric="wait_ratio",
            value=wait.ratio,
            unit="ratio",
            threshold=params.min_ratio,
            refs=(f"component:{wait.component}",),
        ),
        Evidence(metric="looks_waiting", value=wait.looks, unit="looks", threshold=params.min_looks),
    ]
    if counted is not None:
        found.append(Evidence(metric="waits_per_step", value=counted.waits, unit="waits"))
        if wait.reason in wait_words.COUNTED and counted.calls:
            found.append(Evidence(metric="calls_per_step", value=counted.calls, unit="calls"))
            found.append(Evidence(metric="bytes_per_call", value=counted.bytes_per_call, unit="bytes"))
    if wait.partners is not None and wait.partners.holder is not None:
        found.append(Evidence(metric="holder_ratio", value=wait.partners.holder.ratio, unit="ratio"))
    return tuple(found)


DETECTOR = Detector(
    code="GEN014",
    name="time-in-waits",
    introduced_stage="training",
    needs=frozenset({Signal.STEPS, Signal.SAMPLES}),
    params=Params(),
    detect=detect,
)
