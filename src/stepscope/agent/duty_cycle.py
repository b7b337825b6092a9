"""Detaches hot wrappers for most of the time where steps are so short that the wrappers would cost too much.

A wrapper costs 0.5 us in a loop that does nothing else and 7 us in a training step (``wire.call_cost``), because the
step has used the caches for other things meanwhile. Six of them in a step of 1 ms are 4 %. So the agent's thread
bounds what the calls of the last *window* cost. If that exceeds the budget less its own CPU time, the wrappers with the
most calls (``Patches.detach``) are detached until the average is within the budget: a *gap*. Then comes the next
window. All statements about steps describe windows; in gaps, calls that make steps are still counted.

They are counted by ``functools.lru_cache`` without a cache: a function in C that calls the original and counts its
calls. In cold caches that costs 0.8 us, a wrapper in Python that does the same 3.7 us; and it shows in no traceback.
PyTorch's hook counts itself, in every gap: it cannot be exchanged (``agent.probes.torch.optimizer_steps``).

A gap never exceeds half of the time since overhead first became too high; any shortfall is carried over. So a short job
that warms up and then trains for two seconds is observed while it trains, and what is read when a window ends is read
soon, then more rarely.

Each second of a gap leaves REST records (the stored format's word): when, how long, how many calls of which kind were
only counted. If a full second passes without the repeating call, the gap ends early: the program has changed phase. The
unused part is added to the next gap. Meanwhile counts are copied into the ring's header ten times a second, where they
outlive a job that is killed. What is still recorded in a gap: ``store.gaps``.
"""

from __future__ import annotations

import contextlib
import functools
import time
import weakref

from stepscope.agent.core.frames import ended_the_program
from stepscope.wire.call_cost import HOOK_LIGHTS, LIGHT_NS, wrapped_ns
from stepscope.wire.kinds import Kind, Trait, kinds_with
from stepscope.wire.ring import UNCOMMITTED, UNCOMMITTED_KINDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.core.hooks import Hooks
    from stepscope.agent.core.patches import Patches
    from stepscope.agent.core.records import Records
    from stepscope.wire.ring import Write

    class DutyCycleHost(Protocol):
        """What is asked of the agent's state, which holds the one ``DutyCycle``."""

        config: dict[str, Any]
        now: Callable[[], int]
        write: Write
        thread: Callable[[], int]
        records: Records
        patches: Patches
        hooks: Hooks


BUDGET_RATIO = 0.003
"""Share of the wall time that wrappers, counting in gaps, and the agent's thread may take, by the upper bounds of
their costs. Source: decision 0004, level 0, less what the CPU timer takes."""
LEAST_RATIO = 0.0006
"""What wrappers may take where the others have taken the budget: something must be seen."""
THREAD_RATIO = 0.001
"""What the agent's thread is taken to need before it has run for ``THREAD_KNOWN_NS``."""
THREAD_KNOWN_NS = 3_000_000_000
TOO_MUCH = 1.2
"""A gap begins when the window took so many times its budget."""
CALIBRATED_NS = 700
"""What a call costs in a loop that does nothing else, unless ``calibrated`` says otherwise."""
SHORT_COSTS = 0.8
"""A call that is counted because it was short, against one that is recorded."""
WINDOW_NS = 150_000_000
FIRST_WINDOW_NS = 250_000_000
MIN_CALLS = 100
"""Calls of a window, at least: it is as long as it takes."""
LONG_WINDOW_NS = 3_000_000_000
"""No window waits longer for something that has not seen enough of it."""
MIN_GAP_NS = 250_000_000
MAX_GAP_NS = 20_000_000_000
REPORT_NS = 1_000_000_000
NOTE_NS = 90_000_000
"""How often counts are copied into the ring's header: a kill loses no more than what came since."""
SLOTS = {kind: 1 + position for position, kind in enumerate(UNCOMMITTED_KINDS)}
"""Where in ``DutyCycle.uncommitted`` the calls of a kind stand; as many places further stands what has been told."""
TOLD = len(UNCOMMITTED_KINDS)
COUNTED = tuple(kind for kind in UNCOMMITTED_KINDS if kind in kinds_with(Trait.LIGHT))
"""Kinds that may be what repeats once a step, the likelier first: the light wrappers of one of them count. Those
of ``MARKS`` are counted where none of the others is called: a step may read any number of values."""
MARKS = frozenset(kinds_with(Trait.MARK))
UPDATES = kinds_with(Trait.UPDATE)
WHOLE = 3
"""Updates in a window, from the first of which to the last there is a whole step and more."""
MANY_CALLS = 8_192
"""Newest records among which these are; looked at 20 times a second while a window waits for them, 30 us each."""
_REPEATING = frozenset(map(int, (Kind.EXECUTION, *COUNTED)))
HOT = frozenset(map(int, kinds_with(Trait.HOT)))
MANY = 64
"""Counters of a kind from which those that are gone are let go whenever one is made."""
SEARCHED = 1_024
"""Newest records among which those of ``_repeating`` are; looked at once a gap."""
LOOKED_AT = 64
"""Newest records that say which kinds are being written."""
LATEST = 32
"""Of them, those that say whether Keras' steps still run: a loop of the user's own may follow a fit."""


