"""Tells which calls of a process repeat steadily and may be its steps, from the records in its ring.

The order of preference is that of the report (``derive.steps.step_candidates``), where a process knows enough of
itself: what the program names a step, what trains, and what merely computes only if nothing else repeats for longer.
"""

from __future__ import annotations

from collections import deque

from stepscope.wire.kinds import Flag, Kind, Trait, kinds_with

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Optional

    Record = tuple[int, ...]
    Key = tuple[int, int, int]
    """(kind, name, thread) of a repeating call."""

MIN_STEPS, MIN_NS = 5, 300_000_000
"""Steps in a row without a trace, and the time that they cover, after which they are steady."""
FEW_STEPS, FEW_NS = 3, 1_000_000_000
"""The same for long steps: a job of three seconds has no five of them to give away."""
RESTLESS_CALLS, RESTLESS_NS = 8, 2_500_000_000
"""Calls and time after which steps are taken as they are: some programs trace again and again."""
OTHER_NS = 1_500_000_000
"""Time that an evaluation, a prediction or a call that trains nothing must cover: a training may follow it."""
PAUSE_NS, PAUSE_STEPS = 500_000_000, 10
"""A pause of this time and of so many steps begins another phase of the program."""
GONE_NS, GONE_STEPS = 500_000_000, 3
"""Steps whose last end is older are over, or pause."""
KEPT = 64
"""Ends kept of each call, and traces kept of each thread."""
MAX_KEYS = 1_024
OFTEN = 0.5
"""Share of the steps in which a call must occur to belong to them. Source: ``derive.steps.step_work``."""
_OUT = int(Flag.END) | int(Flag.NESTED)
_TRACED = int(Flag.TRACED)
_TRACE = int(Kind.TRACE)
_REST = int(Kind.REST)
_CALLBACK = int(Kind.CALLBACK)
_SESSION_RUN = int(Kind.SESSION_RUN)
CALLS = frozenset(map(int, kinds_with(Trait.STEP)))
WATCHED = (CALLS | {int(Kind.APPLY)}) - {int(Kind.INFERENCE)}
"""Kinds whose calls TensorFlow's profiler can trace, and that may make a step."""
TRAINS = 4
"""Highest rank of calls that train, or that the program calls its steps."""

HOOKS = 8
"""Rank of runs that a session's hook makes: a part of the steps, if there are others."""


