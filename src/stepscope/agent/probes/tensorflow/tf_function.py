"""Calls and traces of tf.functions, with the reason of each retrace.

A call is recorded if it comes from Python that executes eagerly, outside tracing. A trace is one call of
``tracing_compilation._create_concrete_function``: the look-ups around it run on every call and mean nothing. The reason
of a retrace is the difference between the ``function_type`` of this trace and of the one before it.
"""

from __future__ import annotations

import functools
import re
import sys
import weakref
from typing import TYPE_CHECKING

from stepscope.agent.core import frames
from stepscope.agent.core.weak_ids import WeakIds
from stepscope.agent.inputs import CALLS
from stepscope.agent.probes.common import inputs_of, shared
from stepscope.agent.probes.sources import data_function
from stepscope.agent.probes.support import (
    REPEATS,
    defined,
    drop_our_frame,
    eager_test,
    examples,
    graph_stack,
    is_open,
    lacking,
    name_of,
    owner,
    report,
    user_stack,
)
from stepscope.agent.probes.tensorflow.signatures import change, text_of
from stepscope.agent.probes.variants import NO_ITERATOR, FunctionState, grown, updates_of
from stepscope.agent.shapes import LEAST_NS, shape_of, shapes_of, varies
from stepscope.wire.doing import Doing
from stepscope.wire.kinds import Flag, Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

DOES = int(Doing.TRACING)
SIGNATURE_LIMIT = 400
MAX_REPEATS = 20_000
XLA_COMPILE = "_XlaMustCompile"  # attribute of functions with jit_compile; source: polymorphic_function/attributes.py
LOOK_ARGS = 3
LOOK_FIRST = 5
LOOK_EVERY = 32
"""Calls between two look-ups of the leading dimension, after the first calls: a look-up costs 2 us."""

POLYMORPHIC = "tensorflow.python.eager.polymorphic_function.polymorphic_function"
CONCRETE = "tensorflow.python.eager.polymorphic_function.concrete_function"
TRACING = "tensorflow.python.eager.polymorphic_function.tracing_compilation"
_INFERENCE = re.compile(r"^__(?:inference|forward|backward)_(.*?)_\d+$")


class History:
    """The traces of one Function object."""

    __slots__ = ("key", "ordinal", "previous", "scope")

    def __init__(self, key: int) -> None:
        self.key = key
        self.ordinal = 0
        self.previous: Foreign = None
        """Type of the arguments of the newest trace."""
        self.scope: Foreign = None
        """Weak reference to the ``TracingOptions`` of that trace: they lead to all that the function holds."""


def attach_calls(state: AgentState, module: Foreign) -> None:
    """Patch ``Function.__call__``."""
    cls = getattr(module, "Function", None)
    why = "no Function" if cls is None else lacking(cls, "__call__", ("self",))
    if not why:
        entries = WeakIds()

        def make(function: Foreign) -> FunctionState:
            execution = shared(state).executions.get(function)
            python = getattr(function, "_python_function", None)
            where = defined(python)
            # A function restored from a SavedModel is one function of TensorFlow's, under the name that the user gave.
            given = str(getattr(function, "_name", ""))
            text = given if given and owner(where["file"]) == "tensorflow" else name_of(python, given)
            name = state.name(("function", text, where["file"], where["line"]), text, **where)
            return FunctionState(name if execution is None else execution.name, execution, {"text": text, **where})

        original = cls.__dict__["__call__"]
        hot = (int(Kind.FUNCTION), state.duty_cycle.light(Kind.FUNCTION, original))
        state.patch(cls, "__call__", _wrap_call(state, original, entries, make), hot)
        _remember_options(state, cls)
    report(state, "tf_function.calls", why)


def attach_concrete(state: AgentState, module: Foreign) -> None:
    """Patch ``ConcreteFunction.__call__``: signatures of loaded models, and results of get_concrete_function."""
    cls = getattr(module, "ConcreteFunction", None)
    why = "no ConcreteFunction" if cls is None else lacking(cls, "__call__", ("self",))
    if not why:
        entries = WeakIds()

        def make(function: Foreign) -> FunctionState:
            text = str(getattr(function, "name", "")) or "concrete function"
            if isinstance(getattr(function, "name", ""), bytes):
                text = function.name.decode("utf-8", "replace")
            match = _INFERENCE.match(text)
            text = match.group(1) if match else text
            return FunctionState(state.name(("concrete", text), text), None)

        original = cls.__dict__["__call__"]
        hot = (int(Kind.FUNCTION), state.duty_cycle.light(Kind.FUNCTION, original))
        state.patch(cls, "__call__", _wrap_call(state, original, entries, make), hot)
    report(state, "tf_function.concrete", why)


