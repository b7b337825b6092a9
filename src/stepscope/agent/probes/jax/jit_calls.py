"""Calls of jitted functions by the program, each a moment (FUNCTION without a duration): the turns of its loops.

What a call computes ends later, and nothing here waits for it: the time of the call itself says nothing of the work.
Functions in C make the calls, and Python looks at their class for ``__call__`` from Python 3.12 on; before that, a
program's calls cannot be seen. Calls that JAX itself makes, such as those of ``jax.numpy``, and those of Keras are no
turns. Flax and Equinox call for the line of the program that calls them.

JAX leaves our file out where it looks for the program's lines, as others' wrappers ask it to (``register_exclusion``).
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

from stepscope.agent.core import frames
from stepscope.agent.probes.support import MAX_SITES, defined, drop_our_frame, leaf, name_of, report
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

    Site = tuple[int, CodeType]

PROBE = "jit_calls"
ROLE = "jit"
SINCE = (3, 12)
"""The Python from which on a class's new ``__call__`` counts for its calls from Python. Source: C API, "Vectorcall"."""
INSIDE = frozenset({"jax", "jaxlib", "keras", "tf_keras"})
"""Packages whose own calls are no turns of the program's loops."""
PASSED = frozenset({"flax", "equinox", "optax"})
"""Packages that call a jitted function for the program."""
LIBRARIES = INSIDE | PASSED
OF_LIBRARY = INSIDE | {"optax"}
"""Packages whose functions are no turns, from wherever they are called, such as ``jnp.tanh``."""
WINDOW = 64
"""Turns after which JAX's own calls are compared with them."""
WINDOWS = 3
"""Windows in a row with too many of them."""
MOST_INSIDE = 2
"""JAX's own calls for each turn: with more of them a turn would cost over 10 us (2.4 us each, 3.8 for the turn)."""
MOST_ALONE = 20_000
"""JAX's own calls before the first window has ended, as where a program starts: 50 ms in all."""
NO_TURN = 0
"""In the place of a name: a call that is no turn."""


def attach(state: AgentState, module: Foreign) -> None:
    """Patch ``PjitFunction.__call__``."""
    del module
    client = sys.modules.get("jaxlib._jax") or sys.modules.get("jaxlib.xla_extension")
    cls = getattr(client, "PjitFunction", None)
    original: Foreign = vars(cls).get("__call__") if cls is not None else None
    why = "Python %d.%d calls jitted functions past their class" % sys.version_info[:2]
    if sys.version_info >= SINCE:
        why = "" if callable(original) else "no PjitFunction.__call__"
    if not why:
        for place in ("source_info_util", "traceback_util"):
            exclude = getattr(sys.modules.get("jax._src." + place), "register_exclusion", None)
            if callable(exclude):
                exclude(__file__)
        state.patch(cls, "__call__", _wrap(state, original))
    report(state, PROBE, why)


class Leave:
    """Takes the wrapper out where JAX's own calls, which it only lets through, cost more than the turns are worth."""

    __slots__ = ("_over", "_state", "inside", "turns")

    def __init__(self, state: AgentState) -> None:
        self._state = state
        self._over = 0
        self.inside = 0
        """JAX's own calls since the last look."""
        self.turns = 0
        """The program's calls since then."""

    def look(self) -> None:
        """At the end of a window, on the program's thread: ops of a start or of a pause are in one window."""
        self._over = self._over + 1 if self.inside > MOST_INSIDE * self.turns else 0
        self.inside = self.turns = 0
        if self._over >= WINDOWS:
            self._go()

    def tick(self, now_ns: int) -> None:
        """On the agent's thread: a program may have no turns at all."""
        del now_ns
        if self.inside > MOST_ALONE:
            self._go()

    def _go(self) -> None:
        self.inside = self.turns = self._over = 0
        self._state.uninstall(PROBE)
        report(
            self._state, PROBE, "JAX's own calls (jax.numpy outside of jitted functions) are too many to be looked at"
        )


class Turns:
    """Which calls are turns of the program's loops, by the places that make them."""

    __slots__ = ("_ours", "_state", "inside", "sites")

    def __init__(self, state: AgentState) -> None:
        self._state = state
        self._ours = state.guard(PROBE + ".call")
        self.sites: dict[tuple[int, int], Site] = {}
        """(name, code) by (id of the code, last instruction) of the calling frame."""
        self.inside: dict[int, CodeType] = {}
        """Codes whose calls are no turns, by id."""

    def meet(self, function: Foreign, frame: FrameType) -> int:
        """The name of a call that is met for the first time, or is made for the program; both are remembered."""
        with self._ours:
            if _package(frame) in INSIDE:
                if len(self.inside) >= MAX_SITES:
                    self.inside.clear()
                self.inside[id(frame.f_code)] = frame.f_code
                return NO_TURN
            outer = _outside(frame)
            key = (id(outer.f_code), outer.f_lasti)
            site = self.sites.get(key)
            if site is None:
                if len(self.sites) >= MAX_SITES:
                    self.sites.clear()
                of_library = str(getattr(function, "__module__", "")).partition(".")[0] in OF_LIBRARY
                name = NO_TURN if of_library else _name(self._state, function, outer)
                site = self.sites[key] = (name, outer.f_code)
            return site[0]
        return NO_TURN


def _wrap(state: AgentState, original: Callable[..., Foreign]) -> Callable[..., Foreign]:
    turns = Turns(state)
    inside = turns.inside
    known = turns.sites
    now = state.now
    write = state.write
    thread = state.thread
    caller = sys._getframe
    kind = int(Kind.FUNCTION)
    cycle = state.duty_cycle
    counts = cycle.light(Kind.FUNCTION, now)
    ours = state.guard(PROBE + ".call")
    leave = Leave(state)
    state.hooks.on_tick(leave.tick)

    def turn(name: int) -> None:
        if cycle.detached:
            counts()
        else:
            write(now(), 0, 0, name, kind, 0, thread())
        leave.turns += 1
        if leave.turns >= WINDOW:
            with ours:
                leave.look()

    @functools.wraps(original)
    def call(self: Foreign, *args: Foreign, **kwargs: Foreign) -> Foreign:
        frame = caller(1)
        code = frame.f_code
        name = NO_TURN
        if id(code) not in inside:
            site = known.get((id(code), frame.f_lasti))
            name = site[0] if site is not None else turns.meet(self, frame)
        if name != NO_TURN:
            turn(name)
        else:
            leave.inside += 1
        try:
            return original(self, *args, **kwargs)
        except BaseException as error:
            drop_our_frame(error)
            raise

    return call


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__")).partition(".")[0]


def _outside(frame: FrameType) -> FrameType:
    """The innermost frame from ``frame`` on that is none of the packages that call for the program."""
    found: FrameType | None = frame
    while found is not None and _package(found) in LIBRARIES:
        found = found.f_back
    return found or frame


def _name(state: AgentState, function: Foreign, frame: FrameType) -> int:
    file, called_in, line = leaf(frames.user_stack(1, frame))
    text = name_of(function)
    return state.name(
        ("jit", text, file, line),
        text,
        role=ROLE,
        call_file=file,
        call_line=line,
        call_function=called_in,
        **defined(function),
    )


TARGETS = (("jax.numpy", attach),)