class Repeat:
    """Calls of one kind and name on one thread."""

    __slots__ = (
        "calls", "ends", "first_ns", "hooked", "judged", "key", "last_ns", "since", "since_ns", "total_ns", "traces",
    )  # fmt: skip

    def __init__(self, key: Key, now_ns: int) -> None:
        self.key = key
        self.calls = 0
        self.hooked = 0
        """Number of calls that a hook of the session made."""
        self.judged = 0
        """Number of calls up to the last of those: hooks are not recorded all the time."""
        self.first_ns = now_ns
        """End of the first call."""
        self.last_ns = now_ns
        """End of the newest call."""
        self.since = 0
        """Number of calls since the last one that made a trace, or since a pause."""
        self.since_ns = now_ns
        """End of the first of those."""
        self.total_ns = 0
        self.ends: deque[int] = deque(maxlen=KEPT)
        """Ends of the newest of those calls."""
        self.traces: frozenset[int] = frozenset()
        """Ids of the traces made by the last call that made any."""

    def add(self, start_ns: int, dur_ns: int, traces: Optional[frozenset[int]], rested_ns: int = 0) -> None:
        """A call has ended; ``traces``: those that it made, None if none; ``rested_ns``: end of the last gap."""
        end_ns = start_ns + dur_ns
        self.calls += 1
        self.last_ns = end_ns
        if traces is not None:
            self.traces = traces or self.traces
            self._restart()
            return
        if self._paused(self.ends[-1] - self.ends[-2] if len(self.ends) > 1 else 0, start_ns, rested_ns):
            self._restart()
        elif len(self.ends) == _PAIR and self.step_ns > max(PAUSE_NS, PAUSE_STEPS * (end_ns - self.ends[1])):
            self.ends.popleft()  # it was followed by a pause, which did not show yet
            self.since, self.since_ns = 1, self.ends[0]
        if not self.since:
            self.since_ns = end_ns
        self.since += 1
        self.total_ns += dur_ns
        self.ends.append(end_ns)

    def _paused(self, before_ns: int, start_ns: int, rested_ns: int) -> bool:
        """Whether a call that begins now follows a pause; ``before_ns``: time between the two calls before it.

        In a gap of the duty cycle calls are not recorded: it is no pause.
        """
        since_ns = max(self.ends[-1], rested_ns) if self.ends else 0
        return bool(before_ns) and start_ns - since_ns > max(PAUSE_NS, PAUSE_STEPS * before_ns)

    def _restart(self) -> None:
        self.since = self.total_ns = 0
        self.ends.clear()

    @property
    def step_ns(self) -> int:
        """Median time from end to end of the newest calls; 0 with fewer than two."""
        ends = list(self.ends)
        apart = sorted(ends[i] - ends[i - 1] for i in range(1, len(ends)))
        return apart[len(apart) // 2] if apart else 0

    @property
    def call_ns(self) -> int:
        """Mean duration of the calls."""
        return self.total_ns // max(1, self.since)

    def steady(self, now_ns: int, least_ns: int = 0) -> bool:
        """Whether the calls repeat without a trace, and go on."""
        if len(self.ends) < _PAIR or now_ns - self.ends[-1] > max(GONE_NS, GONE_STEPS * self.step_ns):
            return False
        covered = self.ends[-1] - self.since_ns
        if covered < least_ns:
            return False
        enough = self.since >= MIN_STEPS and covered >= MIN_NS
        long = self.since >= FEW_STEPS and covered >= FEW_NS
        return enough or long or (self.calls >= RESTLESS_CALLS and self.ends[-1] - self.first_ns >= RESTLESS_NS)


class RepeatingCalls:
    """All calls of a process that may make steps."""

    def __init__(self, named: Callable[[int], Mapping[str, object]], trains: Callable[[frozenset[int]], bool]) -> None:
        """``named``: the fields of a name's line; ``trains``: whether one of these traces changes variables."""
        self._named = named
        self._roles: dict[int, str] = {}
        self._trains = trains
        self._known: dict[Key, Repeat] = {}
        self._runs: list[Repeat] = []
        """Those of them that are runs of a session."""
        self._traces: deque[Record] = deque(maxlen=KEPT)
        self._rested_ns = 0
        """End of the newest gap of the duty cycle."""

    def add(self, records: Iterable[Record]) -> None:
        """Take records, in the order in which they were written."""
        for start_ns, dur_ns, arg, name, kind, flags, thread in records:
            if kind == _TRACE:
                self._traces.append((start_ns, dur_ns, arg, thread))
            elif kind == _REST:
                self._rested_ns = max(self._rested_ns, start_ns + dur_ns)
            elif kind == _CALLBACK:
                self._note_hook(start_ns, start_ns + dur_ns, thread)
            elif kind in WATCHED and not flags & _OUT:
                key = (kind, name, thread)
                known = self._known.get(key)
                if known is None:
                    known = self._new(key, start_ns + dur_ns)
                traces = self._inside(start_ns, dur_ns, thread) if flags & _TRACED else None
                known.add(start_ns, dur_ns, traces, self._rested_ns)

    def _new(self, key: Key, now_ns: int) -> Repeat:
        if len(self._known) >= MAX_KEYS:
            self._known.clear()
            self._runs.clear()
        made = self._known[key] = Repeat(key, now_ns)
        if key[0] == _SESSION_RUN:
            self._runs.append(made)
        return made

    def _note_hook(self, start_ns: int, end_ns: int, thread: int) -> None:
        """A hook has ended: the newest run of each fetches is the hook's, if it lies within."""
        for run in self._runs:
            if run.key[2] == thread and start_ns <= run.last_ns <= end_ns:
                run.hooked += 1
                run.judged = run.calls

    def _inside(self, start_ns: int, dur_ns: int, thread: int) -> frozenset[int]:
        """Ids of the traces made within a call."""
        end_ns = start_ns + dur_ns
        return frozenset(
            arg for at, dur, arg, where in self._traces if where == thread and start_ns <= at and at + dur <= end_ns
        )

    def elect(self, now_ns: int) -> Optional[Repeat]:
        """The calls that most likely are the steps of this process; None while none are steady."""
        found = []
        for repeat in self._known.values():
            if repeat.steady(now_ns):
                rank = self.rank(repeat)
                if rank <= TRAINS or (rank < _NEVER and repeat.steady(now_ns, OTHER_NS)):
                    found.append((rank, -repeat.total_ns, repeat.key))
        return self._known[min(found)[2]] if found else None

    def longest(self, rank: int) -> Optional[Repeat]:
        """The calls of at most this rank that have gone on for the longest time, steadily or not; None if none have."""
        found = [repeat for repeat in self._known.values() if self.rank(repeat) <= rank]
        return max(found, key=lambda repeat: repeat.last_ns - repeat.first_ns, default=None)

    def rank(self, repeat: Repeat) -> int:
        """How little the calls say about a step."""
        kind = Kind(repeat.key[0])
        role = self._role(repeat.key[1])
        if kind == Kind.STEP:
            return 0
        if kind == Kind.EXECUTION:
            return 1 if role == "train" else 7
        if kind == Kind.SESSION_RUN:
            return _NEVER if role == "enqueue" else HOOKS if 2 * repeat.hooked > repeat.judged else 2
        if kind == Kind.FUNCTION:
            return 3 if role == "updates" or (not role and self._trains(repeat.traces)) else 5
        return TRAINS if kind == Kind.APPLY else 6 if kind == Kind.MODEL_CALL else _NEVER

    def _role(self, name: int) -> str:
        role = self._roles.get(name)
        if role is None:
            role = self._roles[name] = str(self._named(name).get("role", ""))
        return role

    def usual(self, repeat: Repeat) -> list[tuple[int, int]]:
        """(kind, name) of the other calls that most of these steps make on their thread."""
        since_ns = repeat.ends[0] if repeat.ends else 0
        found = []
        for (kind, name, thread), other in self._known.items():
            if thread == repeat.key[2] and kind in CALLS and other is not repeat:
                within = sum(end >= since_ns for end in other.ends)
                if within >= OFTEN * len(repeat.ends):
                    found.append((kind, name))
        return sorted(found)[:KEPT]


_NEVER = 99
_PAIR = 2
