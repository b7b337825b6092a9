"""Log lines of an intervention in a trial, see ``agent.trials``."""

from __future__ import annotations

from stepscope.model.event import Event


class InterventionEnded(Event, tag="intervention", frozen=True, kw_only=True):
    """Result of an intervention in this process of a trial. ``at``: when it first took hold, else when the process
    ended. Since 0.1.
    """

    name: str
    argument: str = ""
    """Argument of the intervention; "" if it takes none."""
    outcome: str = ""
    """Outcome: "in-effect" | "not-reached" (what it changes never came) | "failed" (an error of ours; the program
    ran unchanged)."""
    count: int = 0
    """How often it took hold: calls that it changed or replaced."""
    text: str = ""
    """Reason, unless it was in effect."""


class BlockEnded(Event, tag="block", frozen=True, kw_only=True):
    """A time in which an intervention was on, or off, in a trial that switches it in one process. ``at``: when it
    began. Times of steps are those from the end of the one before, in the last three quarters of it. Since 0.1.
    """

    name: str
    argument: str = ""
    """Argument of the intervention; "" if it takes none."""
    on: bool = False
    """Flag: the intervention was in effect."""
    long: bool = False
    """Flag: the last block but one, longer than the others and on, in which what queues held is used up."""
    dur_ns: int = 0
    """Its whole duration."""
    count: int = 0
    """How often the intervention took hold."""
    steps: int = 0
    """Number of steps, without those in which something else ended."""
    steps_ns: int = 0
    """Their time."""
    late_steps: int = 0
    """Number of those in the later half."""
    late_ns: int = 0
    """Time of those."""
    ends: int = 0
    """Number of times from step to step in which a fit, an epoch, an evaluation, a dataset or a trace ended."""
    ends_ns: int = 0
    """Sum of them."""
    lumps: int = 0
    """Number of steps, among ``steps``, of more than eight times their median."""
    lumps_ns: int = 0
    """Time of those."""
    all_steps: int = 0
    """Number of all its steps, those that are dropped included; of delays (``slopes``), as all that follows."""
    calls: int = 0
    """Calls of the delayed place that ended in it."""
    delayed: int = 0
    """Calls that began while delays were on."""
    added_ns: int = 0
    """Time that was added to them."""
    place_ns: int = 0
    """Time of the place's calls, without what was added."""


class DelayEnded(Event, tag="delay", frozen=True, kw_only=True):
    """What was found out of a place before its calls were delayed, in a trial of a slope. ``at``: when that began.
    Since 0.1.
    """

    argument: str = ""
    """The place."""
    how: str = ""
    """How calls are delayed: "sleep" | "busy" (computing without the interpreter lock) | "busy-held" (with it)."""
    delay_ns: int = 0
    """Time that is added to a call; 0: no call was."""
    calls_per_step: float = 0.0
    step_ns: int = 0
    """Mean time of a step while the place was watched."""
    buffered: int = 0
    """Number of steps that ended while the place's calls were held."""
    deep: bool = False
    """Flag: steps ended for as long as the calls were held."""
    held_ratio: float = 0.0
    """Share of the place's time in which another thread could not have the interpreter lock."""
    threads: int = 0
    """Threads that called the place, those of forked processes included."""
    why: str = ""
    """Reason why no block began; "" if one did."""