def _wrap_call(  # noqa: C901, PLR0915 - hot: one frame, and no calls but the needed ones
    state: AgentState, original: Callable[..., Foreign], entries: WeakIds, make: Callable[[Foreign], FunctionState]
) -> Callable[..., Foreign]:
    """Wrap ``__call__`` of a Function, or of a ConcreteFunction."""
    local = shared(state).local
    iterators = shared(state).iterators.entries
    distributed = shared(state).iterators.entry_of_distributed
    eager = eager_test()
    graphs = graph_stack()
    now = state.now
    write = state.write
    thread = state.thread
    known = entries.entries
    function_kind = int(Kind.FUNCTION)
    execution_kind = int(Kind.EXECUTION)
    traced = int(Flag.TRACED)
    nested = int(Flag.NESTED)
    raised = int(Flag.RAISED)
    shapes = shapes_of(state)
    inputs = inputs_of(state)
    asked = state.guard("tf_function.shape")
    looked = state.guard("tf_function.batch")
    caller = sys._getframe

    def meet(function: Foreign) -> FunctionState:
        entry = FunctionState(0, None)
        with state.guard("tf_function.meet"):
            entry = make(function)
            signature = getattr(function, "structured_input_signature", None) or getattr(
                function, "input_signature", None
            )
            entry.batched, entry.shapes = is_open(signature), varies(signature)
            entries.set(function, entry)
        return entry

    def slot_of(args: tuple[Foreign, ...]) -> int:
        """The position of the first iterator among the first few arguments."""
        for slot, arg in enumerate(args[:LOOK_ARGS]):
            if id(arg) in iterators or distributed(arg) is not None:
                state.duty_cycle.forbid()  # each call takes batches, which must be counted
                return slot
        return NO_ITERATOR

    @functools.wraps(original)
    def call(self: Foreign, *args: Foreign, **kwds: Foreign) -> Foreign:  # noqa: C901, PLR0912, PLR0915 - as above
        me = local.me
        hit = known.get(id(self))
        if me.tracing or ((hit is None or graphs.stack) and not eager()):
            try:
                return original(self, *args, **kwds)
            except BaseException as error:
                drop_our_frame(error)
                raise
        entry = hit[1] if hit is not None else meet(self)
        execution = entry.execution
        traces = me.traces
        inside = me.execution
        depth = me.function
        me.function = depth + 1
        flags = nested if depth else 0
        consumed: Foreign = None
        if execution is not None:
            me.execution = inside + 1
            held = (iterators.get(id(args[0])) or distributed(args[0])) if args else None
            if held is not None:
                consumed = held[1]
                consumed.running += 1
                if consumed.loop is not me.loop:
                    consumed.enter(me.loop)
        elif args and not inside:
            if entry.calls <= LOOK_FIRST:
                entry.slot = slot_of(args)
            if not depth and entry.calls + 1 in CALLS:
                with looked:
                    about = entry.about or {}
                    inputs.look((args, kwds), of="%s:%s" % (about.get("file", ""), about.get("line", "")))
            if entry.slot < len(args):
                held = iterators.get(id(args[entry.slot])) or distributed(args[entry.slot])
                if held is not None:
                    consumed = held[1]
                    consumed.running += 1
        start = now()
        try:
            return original(self, *args, **kwds)
        except BaseException as error:
            flags |= drop_our_frame(error)
            raise
        finally:
            spent = now() - start
            me.function = depth
            if me.traces != traces:
                flags |= traced
                with state.guard("tf_function.variants"):
                    entry.variants = grown(state, entry, me, args, kwds, caller(1))
            me.thread = number = me.thread or thread()
            if consumed is not None:
                consumed.ended += 1
                consumed.running -= 1
            if execution is not None:
                me.execution = inside
                write(start, spent, execution.batches_now(me.loop), entry.name, execution_kind, flags, number)
            elif not inside or flags & traced:
                entry.calls = calls = entry.calls + 1
                samples = examples(args, batched=entry.batched) if calls <= LOOK_FIRST or not calls % LOOK_EVERY else 0
                variants = entry.variants
                name = entry.name if variants is None else variants.name(args, kwds, caller(1))
                if spent >= LEAST_NS and not flags & raised and (entry.shapes or variants is not None):
                    with asked:
                        flags |= shapes.flags(shape_of(args) or shape_of(kwds))
                write(start, spent, samples, name, function_kind, flags, number)

    return call


def _remember_options(state: AgentState, cls: Foreign) -> None:
    """Note which Function object each ``TracingOptions`` belongs to."""
    method = "_generate_scoped_tracing_options"
    why = lacking(cls, method, ("self", "scope", "scope_type"))
    if why:
        report(state, "tf_function.options", why)
        return
    original = cls.__dict__[method]
    common = shared(state)

    @functools.wraps(original)
    def generate(self: Foreign, *args: Foreign, **kwargs: Foreign) -> Foreign:
        try:
            options = original(self, *args, **kwargs)
        except BaseException as error:
            drop_our_frame(error)
            raise
        with state.guard("tf_function.options"):
            history = common.histories.get(self)
            if history is None:
                history = History(state.new_id("function"))
                common.histories.set(self, history)
            common.options.set(options, (history, weakref.ref(self)))
        return options

    state.patch(cls, method, generate)


def attach_traces(state: AgentState, module: Foreign) -> None:
    """Patch ``tracing_compilation._create_concrete_function``."""
    name = "_create_concrete_function"
    why = lacking(module, name, ("function_type", "type_context", "func_graph", "tracing_options"))
    if not why:
        state.patch(module, name, _wrap_create(state, module._create_concrete_function))
    report(state, "tf_function.traces", why)


