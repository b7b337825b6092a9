"""What the probes of one process tell each other: the loops and calls that run on a thread, whose iterator is whose.

One ``Shared`` hangs on the ``AgentState``; there is no other state.
"""

from __future__ import annotations

import os
import threading
import time
import types
import weakref
from typing import TYPE_CHECKING

from stepscope.agent.core.weak_ids import WeakIds
from stepscope.agent.graphs.node_lines import Lines
from stepscope.agent.padding import Padding
from stepscope.agent.probes.support import leaf, user_stack

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.graphs.node_reader import Reader
    from stepscope.agent.state import AgentState

OTHER = "__stepscope_other__"
"""On the wrapper of a step function what counts in its stead while it rests, on that the wrapper: both live as long as
the model that they hang on."""


class Loop:
    """One running fit, evaluate, predict or *_on_batch."""

    __slots__ = (
        "batch_at",
        "consumed",
        "epochs",
        "inputs",
        "made",
        "name",
        "outer",
        "role",
        "samples",
        "start",
        "steps",
    )

    def __init__(self, role: str, start: int, outer: Loop | None, name: int = 0) -> None:
        self.role = role
        self.name = name
        """Id of its name, which stands for the user's calling line."""
        self.start = start
        self.outer = outer
        self.samples = 0
        """Samples per epoch, 0 unknown."""
        self.steps = 0
        """Batches per epoch, 0 unknown."""
        self.epochs = 0
        self.inputs = 0
        """Data handlers made inside so far: the first is the loop's own."""
        self.made = 0
        """Datasets made inside so far."""
        self.batch_at = 0
        """Index of the batch that is about to run, as the callbacks were told."""
        self.consumed: list[Foreign] = []
        """``Consumed`` iterators of this loop."""


class Here:
    """Nesting of the probes on one thread."""

    __slots__ = (
        "apply",
        "call",
        "execution",
        "function",
        "generator",
        "hook",
        "loop",
        "making",
        "save",
        "thread",
        "trace_id",
        "traces",
        "tracing",
        "updated",
    )

    def __init__(self) -> None:
        self.thread = 0
        """What ``AgentState.thread`` says, 0 when it has not been asked: a slot is three times as fast."""
        self.loop: Loop | None = None
        self.execution = 0
        self.function = 0
        self.tracing = 0
        """Depth of running traces."""
        self.traces = 0
        """Concrete functions made on this thread so far."""
        self.updated = False
        """Whether one of those that the running call made changes variables."""
        self.trace_id = 0
        """The innermost running trace."""
        self.hook = 0
        """Depth of running hooks, counted once for the list and once for each callback."""
        self.save = 0
        self.call = 0
        self.apply = 0
        self.generator: Foreign = None
        """What ``Dataset.from_generator`` was given, while it runs."""
        self.making: Foreign = None
        """The Python function that is being put into a graph by py_function, see ``py_functions``."""


class Local(threading.local):
    """``me``: the ``Here`` of the calling thread. One lookup of a thread-local costs as much as four of slots."""

    def __init__(self) -> None:
        self.me = Here()

    def after_fork(self) -> None:
        """In a forked child, on its only thread: that thread has another id there."""
        self.me.thread = 0


class Wrapped:
    """The models whose step functions are wrapped (keras_steps), and which of the two hangs on them."""

    def __init__(self) -> None:
        self._entries: list[tuple[weakref.ref[Foreign], str]] = []

    def add(self, model: Foreign, attribute: str) -> None:
        """Remember a model; those that are gone are forgotten."""
        kept = [entry for entry in self._entries if entry[0]() is not None and entry != (weakref.ref(model), attribute)]
        self._entries = [*kept, (weakref.ref(model), attribute)]

    def swap(self, *, rests: bool) -> None:
        """Hang on every model the one of the two that belongs there. What a user has set instead stays."""
        for reference, attribute in list(self._entries):
            names = getattr(reference(), "__dict__", {})
            present = names.get(attribute)
            if isinstance(present, types.FunctionType) is rests and hasattr(present, OTHER):
                names[attribute] = getattr(present, OTHER)


class Shared:
    """What the probes of one process tell each other."""

    def __init__(self) -> None:
        self.local = Local()
        self.executions = WeakIds()
        """tf.function objects that are a Keras step function -> ``Execution`` (keras_steps, read by tf_function)."""
        self.iterators = WeakIds()
        """tf.data iterators -> ``Consumed`` (tf_data)."""
        self.datasets = WeakIds()
        """Datasets -> ``Made`` (tf_data)."""
        self.adapters = WeakIds()
        """Keras' data adapters -> the user's generator or PyDataset behind them (py_functions)."""
        self.histories = WeakIds()
        """tf.function objects -> the ``History`` of their traces (tf_function)."""
        self.options = WeakIds()
        """``TracingOptions`` -> (``History``, Python function) of the tf.function that they belong to."""
        self.sizes = WeakIds()
        """PyDatasets -> the ``batch`` line that waits for the size of their first batch (keras_loops)."""
        self.wrapped = Wrapped()
        self.read_models: Callable[[Loop | None], None] | None = None
        """Reads the iterator models of a loop that is about to end (tf_data_model)."""
        self.padding: Padding | None = None
        """Looks at the arrays that fits and datasets are given (padding)."""
        self.graphs = WeakIds()
        """Graphs -> ``Made``: the lines and layers that made their ops (graph_nodes)."""
        self.lines = Lines(time.monotonic_ns, self.graphs)
        self.reader: Reader | None = None
        """Reads the nodes of graphs (graph_nodes)."""


class Consumed:
    """An iterator and how often it was asked. ``running`` > 0: inside of a call that may ask it."""

    __slots__ = ("ended", "identity", "loop", "name", "reads", "running", "told")

    def __init__(self, identity: int, name: int) -> None:
        self.identity = identity
        self.name = name
        self.ended = 0
        self.running = 0
        self.loop: Loop | None = None
        """The loop that consumed it last."""
        self.reads: list[int] = []
        """(when, ended) of the last read of its model, see ``tf_data_model``."""
        self.told = False
        """Its model cannot be read, and the log says so."""

    def enter(self, loop: Loop | None) -> None:
        """A step function of ``loop`` consumes it."""
        self.loop = loop
        if loop is not None:
            loop.consumed.append(self)


def shared(state: AgentState) -> Shared:
    """The one ``Shared`` of this process' agent."""
    attributes = vars(state)
    found: Shared | None = attributes.get("probes_shared")
    if found is None:
        found = attributes["probes_shared"] = Shared()
        os.register_at_fork(after_in_child=found.local.after_fork)
    return found


def padding_of(state: AgentState) -> Padding:
    """What looks at arrays in this process."""
    common = shared(state)
    if common.padding is None:
        common.padding = Padding(state, lambda: leaf(user_stack()))
    return common.padding
