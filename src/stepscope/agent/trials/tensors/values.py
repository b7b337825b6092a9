"""values: looks at what the compiled steps compute, in ten calls as they come, then in four on the same batch.

The program's calls of a tf.function and its runs of a session are counted, each function apart. The batch of a call is
held by calling again with the same arguments, an iterator among them being exchanged for one that repeats its next
batch. If something depends on the batch alone, further calls only show whether samples come again. Then the process
ends. Weights and metrics are wrong by then, which is why nothing of the program runs after it.
"""

from __future__ import annotations

import functools
import itertools
import os
import sys
import threading
import time
from typing import TYPE_CHECKING

from stepscope.agent.core.weak_ids import WeakIds
from stepscope.agent.trials import ending, xla
from stepscope.agent.trials.effect import Effect
from stepscope.agent.trials.support import FUNCTIONS, eager, replace
from stepscope.agent.trials.tensors.digests import HEAVY, Digests
from stepscope.agent.trials.tensors.watched import AS_IT_COMES, NO_CALL, OFF, SAME_BATCH, WATCHING, Watched, WatchedCall

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

STEPS = 10
"""Calls of a function that are looked at as they come."""
TRIES = 3
"""Calls that may find no batch to hold."""
AGAIN = 4
"""Calls on the same batch."""
LEAST_SHARE = 0.3
"""Share of the time of all calls from which a function is waited for."""
LEAST_S, ENOUGH_S = 3.0, 20.0
"""Seconds in which functions show which of them take the time; seconds after which a rare one is not waited for."""
MOST_S = 90.0
"""Seconds from the end of the first call, which traces, after which the trial ends in any case."""
WATCH_S = 30.0
WATCH_CALLS = 2_000
"""Time and number of calls in which samples may come again."""
NEWEST, RECURS = 3, 0.5
"""Batches of which that share of rows must have been in earlier ones."""
MOST_FUNCTIONS = 100
SESSIONS = "tensorflow.python.client.session"
ARGUMENTS = 16
"""Arguments of a call that are looked at."""


def targets(effect: Effect) -> list[tuple[str, Callable[[AgentState, Foreign], object]]]:
    """Where it gets hold: the creation of ops, and the program's calls; XLA is off."""
    effect.missed("neither a tf.function nor a session runs as a step; what runs eagerly is not looked at")
    trial = ValueTrial(effect)
    effect.state.hooks.on_finish(trial.log)
    effect.state.hooks.on_tick(trial.tick)
    functions = functools.partial(_attach_functions, trial)
    sessions = functools.partial(_attach_sessions, trial)
    return [*xla.targets(Effect(effect.state, "xla-off")), (FUNCTIONS, functions), (SESSIONS, sessions)]


