"""State of a Function object, and names of its calls once it has more than one graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.agent.probes.support import MAX_SITES, Sites

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.probes.common import Here
    from stepscope.agent.state import AgentState

NO_ITERATOR = 1 << 30
UPDATING_OPS = ("AssignVariable", "AssignSubVariable", "ResourceApply", "ResourceScatter", "ResourceSparseApply")
"""Ops of optimizers: their updates are at the end of a graph."""
MAX_OPS_LOOKED_AT = 4_000
UPDATES, READS = "updates", "reads"
"""Roles of calls of a tf.function with several graphs: whether the graph that they run changes variables."""


def updates_of(graph: object) -> int:
    """Number of ops, among the last of a graph, that change variables other than by adding to them, as metrics do."""
    operations = getattr(graph, "get_operations", None)
    if operations is None:
        return 0
    return sum(op.type.startswith(UPDATING_OPS) for op in operations()[-MAX_OPS_LOOKED_AT:])


class Variants:
    """Names of the calls of a tf.function with several graphs, by whether the graph of a call changes variables.

    The graph of a call is identified by the first Python bool or string among its arguments (``training=False``), or by
    the calling line if there is none. Calls for which no graph was made run the first one. Cost: two dict accesses.
    """

    __slots__ = ("_chosen", "_first", "_known", "_names")

    def __init__(self, state: AgentState, about: dict[str, object], *, updates: bool) -> None:
        """``about``: the fields of the function's name line; ``updates``: whether its first graph changes variables."""
        key = ("variant", about["text"], about.get("file"), about.get("line"))
        self._names = {
            updating: Sites(state, (key, role), role=role, **about)
            for updating, role in ((True, UPDATES), (False, READS))
        }
        self._first = updates
        self._known: dict[object, bool] = {}
        self._chosen: int | str | None = None

    def met(self, args: Sequence[object], kwds: dict[str, object], frame: FrameType, *, updates: bool) -> None:
        """Note that a call has made a graph."""
        if self._chosen is None:
            places: list[tuple[int | str, object]] = [*enumerate(args), *kwds.items()]
            self._chosen = next((place for place, value in places if type(value) in (bool, str)), None)
        if len(self._known) < MAX_SITES:
            self._known[self._key(args, kwds, frame)] = updates

    def name(self, args: Sequence[object], kwds: dict[str, object], frame: FrameType) -> int:
        """Id of the name of a call from ``frame``."""
        return self._names[self._known.get(self._key(args, kwds, frame), self._first)].name(frame)

    def _key(self, args: Sequence[object], kwds: dict[str, object], frame: FrameType) -> object:
        chosen = self._chosen
        if chosen is None:
            return (id(frame.f_code), frame.f_lasti)
        given: object = None
        if type(chosen) is str:
            given = kwds.get(chosen)
        elif type(chosen) is int and chosen < len(args):
            given = args[chosen]
        return given if type(given) in (bool, str) else None


class FunctionState:
    """State of one Function object, or of one ConcreteFunction that is called by itself."""

    __slots__ = ("about", "batched", "calls", "execution", "name", "shapes", "slot", "updates", "variants")

    def __init__(self, name: int, execution: Foreign, about: dict[str, object] | None = None) -> None:
        self.name = name
        self.execution = execution
        self.about = about
        """Fields of its name line."""
        self.batched = False
        """Whether its signature leaves the leading dimension open."""
        self.shapes = False
        """Whether its signature leaves any size open, so that one graph serves several shapes."""
        self.updates = False
        """Whether its first graph changes variables."""
        self.variants: Variants | None = None
        """Names of its calls once it has more than one graph."""
        self.calls = 0
        self.slot = NO_ITERATOR
        """Position of the argument that is an iterator, looked up in the first calls."""


def grown(
    state: AgentState, entry: FunctionState, me: Here, args: Sequence[object], kwds: dict[str, object], frame: FrameType
) -> Variants | None:
    """Names of the calls of ``entry`` after one has made a graph; None while it has only its first graph."""
    updates, me.updated = me.updated, False
    found = entry.variants
    if not entry.calls:
        entry.updates = updates
    elif entry.about is not None:
        found = found or Variants(state, entry.about, updates=entry.updates)
        found.met(args, kwds, frame, updates=updates)
    return found
