"""Calls that build what runs: models loaded or cloned, SavedModels, graphs and sessions (BUILD, outermost only).

Also the number of ops in the graphs of sessions: read by the agent's thread, so that ``Session.run`` pays nothing.
"""

from __future__ import annotations

import functools
import sys
import weakref
from typing import TYPE_CHECKING

from stepscope.agent.core import frames
from stepscope.agent.probes.common import shared
from stepscope.agent.probes.support import Sites, drop_our_frame, lacking, report
from stepscope.wire.doing import Doing
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

    Attach = Callable[[AgentState, Foreign], None]

DOES = int(Doing.BUILDING)
READ_NS = 250_000_000
"""Interval between two looks at the graphs."""
MORE = 1.1
"""Factor by which each line about a graph lengthens the wait for its next one: some hundred lines in a month."""
MAX_GRAPHS = 8
"""Number of latest graphs watched: for a program that makes one per session, BUILD shows the problem."""


def _attach_builds(owner: str, **roles: str) -> Attach:
    """An ``attach`` that wraps functions that build: of the module, or methods of its class ``owner``."""

    def attach(state: AgentState, module: Foreign) -> None:
        place = getattr(module, owner, None) if owner else module
        why = "no %s" % owner if place is None else ""
        for function, role in roles.items():
            missing = why or lacking(place, function)
            if not missing and function in vars(place):
                state.patch(place, function, _wrap(state, vars(place)[function], function, role))
            why = why or missing
        report(state, "building:%s" % ".".join(part for part in (module.__name__, owner) if part), why)

    return attach


def _wrap(
    state: AgentState,
    original: Callable[..., Foreign],
    function: str,
    role: str,
    made: Callable[[Foreign], object] | None = None,
) -> Callable[..., Foreign]:
    """Wrap a function that builds; ``made`` gets its first argument after the call has succeeded."""
    sites = Sites(state, ("build", function), text=function, role=role)
    local = state.threads.local
    now = state.now
    doing = state.records.doing
    caller = sys._getframe
    kind = int(Kind.BUILD)

    @functools.wraps(original)
    def build(*args: Foreign, **kwargs: Foreign) -> Foreign:
        if getattr(local, "building", False):
            try:
                return original(*args, **kwargs)
            except BaseException as error:
                drop_our_frame(error)
                raise
        local.building = True
        before = doing.begin(DOES)
        flags = 0
        start = now()
        try:
            result = original(*args, **kwargs)
        except BaseException as error:
            flags = drop_our_frame(error)
            raise
        finally:
            spent = now() - start
            local.building = False
            doing.end(before)
            state.write(start, spent, 0, sites.name(_outside(caller(1))), kind, flags, state.thread())
        if made is not None:
            made(args[0])
        return result

    return build


def _outside(frame: FrameType) -> FrameType:
    """The first frame outside the file of ``frame``: a class of TensorFlow's calls its base class."""
    library = frame.f_code.co_filename
    if "/tensorflow/" not in library or frames.is_own(library):
        return frame
    while frame.f_back is not None and frame.f_code.co_filename == library:
        frame = frame.f_back
    return frame


class Graphs:
    """The graphs of the sessions that were made, and when to log their sizes next."""

    def __init__(self, state: AgentState) -> None:
        self._state = state
        self._graphs: list[list[Foreign]] = []
        """[weak reference, id, logged number of ops, time of next log, wait] of each graph."""
        self._looked = 0
        self._watched = False

    def of_session(self, session: Foreign) -> None:
        """Remember the graph of a session that was made."""
        graph = session.graph
        if not hasattr(graph, "num_operations") or any(entry[0]() is graph for entry in self._graphs):
            return
        if not self._watched:
            self._watched = True
            self._state.hooks.on_tick(self._state.guard("building.graphs")(self.look))
        self._graphs = [e for e in self._graphs if e[0]() is not None][1 - MAX_GRAPHS :]
        self._graphs.append([weakref.ref(graph), self._state.new_id("graph"), 0, 0, float(READ_NS)])

    def look(self, now_ns: int) -> None:
        """Log the graphs that have grown; on the agent's thread. Cost: below a microsecond a graph."""
        if now_ns - self._looked < READ_NS:
            return
        self._looked = now_ns
        for entry in self._graphs:
            reference, identity, told, due, wait = entry
            graph = reference()
            if graph is None or now_ns < due:
                continue
            ops = int(graph.num_operations())
            if ops != told:
                entry[2:] = [ops, now_ns + int(wait), wait * MORE]
                self._state.log({"t": "graph", "at": now_ns, "id": identity, "ops": ops})


def attach_session(state: AgentState, module: Foreign) -> None:
    """Patch ``BaseSession.__init__``: a session is made, with a graph."""
    cls = getattr(module, "BaseSession", None)
    why = "no BaseSession" if cls is None else lacking(cls, "__init__", ("self", "target", "graph"))
    if not why:
        graphs = Graphs(state)

        def remember(session: Foreign) -> None:
            graphs.of_session(session)
            reader = shared(state).reader
            if reader is not None:
                reader.session(session.graph)

        made = state.guard("building.session")(remember)
        state.patch(cls, "__init__", _wrap(state, cls.__dict__["__init__"], "Session", "session", made))
    report(state, "building:session", why)


TARGETS = (
    ("keras.src.saving.saving_api", _attach_builds("", load_model="model")),
    ("tf_keras.src.saving.saving_api", _attach_builds("", load_model="model")),
    ("keras.src.models.cloning", _attach_builds("", clone_model="model")),
    ("tf_keras.src.models.cloning", _attach_builds("", clone_model="model")),
    ("tensorflow.python.saved_model.load", _attach_builds("", load="saved_model")),
    ("tensorflow.python.saved_model.loader_impl", _attach_builds("SavedModelLoader", load="saved_model")),
    ("tensorflow.python.framework.importer", _attach_builds("", import_graph_def="graph")),
    ("tensorflow.python.training.saver", _attach_builds("Saver", restore="variables")),
    ("tensorflow.python.client.session", attach_session),
)