class FunctionCalls:
    """Calls of one function."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.calls = 0
        self.spent_s = 0.0
        self.again = 0
        """Calls on the same batch."""
        self.why = ""
        """Why there are none."""
        self.tries = 0
        self.arguments: dict[int, Watched] = {}

    @property
    def is_held(self) -> bool:
        """Whether the calls on the same batch are over, or not possible."""
        return bool(self.again or self.why)


class ValueTrial:
    """The course of the trial. Calls come on the main thread, ticks on the agent's."""

    def __init__(self, effect: Effect) -> None:
        self.effect = effect
        self.digests = Digests(effect)
        self.counted: dict[str, FunctionCalls] = {}
        self._names = WeakIds()
        self._numbers = itertools.count(1)
        self._began_s = self._watch_s = 0.0
        self._watched_calls = 0
        self._done = False
        self._logged = False

    # -- the program's calls ----------------------------------------------------------------------------------------

    def run(self, key: str, arguments: Foreign, call: Callable[[], Foreign], again: Foreign) -> Foreign:
        """A call by the program. ``again``: makes a function that does it again with the same batch."""
        counted = self.counted.get(key)
        if counted is None and len(self.counted) < MOST_FUNCTIONS:
            counted = self.counted[key] = FunctionCalls(key)
        if counted is None or self._done:
            return call()
        began = time.monotonic()
        counted.calls += 1
        phase = self._phase(counted)
        self._begin(counted, phase, arguments)
        try:
            result = call()
        finally:
            self.digests.call = NO_CALL
        self._began_s = self._began_s or time.monotonic()
        counted.spent_s += time.monotonic() - began if counted.calls > 1 else 0.0
        with self.effect.wall:
            if phase != WATCHING and counted.calls >= STEPS and not counted.is_held:
                self._same_batch(counted, again)
            self._decide(counted, phase)
        return result

    def _phase(self, counted: FunctionCalls) -> str:
        if self._watch_s:
            return WATCHING
        return AS_IT_COMES if counted.calls <= STEPS else OFF

    def _begin(self, counted: FunctionCalls, phase: str, arguments: Foreign) -> None:
        call = self.digests.call = WatchedCall(counted.key, next(self._numbers), phase)
        if phase != OFF:
            with self.effect.wall:
                self._see_arguments(counted, call, arguments)

    def _see_arguments(self, counted: FunctionCalls, call: WatchedCall, arguments: Foreign) -> None:
        for place, value in enumerate(itertools.islice(_arrays(arguments), ARGUMENTS)):
            watched = counted.arguments.get(place)
            if watched is None:
                watched = Watched(len(self.digests.watched) + 1, "", "argument %d" % place, str(value.dtype))
                counted.arguments[place] = watched
                self.digests.watched.append(watched)
            self.digests.see_argument(watched, call, value)

    def _same_batch(self, counted: FunctionCalls, again: Foreign) -> None:
        """Call it again with the batch held."""
        self.digests.off = True
        counted.why = "its batch cannot be held"
        try:
            repeat = again()
        except StopIteration:  # an epoch has ended: the next call has a batch
            counted.tries += 1
            counted.why = "its input ends" if counted.tries > TRIES else ""
            return
        finally:
            self.digests.off = False
        counted.why = "a call on the same batch failed"
        for _ in range(AGAIN):
            self.digests.call = WatchedCall(counted.key, next(self._numbers), SAME_BATCH)
            try:
                repeat()
            finally:
                self.digests.call = NO_CALL
            counted.again += 1
        counted.why = ""

    # -- its end ----------------------------------------------------------------------------------------------------

    def _decide(self, counted: FunctionCalls, phase: str) -> None:
        if phase == WATCHING:
            self._watched_calls += 1
            self._done = self._watched_calls >= WATCH_CALLS or self._recurs(counted)
        elif counted.is_held and self._is_over():
            self.digests.find_dead()
            if any(one.varies_with_batch for one in self.digests.watched if one.type.startswith(HEAVY)):
                self._watch_s = time.monotonic()
            else:
                self._done = True

    def _is_over(self) -> bool:
        """Whether the functions that take the time were called often enough; for a rare one it is not waited long."""
        elapsed = time.monotonic() - self._began_s
        least = LEAST_SHARE * sum(one.spent_s for one in self.counted.values())
        held = [one.is_held for one in self.counted.values() if one.spent_s >= least and one.calls > 1]
        return elapsed >= LEAST_S and (all(held) or (elapsed > ENOUGH_S and any(held)))

    def _recurs(self, counted: FunctionCalls) -> bool:
        """Whether most rows of the newest batches were in earlier ones."""
        batches = [one.recurring[-NEWEST:] for one in self.digests.watched if one.key == counted.key and one.recurring]
        return any(len(last) == NEWEST and min(last) >= RECURS for last in batches) and self._watched_calls >= STEPS

    def tick(self, now_ns: int) -> None:
        """End the process when enough is known."""
        del now_ns
        now = time.monotonic()
        late = self._began_s and now - self._began_s > MOST_S
        watched = self._watch_s and now - self._watch_s > WATCH_S
        eagerly = self.digests.eager.is_enough and all(one.calls < STEPS for one in self.counted.values())
        if self._done or late or watched or eagerly:
            self._done = True
            self.log()  # it may take longer than a process has that leaves
            ending.leave(self.effect.state)

    def log(self) -> None:
        """Write what is known, once."""
        if self._logged:
            return
        self._logged = True
        with self.effect.wall:
            at = self.effect.state.now()
            for watched in list(self.digests.watched):
                if watched.natural:
                    self.effect.state.log(watched.line(at))
            for counted in list(self.counted.values()):
                self.effect.state.log(self._line(counted, at))

    def _line(self, counted: FunctionCalls, at: int) -> dict[str, object]:
        """The line of one function."""
        inputs = [one for one in self.digests.watched if one.key == counted.key and (one.rows or not one.type)]
        recurring = [max(one.recurring[-NEWEST:], default=0.0) for one in inputs if one.rows]
        return {
            "t": "watched-function",
            "at": at,
            "function": counted.key,
            "calls": counted.calls,
            "spent_ns": int(1e9 * counted.spent_s),
            "same_batch_calls": counted.again,
            "why_not_same": counted.why,
            "recurring_ratio": round(min(recurring, default=0.0), 3),
            "left_out": self.digests.left_out,
        }

    def name(self, thing: Foreign, text: str) -> str:
        """A name of a function that no other has."""
        found = self._names.get(thing)
        if found is None:
            taken = sum(one == text or one.startswith(text + " #") for one in self.counted)
            found = "%s #%d" % (text, taken + 1) if taken else text
            self._names.set(thing, found)
        return str(found)