def _countable(kinds: list[int]) -> tuple[Kind, ...]:
    """Those of ``COUNTED`` that may be what repeats, by the kinds of the newest records."""
    others = tuple(kind for kind in COUNTED if kind not in MARKS)
    return others if any(int(kind) in kinds for kind in others) else COUNTED


class DutyCycle:
    """Whether hot wrappers are detached, and since when. One per process; ``tick`` on the agent's thread."""

    __slots__ = (
        "_asked",
        "_call_ns",
        "_counters",
        "_counting",
        "_forbidden",
        "_held",
        "_hot_since",
        "_owed_ns",
        "_past",
        "_repeats",
        "_since",
        "_state",
        "_told",
        "_until",
        "_updates",
        "_window_ns",
        "_written",
        "before",
        "detached",
        "enough",
        "steps_are_functions",
        "swaps",
        "uncommitted",
    )

    def __init__(self, state: DutyCycleHost) -> None:
        self._state = state
        self.detached = False
        """Whether this is a gap."""
        self.uncommitted = memoryview(bytearray(UNCOMMITTED.size)).cast("Q")
        """Part of the ring's header: what has been counted, ``note`` writes it."""
        self.steps_are_functions = False
        """Some step function of Keras is a tf.function object: nothing but its call counts it."""
        self.before: list[Callable[[int], object]] = []
        """Called with the time when a window ends, on the agent's thread."""
        self.enough: list[Callable[[], bool]] = []
        """Asked on the agent's thread whether a window has observed what it is there for. With many wrapped calls per
        step, enough calls to estimate cost arrive before one whole step has been observed."""
        self.swaps: list[Callable[..., object]] = []
        """Called with ``detached=True`` when a gap begins, ``False`` when it ends: what ``Patches`` lacks."""
        self._counters: dict[Kind, list[list[Foreign]]] = {kind: [] for kind in UNCOMMITTED_KINDS}
        """[weak reference to what counts, its count when last looked at], for each kind."""
        self._owed_ns = 0
        """By how much gaps were shorter than they should have been."""
        self._repeats = False
        """Whether something was counted in the last second of this gap."""
        self._updates = False
        """Whether the job trains op by op."""
        self._past = dict.fromkeys(UNCOMMITTED_KINDS, 0)
        """What those had counted that are gone."""
        self._counting: list[Kind] = []
        """Kinds that are counted in this gap."""
        self._asked: tuple[int, int] | None = None
        """(when, CPU time of the agent's thread by then)."""
        self._call_ns = wrapped_ns(CALIBRATED_NS)[2]
        self._forbidden = not state.config.get("duty_cycle", True)
        self._held = 0
        self._hot_since = 0
        """When the first window began in which calls cost too much."""
        self._since = 0
        self._until = 0
        self._told = 0
        self._window_ns = FIRST_WINDOW_NS
        self._written = (0, 0)

    def light(self, kind: Kind, original: Foreign) -> Foreign:
        """What stands in for the wrapper of ``original`` in gaps: it calls it, and counts."""
        counts = functools.lru_cache(maxsize=0)(original)
        if len(self._counters[kind]) >= MANY:  # a job that makes models without end may never have a gap
            self._forget()
        self._counters[kind].append([weakref.ref(counts), 0])
        return counts

    def calibrated(self, loop_ns: int) -> None:
        """What a wrapped call costs in a loop that does nothing else, in this process."""
        self._call_ns = wrapped_ns(loop_ns)[2]

    def forbid(self) -> None:
        """For good: something needs every call."""
        self._forbidden = True

    def hold(self, now_ns: int) -> None:
        """On the agent's thread: end a gap, begin none until ``release``. Something needs every call for a while."""
        self._held += 1
        self.end(now_ns)

    def release(self) -> None:
        """The opposite of ``hold``, on any thread."""
        self._held -= 1

    def due_ns(self, now_ns: int) -> int:
        """How long until there is something to do: the gap or the window ends, or counts are due."""
        if self.detached:
            return min(self._until, self._told + REPORT_NS) - now_ns
        return self._since + self._window_ns - now_ns if self._since else 0

    def tick(self, now_ns: int) -> None:
        """Begin, go on or end; about 20 times a second. After a failure there are no more gaps."""
        try:
            self._tick(now_ns)
        except Exception:
            self.forbid()
            self.end(now_ns)
            raise

    def _tick(self, now_ns: int) -> None:
        if self.detached:
            if now_ns >= self._until or self._forbidden:
                self.end(now_ns)
            elif now_ns - self._told >= REPORT_NS:
                counted = self._tell(now_ns)
                if self._repeats and not counted:
                    self.end(now_ns)
                self._repeats = counted > 0
        elif not self._since:
            self._open_window(now_ns)
        elif now_ns - self._since >= self._window_ns:
            self._consider(now_ns)

    def _open_window(self, now_ns: int) -> None:
        self._since = now_ns
        self._written = self._state.records.calls()

    def _consider(self, now_ns: int) -> None:
        written, counted = self._state.records.calls()
        calls, short = written - self._written[0], counted - self._written[1]
        if calls + short < MIN_CALLS:
            if now_ns - self._since > MAX_GAP_NS:
                self._open_window(now_ns)
            return
        window = now_ns - self._since
        if window < LONG_WINDOW_NS and not all(seen() for seen in self.enough):
            return
        kinds = self._state.records.newest_kinds(LOOKED_AT)
        each = self._call_ns / max(1, len(kinds))
        executions = kinds.count(int(Kind.EXECUTION))  # each calls a tf.function, whose wrapper runs and writes nothing
        hooks = kinds.count(int(Kind.APPLY)) if self._always(Kind.APPLY) else 0
        hot = executions + hooks + sum(kind in HOT for kind in kinds)
        cost = (calls * hot * each + short * SHORT_COSTS * self._call_ns) / window
        repeated = max(executions, *(kinds.count(int(kind)) for kind in _countable(kinds)))
        light = calls * (repeated + HOOK_LIGHTS * hooks) / max(1, len(kinds)) * LIGHT_NS[2] / window
        budget = max(LEAST_RATIO, BUDGET_RATIO - self._thread_ratio(now_ns) - light)
        whole = self._whole_step(calls)
        if window < LONG_WINDOW_NS and not whole and cost * window < budget * MAX_GAP_NS:
            return
        self._updates = self._updates and (whole or window < LONG_WINDOW_NS)
        gap = int((cost / budget - 1) * window) + self._owed_ns
        if cost < TOO_MUCH * budget or self._forbidden or self._held or gap < MIN_GAP_NS:
            self._open_window(now_ns)
            return
        self._window_ns = WINDOW_NS
        self._hot_since = self._hot_since or self._since
        longest = max(MIN_GAP_NS, window, (now_ns - self._hot_since) // 2)
        gap = min(gap, MAX_GAP_NS)
        self._begin(now_ns, min(gap, longest), self._repeating())
        self._owed_ns = max(0, gap - longest)

    def _whole_step(self, calls: int) -> bool:
        """Whether the newest calls hold a whole step of a job that trains op by op: such a step makes hundreds of calls
        besides its updates, and may last longer than a window.
        """
        kinds = self._state.records.newest_kinds(MANY_CALLS if self._updates else SEARCHED)
        self._updates = self._updates or any(int(kind) in kinds for kind in UPDATES)  # one may end in a gap
        mine = kinds[-calls:] if calls else []
        return not self._updates or max(mine.count(int(kind)) for kind in UPDATES) >= WHOLE

    def _repeating(self) -> list[int]:
        """Kinds of the newest calls that may be what repeats, oldest first: a step may make hundreds of other records,
        of garbage collections or samples.
        """
        return [kind for kind in self._state.records.newest_kinds(SEARCHED) if kind in _REPEATING][-LOOKED_AT:]

    def _thread_ratio(self, now_ns: int) -> float:
        """What the agent's thread has taken of a core since this was first asked; what has a budget of its own is not
        in it."""
        used = time.thread_time_ns() - self._state.hooks.apart_ns
        if self._asked is None or used < self._asked[1]:  # it may have been started again
            self._asked = (now_ns, used)
        since = now_ns - self._asked[0]
        return (used - self._asked[1]) / since if since >= THREAD_KNOWN_NS else THREAD_RATIO

    def _begin(self, now_ns: int, gap_ns: int, kinds: list[int]) -> None:
        for function in self.before:
            function(now_ns)
        self._state.records.flush_regularly()
        self._forget()
        if int(Kind.EXECUTION) in kinds[-LATEST:]:
            counted = frozenset((Kind.FUNCTION,) if self.steps_are_functions else ())
        else:
            able = _countable(kinds)
            most = max(kinds.count(int(kind)) for kind in able)
            counted = frozenset([kind for kind in able if 2 * kinds.count(int(kind)) >= max(most, 1)][:1])
        self._counting = [kind for kind in UNCOMMITTED_KINDS if kind in counted or self._always(kind)]
        counts = {kind: self._count(kind) for kind in self._counting}
        self.detached = True
        self._state.patches.detach(counted)
        self._swap()
        # Now, not before: what a wrapper recorded until here is left as it is, what begins later is counted.
        self._settle(self._state.now(), counts)
        self._until = self._told + gap_ns
        self._repeats = False

    def end(self, now_ns: int) -> None:
        """Reattach, and say what was counted. Nothing happens outside of gaps."""
        if not self.detached:
            return
        ends = self._state.now()  # what begins from here on may be recorded again
        self._state.patches.reattach()
        self.detached = False
        self._owed_ns += max(0, self._until - now_ns)
        self._swap()
        self._tell(ends)
        self.uncommitted[0] = 0
        self._open_window(now_ns)

    def finish(self, now_ns: int) -> None:
        """The same at exit, without the call that ended the program."""
        for kind in self._counting if self.detached else ():
            untold = self._count(kind) > self.uncommitted[SLOTS[kind] + TOLD]
            self._past[kind] -= untold and any(ended_the_program(entry[0]()) for entry in self._counters[kind])
        self.end(now_ns)

    def _always(self, kind: Kind) -> bool:
        """Whether a kind is counted in every gap: Keras' step functions, and the steps of PyTorch's optimizers."""
        return kind == Kind.EXECUTION or (kind == Kind.APPLY and bool(self._counters[kind]))

    def _swap(self) -> None:
        for swap in self.swaps:
            swap(detached=self.detached)

    def _count(self, kind: Kind) -> int:
        """Calls of a kind that were only counted so far."""
        total = self._past[kind]
        for entry in list(self._counters[kind]):
            if (counts := entry[0]()) is not None:
                entry[1] = counts.cache_info().misses
            total += entry[1]
        return total

    def _forget(self) -> None:
        """Let go of what counts no more; its count stays. Of two threads, the first to take an entry adds it."""
        for kind, entries in self._counters.items():
            for entry in [entry for entry in list(entries) if entry[0]() is None]:
                with contextlib.suppress(ValueError):
                    entries.remove(entry)
                    self._past[kind] += entry[1]

    def note(self) -> int:
        """Copy the counts into the ring's header, for a job that is killed or a model that goes; return their sum."""
        for kind in self._counting:
            self.uncommitted[SLOTS[kind]] = self._count(kind)
        return sum(self.uncommitted[SLOTS[kind]] for kind in self._counting)

    def _settle(self, now_ns: int, counts: dict[Kind, int]) -> None:
        """All of these calls have been told of; there may be more by now."""
        for kind in UNCOMMITTED_KINDS:
            self.uncommitted[SLOTS[kind] + TOLD] = counts.get(kind, self.uncommitted[SLOTS[kind]])
        self.note()
        self.uncommitted[0] = self._told = now_ns

    def _tell(self, now_ns: int) -> int:
        """Leave the records; how many calls of a kind were counted that repeats."""
        counts = {kind: self._count(kind) for kind in self._counting}
        self.uncommitted[0] = 0  # a kill between the two tells of these calls once at most
        write, thread = self._state.write, self._state.thread()
        counted = 0
        for kind, calls in counts.items():
            new = calls - self.uncommitted[SLOTS[kind] + TOLD]
            counted += new
            if new or self._always(kind):
                write(self._told, now_ns - self._told, new, 0, int(Kind.REST), int(kind) << 8, thread)
        self._settle(now_ns, counts)
        return counted

    def after_fork(self) -> None:
        """In a forked child: attached, without a window; its own thread opens one."""
        if self.detached:
            self._state.patches.reattach()
            self.detached = False
            self._swap()
        self._since = self._held = self._hot_since = 0
        self._asked = None
        self.uncommitted = memoryview(bytearray(UNCOMMITTED.size)).cast("Q")
