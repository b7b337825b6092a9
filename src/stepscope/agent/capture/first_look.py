"""The first look: an op trace that the process begins by itself, as soon as its steps are steady.

Armed by the launcher under ``run`` (``first_look_ns`` of the configuration): a sidecar that looks once a second would
be too late for a job of some seconds. The agent's thread reads the newest records of the ring about 20 times a second
until the steps are known; nothing is added to what a record costs. One process of a run looks, the first whose steps
are steady. Whether these are the job's steps is checked afterwards by the sidecar (``sidecar.first_look``).
"""

from __future__ import annotations

import os
import time

from stepscope.agent.capture import look_size
from stepscope.agent.capture.repeats import RepeatingCalls
from stepscope.wire.commands import new_id
from stepscope.wire.env import LOOKED_NAME
from stepscope.wire.kinds import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stepscope.agent.capture.host import LookHost
    from stepscope.agent.capture.repeats import Repeat

ASKED_BY = "first-look"
MOST = 4_096
"""Records read in one look; what is older was written while this thread had no turn."""
RARE_NS = 30_000_000_000
"""After this time without steps the ring is read once a second."""
SECOND_NS = 1_000_000_000
LEVEL = 2
MARGIN = 10
"""Untraced steps after the traced ones, for comparison; those before were read from the ring."""
PATIENCE = 4.0
"""Factor over the usual time of the steps after which recording ends with those that it has."""
MOST_SECONDS = 20.0
WORK = {"train": "training", "test": "evaluation", "predict": "prediction", "updates": "training"}


class FirstLook:
    """The first look of one process. ``tick`` on the agent's thread."""

    def __init__(self, state: LookHost, bound_ns: int) -> None:
        """``bound_ns``: what ten steps may cost."""
        self._state = state
        self._bound_ns = bound_ns
        self._repeats = RepeatingCalls(state.lines.named, state.captures.sizes.trains)
        self._read = 0
        self._began_ns = state.now()
        self._next_ns = 0
        self._over = False
        state.captures.sizes.wanted = True

    def tick(self, now_ns: int) -> None:
        """Read what is new, and begin if steps are steady."""
        if self._over or now_ns < self._next_ns:
            return
        if now_ns - self._began_ns > RARE_NS:
            self._next_ns = now_ns + SECOND_NS
        began = time.thread_time_ns()
        self._look(now_ns)
        self._state.hooks.apart_ns += time.thread_time_ns() - began

    def _look(self, now_ns: int) -> None:
        captures = self._state.captures
        if not captures.tracers:  # no framework that could be traced was imported so far
            return
        if captures.asked or captures.profiled() or captures.served:  # somebody looks already, or profiles
            self._end()
            return
        self._read, records = self._state.records.since(self._read, MOST)
        self._repeats.add(records)
        elected = self._repeats.elect(now_ns)
        if elected is not None:
            self._end()
            if self._claim():
                self._begin(elected)
                self._state.captures.sizes.chosen = elected.traces
            self._state.captures.sizes.forget()

    def _end(self) -> None:
        self._over = True

    def _claim(self) -> bool:
        """Whether this is the first process of the run whose steps are steady."""
        try:
            os.close(os.open(os.path.join(self._state.lines.run, LOOKED_NAME), os.O_CREAT | os.O_EXCL, 0o600))
        except OSError:  # another process was first, or the run is over
            return False
        return True

    def _begin(self, repeat: Repeat) -> None:
        kind, name, thread = repeat.key
        line = self._state.lines.named(name)
        role, text = str(line.get("role", "")), str(line.get("text", ""))
        session = kind == Kind.SESSION_RUN
        step_ns = repeat.step_ns
        size = self._state.captures.sizes.of_sessions() if session else self._state.captures.sizes.of(repeat.traces)
        each = look_size.events(kind, size, step_ns, repeat.call_ns, os.cpu_count() or 1)
        steps = look_size.steps(self._bound_ns, each, step_ns)
        order: dict[str, object] = {
            "id": new_id(),
            "steps": steps,
            "seconds": min(MOST_SECONDS, max(1.0, PATIENCE * (steps + 1) * step_ns / SECOND_NS)),
            "level": LEVEL,
            "margin": MARGIN,
            "before": 0,
            "thread": thread,
            "anchors": [[kind, name]],
            "usual": [list(pair) for pair in self._repeats.usual(repeat)],
            "task": text if session else None,
            "asked_by": ASKED_BY,
        }
        work = WORK.get(role, "training" if size.updates or kind == Kind.APPLY else "")
        problem = "" if steps else _too_dear(look_size.cost_ns(1, each, step_ns))
        self._tell(order, (role, text, work), problem)
        if not problem:
            self._state.captures.order(order)

    def _tell(self, order: dict[str, object], about: tuple[str, str, str], problem: str) -> None:
        """Log that the look begins, or the ``problem``; ``about``: role and text of the calls' name, and their work."""
        role, text, work = about
        line: dict[str, object] = {"t": "look", "at": self._state.now(), "begun": not problem, "problem": problem}
        line.update((field, order[field]) for field in ("id", "steps", "anchors"))
        self._state.lines.log({**line, "role": role, "text": text, "work": work})


def _too_dear(cost_ns: int) -> str:
    return (
        "no automatic op trace: tracing one step would cost the job about %.2g s, more than a first look may; to take "
        "one while the job runs: stepscope trace JOB --steps 1" % (cost_ns / SECOND_NS)
    )
