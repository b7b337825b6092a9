"""Short looks at code that runs op by op: which ops take long, compute what is known, copy a whole for a part.

The report's op traces name no line of an eager op, and no argument. A *look* has each op of one thread noted: its time,
whether it gave this result before (``core.same_ops``), and for a long one the user's line and the layer. It ends after
some seconds, or with as many ops as the time since such code began allows (``BUDGET_RATIO``). Looks come ever more
rarely. Between them nothing is patched.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

from stepscope.agent.core.op_look import LOOK_NS, MOST_OPS, Look
from stepscope.agent.core.same_ops import SameOps
from stepscope.agent.probes.support import drop_our_frame, lacking, report
from stepscope.wire.kinds import Trait, kinds_with

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

FAST, EXECUTE = "TFE_Py_FastPathExecute", "TFE_Py_Execute"
"""Functions through which all eager ops run: called as ``(context, op, name, *inputs and attributes)`` and as
``(context, device, op, inputs, attributes, number of outputs)``."""
TRIGGERS = frozenset(map(int, (*kinds_with(Trait.BY_LINE), *kinds_with(Trait.CALLED))))
"""Calls around which eager ops run."""
NO_CALLS = frozenset(map(int, (*kinds_with(Trait.OURS), *kinds_with(Trait.IDLE))))
"""Samples and garbage collections are no calls of the job: eager ops that no wrapper sees make hundreds of them."""
NEWEST = 256
"""Newest records that say which thread runs them."""
SPARSE = 16
"""Newest calls of which fewer than one in so many is such a call show no eager code: Keras' compiled fit waits for a
value once an epoch."""
LOOKS_AT_S = (1.0, 3.0, 8.0, 20.0, 45.0, 100.0, 220.0, 480.0)
"""When looks begin, since the first such call."""
SECOND_NS = 1_000_000_000
EVERY_NS = 500_000_000
"""How often the newest records are looked at."""
LEAST_OPS = 300
NOTE_NS = 15_000
"""What noting an op takes, with a line to look up for every third. Measured: 10 to 20 us, against 100 us that such an
op takes from Python."""
BUDGET_RATIO = 0.0012
"""Share of the time since the first such call that a look may take."""
FEW_OPS = 8
"""With fewer, the look says nothing of the code that runs."""


class EagerOpLooks:
    """All looks of one process; ``tick`` on the agent's thread."""

    def __init__(self, state: AgentState, module: Foreign) -> None:
        self._state = state
        self._module = module
        self._since = 0
        """When a call around which eager ops run was first seen; 0: not yet."""
        self._done = 0
        self._due_ns = 0
        self._look: Look | None = None
        self._originals: dict[str, Foreign] = {}
        self._rules: dict[str, str] = {}

    def tick(self, now_ns: int) -> None:
        """Begin a look, or end it."""
        look = self._look
        if look is not None:
            if look.over or now_ns - look.began > LOOK_NS:
                self.end()
        elif now_ns >= self._due_ns and self._done < len(LOOKS_AT_S):
            self._due_ns = now_ns + EVERY_NS
            if now_ns - self._since >= LOOKS_AT_S[self._done] * SECOND_NS:
                self._due(now_ns)

    def _due(self, now_ns: int) -> None:
        records = self._state.records
        _, newest = records.since(max(0, records.written() - NEWEST), NEWEST)
        threads = [record[6] for record in newest if record[4] in TRIGGERS]
        calls = sum(record[4] not in NO_CALLS for record in newest)
        if (
            not threads
            or SPARSE * len(threads) < calls
            or any(hasattr(vars(self._module).get(name), "__wrapped__") for name in (FAST, EXECUTE))
        ):
            return
        if not self._since:
            self._since = now_ns
            return
        self._done += 1
        most = max(LEAST_OPS, min(MOST_OPS, int(BUDGET_RATIO * (now_ns - self._since) / NOTE_NS)))
        self._begin(max(set(threads), key=threads.count), most)

    def _begin(self, thread: int, most: int) -> None:
        state = self._state
        self._look = look = Look(state.now, thread, most, same_ops(self._rules), scope_of)
        names = vars(self._module)
        self._originals = {name: names[name] for name in (FAST, EXECUTE)}
        for name, parts in ((FAST, fast_parts), (EXECUTE, execute_parts)):
            setattr(self._module, name, _noting(state, look, self._originals[name], parts))

    def end(self) -> None:
        """Restore what the look replaced, and log what it saw."""
        look, self._look = self._look, None
        if look is None:
            return
        look.over = True
        for name, original in self._originals.items():
            setattr(self._module, name, original)
        if look.ops >= FEW_OPS:
            self._state.lines.write(look.told())


def scope_of() -> str:
    """Names of the layers, or of the user's scopes, around the running op: ``net/encoder/conv1d``."""
    context: Foreign = sys.modules.get("tensorflow.python.eager.context")
    return str(context.context().scope_name or "").rstrip("/")


def same_ops(rules: dict[str, str]) -> SameOps:
    """The numbers of a look's results; ``rules`` is kept from look to look."""
    ops: Foreign = sys.modules["tensorflow.python.framework.ops"]
    registry: Foreign = sys.modules["tensorflow.python.framework.op_def_registry"]
    context: Foreign = sys.modules["tensorflow.python.eager.context"]

    @functools.lru_cache(maxsize=None)
    def stateful(op: str) -> bool | None:
        known = registry.get(op)
        return bool(known.is_stateful) if known is not None else None

    return SameOps(ops.EagerTensor, stateful, lambda name: context.context().get_function_def(name), rules)


def fast_parts(args: tuple[Foreign, ...]) -> tuple[str, tuple[Foreign, ...]]:
    """(op, inputs and attributes) of the arguments of ``FAST``."""
    return args[1], args[3:]


def execute_parts(args: tuple[Foreign, ...]) -> tuple[str, tuple[Foreign, ...]]:
    """The same of ``EXECUTE``."""
    name = args[2]
    return (name.decode() if type(name) is bytes else name), (*args[3], *(args[4] or ()))


def _noting(
    state: AgentState,
    look: Look,
    original: Callable[..., Foreign],
    parts: Callable[[tuple[Foreign, ...]], tuple[str, tuple[Foreign, ...]]],
) -> Callable[..., Foreign]:
    now = state.now
    thread = state.thread
    caller = sys._getframe
    guard = state.guard("eager_ops.note")

    @functools.wraps(original)
    def execute(*args: Foreign) -> Foreign:
        start = now()
        try:
            results = original(*args)
        except BaseException as error:
            drop_our_frame(error)
            raise
        end = now()
        if not look.over and thread() == look.thread:
            with guard:
                op, given = parts(args)
                look.note(op, given, results, start, end, caller(1))
        return results

    return execute


def attach(state: AgentState, module: Foreign) -> None:
    """Look at eager ops now and then."""
    why = lacking(module, FAST) or lacking(module, EXECUTE)
    if not why:
        looks = EagerOpLooks(state, module)
        state.hooks.on_tick(looks.tick)
        state.hooks.on_finish(looks.end)
        state.hooks.on_uninstall(looks.end)
    report(state, "eager_ops", why)


TARGETS = (("tensorflow.python.pywrap_tfe", attach),)