def _arrays(value: Foreign) -> Iterator[Foreign]:
    """The arrays in the arguments of a call."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from _arrays(one)
    elif hasattr(value, "dtype") and hasattr(value, "shape"):
        array = value.numpy() if hasattr(value, "numpy") and not hasattr(value, "assign") else value
        if type(array).__name__ == "ndarray" and array.dtype.kind in "fiubcV":
            yield array


def _attach_functions(trial: ValueTrial, state: AgentState, module: Foreign) -> None:
    context = sys.modules["tensorflow.python.eager.context"].context()
    context.add_op_callback(trial.digests.made)
    state.hooks.on_uninstall(functools.partial(context.remove_op_callback, trial.digests.made))
    main, inside = threading.main_thread().ident, list[bool]()

    def make(original: Foreign) -> Foreign:
        def call(self: Foreign, *args: Foreign, **kwds: Foreign) -> Foreign:
            if threading.get_ident() != main or inside or not eager():
                return original(self, *args, **kwds)
            inside.append(True)
            try:
                key = trial.name(self, _title(self.python_function))
                once = functools.partial(original, self, *args, **kwds)
                return trial.run(key, (args, kwds), once, functools.partial(_again, original, self, args, kwds))
            finally:
                inside.pop()

        return call

    replace(state, module.Function, "__call__", make)


def _title(function: Foreign) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", "tf.function"))


def _again(
    original: Foreign, function: Foreign, args: tuple[Foreign, ...], kwds: dict[str, Foreign]
) -> Callable[[], Foreign]:
    """A function that calls with the same batch."""
    held = [_held(value) for value in args]
    return functools.partial(original, function, *held, **{name: _held(value) for name, value in kwds.items()})


def _held(value: Foreign) -> Foreign:
    """An iterator that repeats the next batch of ``value``; anything else as it is."""
    if not (hasattr(value, "__next__") and hasattr(value, "element_spec")):
        return value
    batch, spec = next(value), value.element_spec
    datasets = sys.modules["tensorflow"].data.Dataset
    return iter(datasets.from_generator(functools.partial(itertools.repeat, batch), output_signature=spec))


def _attach_sessions(trial: ValueTrial, state: AgentState, module: Foreign) -> None:
    inside: list[bool] = []

    def make(original: Foreign) -> Foreign:
        def run(self: Foreign, fetches: Foreign, feed_dict: Foreign = None, *args: Foreign, **kwds: Foreign) -> Foreign:
            if inside or threading.current_thread() is not threading.main_thread():
                return original(self, fetches, feed_dict, *args, **kwds)
            inside.append(True)
            try:
                once = functools.partial(original, self, fetches, feed_dict, *args, **kwds)
                return trial.run(_fetched(fetches), list((feed_dict or {}).values()), once, lambda: once)
            finally:
                inside.pop()

        return run

    replace(state, module.BaseSession, "run", make)


def _fetched(fetches: Foreign) -> str:
    """A run's name: what it fetches."""
    if isinstance(fetches, dict):
        fetches = list(fetches.values())
    if isinstance(fetches, (list, tuple)):
        return ", ".join(map(_fetched, fetches))[:200]
    return os.path.basename(str(getattr(fetches, "name", fetches)))[:80]