class Traces:
    """Logs each trace: what is traced, why again, and for whom."""

    def __init__(self, state: AgentState) -> None:
        self._state = state
        self._options = shared(state).options
        self._local = shared(state).local
        self._repeats: dict[tuple[int, str], int] = {}
        self._definitions: dict[str, int] = {}
        """Place of a Python function -> key of the first Function object that traced it."""

    def begin(self, function_type: Foreign, options: Foreign) -> dict[str, Foreign]:
        """The fields of the ``trace`` line that are known before the trace."""
        known = self._options.get(options)
        history = known[0] if known is not None else History(self._state.new_id("function"))
        function = known[1]() if known is not None else None
        python = options.python_function if function is None else function._python_function
        where = defined(python)
        whose = owner(where["file"])
        if whose == "tf.data":
            python = data_function(python) or python
            where = defined(python)
        place = "%s:%d" % (where["file"], where["line"])
        loop = self._local.me.loop
        brief = False
        if loop is not None and whose != "user" and len(self._repeats) < MAX_REPEATS:
            key = (loop.name, place)
            self._repeats[key] = times = self._repeats.get(key, 0) + 1
            brief = times > REPEATS
        line = {
            "function": name_of(python, str(options.name)),
            "function_key": history.key,
            "definition_key": place,
            "file": where["file"],
            "line": where["line"],
            "end_line": where["end_line"],
            "owner": whose,
            "jit": bool((getattr(options, "attributes", None) or {}).get(XLA_COMPILE)),
            "signature": "" if brief else text_of(function_type, SIGNATURE_LIMIT),
            **self._reason(history, function_type, options, self._definitions.setdefault(place, history.key)),
            "stack": [] if brief else user_stack(),
        }
        history.previous = function_type
        history.scope = weakref.ref(options)
        return line

    @staticmethod
    def _reason(history: History, function_type: Foreign, options: Foreign, first_key: int) -> dict[str, Foreign]:
        """``ordinal``, ``cause`` and the change. A first call that makes variables traces twice, which counts once."""
        again = history.previous is not None and options is not history.scope() and function_type == history.previous
        if not again:
            history.ordinal += 1
        if history.ordinal == 1:
            made_again = first_key != history.key and not again
            return {"ordinal": 1, "cause": "new-function" if made_again else "first"}
        cause, argument, before, after = change(history.previous, function_type)
        return {"ordinal": history.ordinal, "cause": cause, "argument": argument, "before": before, "after": after}

    def end(self, identity: int, outer: int, start: int, spent: int, line: dict[str, Foreign], graph: Foreign) -> None:
        """Write the TRACE record and the ``trace`` line; ``updates`` is added to ``line``."""
        state = self._state
        where = {key: line[key] for key in ("file", "line", "end_line")}
        key = ("trace", line["function"], line["definition_key"])
        name = state.name(key, line["function"], own=frames.is_own(line["file"]), **where)
        state.write(start, spent, identity, name, int(Kind.TRACE), 0, state.thread())
        nodes, variables = int(getattr(graph, "version", 0)), len(getattr(graph, "_weak_variables", ()))
        updates = updates_of(graph)
        self._local.me.updated |= updates > 0
        line["updates"] = updates
        made = {"nodes": nodes, "variables": variables}
        state.log({"t": "trace", "at": start, "id": identity, "dur": spent, **made, "outer": outer, **line})


def _wrap_create(state: AgentState, original: Callable[..., Foreign]) -> Callable[..., Foreign]:
    common = shared(state)
    local = common.local
    traces = Traces(state)
    now = state.now
    doing = state.records.doing

    def create(function_type: Foreign, type_context: Foreign, func_graph: Foreign, tracing_options: Foreign) -> Foreign:
        me = local.me
        outer = me.trace_id
        line: dict[str, Foreign] = {}
        identity = 0
        with state.guard("tf_function.begin"):
            line = traces.begin(function_type, tracing_options)
            identity = state.new_id("trace")
        me.trace_id = identity
        me.tracing += 1
        before = doing.begin(DOES)
        reader = common.reader
        if reader is not None:
            reader.running.add(identity)
        made = None
        start = now()
        try:
            made = original(function_type, type_context, func_graph, tracing_options)
        except BaseException as error:
            drop_our_frame(error)
            raise
        else:
            return made
        finally:
            spent = now() - start
            me.tracing -= 1
            doing.end(before)
            me.traces += 1
            me.trace_id = outer
            if line:
                with state.guard("tf_function.end"):
                    traces.end(identity, outer, start, spent, line, func_graph)
            if reader is not None:
                reader.running.discard(identity)
                if made is not None and line:
                    with state.guard("graph_nodes.traced"):
                        reader.traced(func_graph, made, {**line, "id": identity, "outer": outer})

    common.lines.bound(create.__code__)
    return functools.wraps(original)(create)


TARGETS = (
    (POLYMORPHIC, attach_calls),
    (CONCRETE, attach_concrete),
    (TRACING, attach_traces),
)
