"""State that the probes of one process share: the running loops and calls of each thread, and who uses which iterator.

One ``SharedState`` hangs on the ``AgentState``; there is no other state.
"""

from __future__ import annotations

import os
import threading
import time
import types
import weakref
from typing import TYPE_CHECKING

from stepscope.agent.core.weak_ids import WeakIds
from stepscope.agent.graphs.node_lines import NodeNotes
from stepscope.agent.inputs import Inputs
from stepscope.agent.padding import Padding
from stepscope.agent.probes.support import leaf, user_stack

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.graphs.node_reader import GraphReader
    from stepscope.agent.state import AgentState

OTHER = "__stepscope_other__"
"""Attribute that links the wrapper of a step function and the counter that replaces it in gaps, in both directions.
Both live as long as the model that holds them."""


class RunningLoop:
    """One running fit, evaluate, predict or *_on_batch."""

    __slots__ = (
        "batch_at",
        "consumed",
        "epochs",
        "inputs",
        "made",
        "name",
        "outer",
        "planned",
        "role",
        "samples",
        "start",
        "steps",
    )

    def __init__(self, role: str, start: int, outer: RunningLoop | None, name: int = 0) -> None:
        self.role = role
        self.name = name
        """Id of its name, which stands for the user's calling line."""
        self.start = start
        self.outer = outer
        self.samples = 0
        """Samples per epoch, 0 if unknown."""
        self.steps = 0
        """Batches per epoch, 0 if unknown."""
        self.epochs = 0
        """Epochs that it has begun."""
        self.planned = 0
        """Epochs that it is asked for, 0 if unknown."""
        self.inputs = 0
        """Number of data handlers made inside so far: the first is the loop's own."""
        self.made = 0
        """Number of datasets made inside so far."""
        self.batch_at = 0
        """Index of the batch that is about to run, as passed to the callbacks."""
        self.consumed: list[Foreign] = []
        """``ConsumedIterator`` iterators of this loop."""


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
        """Cached result of ``AgentState.thread``, 0 if not yet read: a slot is three times as fast."""
        self.loop: RunningLoop | None = None
        self.execution = 0
        self.function = 0
        self.tracing = 0
        """Number of nested traces that are running."""
        self.traces = 0
        """Number of concrete functions made on this thread so far."""
        self.updated = False
        """Whether one of the functions made by the running call changes variables."""
        self.trace_id = 0
        """Id of the innermost running trace."""
        self.hook = 0
        """Depth of running hooks, counted once for the list and once for each callback."""
        self.save = 0
        self.call = 0
        self.apply = 0
        self.generator: Foreign = None
        """Argument of ``Dataset.from_generator`` while it runs."""
        self.making: Foreign = None
        """Python function that py_function is putting into a graph, see ``py_functions``."""


class Local(threading.local):
    """``me``: the ``Here`` of the calling thread. One lookup of a thread-local costs as much as four of slots."""

    def __init__(self) -> None:
        self.me = Here()

    def after_fork(self) -> None:
        """In a forked child, on its only thread: that thread has a new id."""
        self.me.thread = 0


class WrappedModels:
    """The models whose step functions are wrapped (keras_steps), each holding either the wrapper or its counter."""

    def __init__(self) -> None:
        self._entries: list[tuple[weakref.ref[Foreign], str]] = []

    def add(self, model: Foreign, attribute: str) -> None:
        """Remember a model; dead ones are forgotten."""
        kept = [entry for entry in self._entries if entry[0]() is not None and entry != (weakref.ref(model), attribute)]
        self._entries = [*kept, (weakref.ref(model), attribute)]

    def swap(self, *, detached: bool) -> None:
        """Give every model its wrapper, or its counter in a gap. A function that a user has set instead stays."""
        for reference, attribute in list(self._entries):
            names = getattr(reference(), "__dict__", {})
            present = names.get(attribute)
            if isinstance(present, types.FunctionType) is detached and hasattr(present, OTHER):
                names[attribute] = getattr(present, OTHER)


class SharedState:
    """State that the probes of one process share."""

    def __init__(self) -> None:
        self.local = Local()
        self.executions = WeakIds()
        """tf.function objects that are a Keras step function -> ``Execution`` (keras_steps, read by tf_function)."""
        self.iterators = WeakIds()
        """tf.data iterators -> ``ConsumedIterator`` (tf_data)."""
        self.datasets = WeakIds()
        """Datasets -> ``Made`` (tf_data)."""
        self.adapters = WeakIds()
        """Keras' data adapters -> the user's generator or PyDataset behind them (py_functions)."""
        self.histories = WeakIds()
        """tf.function objects -> ``History`` of their traces (tf_function)."""
        self.options = WeakIds()
        """``TracingOptions`` -> (``History``, Python function) of the tf.function that they belong to."""
        self.sizes = WeakIds()
        """PyDatasets -> ``batch`` line that waits for the size of their first batch (keras_loops)."""
        self.wrapped = WrappedModels()
        self.read_models: Callable[[RunningLoop | None], None] | None = None
        """Function that reads the iterator models of a loop that is about to end (tf_data_model)."""
        self.models_now: Callable[[], None] | None = None
        """Function that reads the models of all iterators in use (tf_data_model), for ``memory_watch``."""
        self.padding: Padding | None = None
        """Examiner of the arrays given to fits and datasets (padding)."""
        self.inputs: Inputs | None = None
        """Examiner of the batches given to steps (tf_data, tf_function, session, keras_loops)."""
        self.built = WeakIds()
        """Keras layers -> (file, function, line) that built them (layers, read by memory_watch)."""
        self.graphs = WeakIds()
        """Graphs -> ``Made``: lines and layers that made their ops (graph_nodes)."""
        self.lines = NodeNotes(time.monotonic_ns, self.graphs)
        self.reader: GraphReader | None = None
        """Reader of graph nodes (graph_nodes)."""


class ConsumedIterator:
    """An iterator and the number of its requests. ``running`` > 0: inside a call that may request from it."""

    __slots__ = ("ended", "identity", "loop", "name", "reads", "running", "told")

    def __init__(self, identity: int, name: int) -> None:
        self.identity = identity
        self.name = name
        self.ended = 0
        self.running = 0
        self.loop: RunningLoop | None = None
        """Loop that consumed it last."""
        self.reads: list[int] = []
        """(time, number of ended calls) at the last read of its model, see ``tf_data_model``."""
        self.told = False
        """Whether the log says that its model cannot be read."""

    def enter(self, loop: RunningLoop | None) -> None:
        """Note that a step function of ``loop`` consumes it."""
        self.loop = loop
        if loop is not None:
            loop.consumed.append(self)


def shared(state: AgentState) -> SharedState:
    """The one ``SharedState`` of this process's agent."""
    attributes = vars(state)
    found: SharedState | None = attributes.get("probes_shared")
    if found is None:
        found = attributes["probes_shared"] = SharedState()
        os.register_at_fork(after_in_child=found.local.after_fork)
    return found


def padding_of(state: AgentState) -> Padding:
    """The examiner of arrays in this process."""
    common = shared(state)
    if common.padding is None:
        common.padding = Padding(state, lambda: leaf(user_stack()))
    return common.padding


def inputs_of(state: AgentState) -> Inputs:
    """The examiner of batches in this process."""
    common = shared(state)
    if common.inputs is None:
        common.inputs = Inputs(state, lambda: leaf(user_stack()))
    return common.inputs
