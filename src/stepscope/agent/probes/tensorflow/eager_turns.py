"""What marks the turns of a loop that runs op by op, and of which nothing else is recorded: one of its ops.

A solver in plain TensorFlow need not call a function, take a gradient or read a value. If nothing that may be a step
has been recorded for some seconds, the agent's thread has the ops of a short *look* noted, and picks the function of
TensorFlow that runs an op the fewest times, at least ``MIN_TURNS`` and evenly. From then on each call of it has a
record, with the user's line. A loop of a thousand ops a turn has one more call into Python for it, not a thousand.
"""

from __future__ import annotations

import functools
import sys
from _thread import get_ident
from typing import TYPE_CHECKING

from stepscope.agent.probes.common import shared
from stepscope.agent.probes.support import Sites, drop_our_frame, eager_test, lacking, outside, report
from stepscope.agent.quiet import Quiet
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

    Op = tuple[CodeType, dict[str, Foreign], int]
    """The function that runs the op, its module's names, and the calling thread."""

EXECUTE = "TFE_Py_FastPathExecute"
QUIET_NS = 2_000_000_000
"""Time without a record of anything that may be a step, after which there is a look."""
EVERY_NS = 500_000_000
LOOK_NS = 1_500_000_000
MOST_OPS = 4_000
"""Ops noted in a look: 2 to 4 ms of the job's time."""
MIN_OPS = 200
"""Fewer ops in a look make no loop that runs op by op."""
MIN_TURNS = 8
MOST_LOOKS = 4
EVEN_FACTOR = 5
"""Number of ops between two of the picked function, in medians, from which its calls are bursts: a part of a turn."""
OPS_MODULE = "tensorflow.python.ops."
"""Modules that call the functions that run ops by an attribute of their module: there a replacement takes effect."""


def picked(ops: list[Op]) -> Op | None:
    """The function that marks the turns of the thread that ran most ops; None if none does."""
    threads = [op[2] for op in ops]
    busiest = max(set(threads), key=threads.count, default=0)
    places: dict[CodeType, list[int]] = {}
    known: dict[CodeType, Op] = {}
    for place, op in enumerate(op for op in ops if op[2] == busiest):
        places.setdefault(op[0], []).append(place)
        known.setdefault(op[0], op)
    if threads.count(busiest) < MIN_OPS:
        return None
    able = [
        code for code, at in places.items() if len(at) >= MIN_TURNS and _even(at) and _place(known[code]) is not None
    ]
    return known[min(able, key=lambda code: len(places[code]))] if able else None


def _place(op: Op) -> Foreign:
    """The module in which the function can be replaced; None if it has another name there, or a wrapper around it."""
    code, names, _ = op
    module = sys.modules.get(str(names.get("__name__")))
    found = module is not None and vars(module) is names
    return module if found and getattr(names.get(code.co_name), "__code__", None) is code else None


def _even(places: list[int]) -> bool:
    """Whether the same number of ops lies between most neighbours."""
    apart = sorted(places[at] - places[at - 1] for at in range(1, len(places)))
    return apart[-1] <= EVEN_FACTOR * apart[len(apart) // 2]


class EagerTurns:
    """The looks of this process, and the op that they picked."""

    def __init__(self, state: AgentState, module: Foreign) -> None:
        self._state = state
        self._module = module
        self._looks = 0
        self._quiet = Quiet(state)
        self._since = 0
        """Since when nothing that may be a step has been recorded; 0: not looked yet."""
        self._due = 0
        self._until = 0
        """When the running look ends; 0: none runs."""
        self._ops: list[Op] = []
        self._original: Foreign = None

    def tick(self, now_ns: int) -> None:
        """On the agent's thread: begin a look, or end it."""
        if self._until:
            if now_ns >= self._until or len(self._ops) >= MOST_OPS:
                self.end()
                if len(self._ops) < MIN_OPS:  # imports, or one long step: it cost next to nothing
                    self._looks -= 1
                self._mark(picked(self._ops))
                self._ops = []
        elif self._looks < MOST_LOOKS and now_ns >= self._due:
            self._due = now_ns + EVERY_NS
            self._since = max(self._since or now_ns, self._quiet.last(now_ns))
            free = not hasattr(vars(self._module)[EXECUTE], "__wrapped__")  # no other look runs
            if free and now_ns - self._since >= QUIET_NS << self._looks:
                self._begin(now_ns)

    def _begin(self, now_ns: int) -> None:
        self._looks += 1
        self._since = now_ns
        self._until = now_ns + LOOK_NS
        self._original = vars(self._module)[EXECUTE]
        setattr(self._module, EXECUTE, _noting(self._original, self._ops))

    def end(self) -> None:
        """Restore what a look replaced."""
        if self._until:
            setattr(self._module, EXECUTE, self._original)
        self._until = 0

    def _mark(self, op: Op | None) -> None:
        """Record the calls of a function from now on."""
        module = _place(op) if op is not None else None
        if op is None or module is None:
            return
        name = op[0].co_name
        original: Foreign = op[1].get(name)
        self._looks = MOST_LOOKS
        hot = (int(Kind.OP), self._state.duty_cycle.light(Kind.OP, original))
        self._state.patch(module, name, _wrap(self._state, original, name), hot)
        report(self._state, "eager_turns:%s" % name)


def _noting(original: Callable[..., Foreign], ops: list[Op]) -> Callable[..., Foreign]:
    """``original``, with the functions of TensorFlow that call it noted."""
    caller = sys._getframe

    @functools.wraps(original)
    def execute(*args: Foreign, **kwargs: Foreign) -> Foreign:
        if len(ops) < MOST_OPS:
            frame = caller(1)
            above = frame.f_back
            if above is not None and str(above.f_globals.get("__name__")).startswith(OPS_MODULE):
                ops.append((frame.f_code, frame.f_globals, get_ident()))
        try:
            return original(*args, **kwargs)
        except BaseException as error:
            drop_our_frame(error)
            raise

    return execute


def _wrap(state: AgentState, original: Callable[..., Foreign], name: str) -> Callable[..., Foreign]:
    local = shared(state).local
    eager = eager_test()
    sites = Sites(state, ("op", name), text=name)
    now = state.now
    write = state.write
    caller = sys._getframe
    kind = int(Kind.OP)

    @functools.wraps(original)
    def run(*args: Foreign, **kwargs: Foreign) -> Foreign:
        me = local.me
        flags = 0
        start = now()
        try:
            return original(*args, **kwargs)
        except BaseException as error:
            flags = drop_our_frame(error)
            raise
        finally:
            spent = now() - start
            if not (me.tracing or me.call or me.function) and me.loop is None and eager():
                me.thread = thread = me.thread or state.thread()
                write(start, spent, 0, sites.name(outside(caller(1))), kind, flags, thread)

    return run


def attach(state: AgentState, module: Foreign) -> None:
    """Watch for a loop of which nothing is recorded."""
    why = lacking(module, EXECUTE)
    if not why:
        turns = EagerTurns(state, module)
        state.hooks.on_tick(turns.tick)
        state.hooks.on_uninstall(turns.end)
    report(state, "eager_turns", why)


TARGETS = (("tensorflow.python.pywrap_tfe", attach),)
