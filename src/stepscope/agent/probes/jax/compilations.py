"""What JAX traces, lowers and compiles, by its own listeners (``jax.monitoring``): none is called in the steady state.

A program is one TRACE record, from the start of its tracing to the end of its compilation, and one ``trace`` line. JAX
says a phase when it has ended: phases of one name that follow each other on a thread are one program, and what was
traced inside of another trace is a part of it. A trace that nothing compiles, as of ``jax.eval_shape``, has a record
when the next program is compiled, or at the end.

The function and its arguments are read from the variables of the JAX function that traces; where they are not found,
only the name is known, and no reason. ``jax_explain_cache_misses`` is not used: it writes to the job's log.
"""

from __future__ import annotations

import functools
import sys
import weakref
from typing import TYPE_CHECKING

from stepscope.agent.core import frames
from stepscope.agent.core.guard import MAX_FAILURES
from stepscope.agent.core.other_frames import variables
from stepscope.agent.probes.support import lacking, leaf, report, user_stack
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from types import FrameType

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

    Arguments = dict[str, tuple[str, str]]
    """Shape and type of each argument, by its name."""

REGISTER = "register_event_duration_secs_listener"
LISTENERS = "_event_duration_secs_listeners"
TRACED = "/jax/core/compile/jaxpr_trace_duration"
LOWERED = "/jax/core/compile/jaxpr_to_mlir_module_duration"
COMPILED = "/jax/core/compile/backend_compile_duration"
DEPTH = 8
"""Frames between the listener and the function that traces, at most."""
MAX_DEFINITIONS = 4096
MAX_ARGUMENTS = 256
"""Arguments (leaves) of a function that are compared."""
MAX_WAITING = 64
"""Traces of a thread that may still be parts of another one, or be compiled."""


class Program:
    """A program that is being made."""

    __slots__ = ("about", "end", "name", "start")

    def __init__(self, name: str, start: int, end: int, about: dict[str, Foreign]) -> None:
        self.name = name
        self.start = start
        self.end = end
        self.about = about
        """Fields of its ``trace`` line."""


class Definition:
    """What was last traced of one Python function, or of one line that calls JAX's own functions."""

    __slots__ = ("arguments", "function", "key", "ordinal")

    def __init__(self, key: int) -> None:
        self.key = key
        self.ordinal = 0
        self.function: Foreign = None
        """Weak reference to the function; None: not known."""
        self.arguments: Arguments = {}


def attach(state: AgentState, module: Foreign) -> None:
    """Register the listener."""
    why = lacking(module, REGISTER)
    if not why:
        programs = Programs(state)
        getattr(module, REGISTER)(programs.listen)
        state.hooks.on_finish(programs.flush)
        state.hooks.on_uninstall(functools.partial(_leave, module, programs))
    report(state, "compilations", why)


def _leave(module: Foreign, programs: Programs) -> None:
    """Put a function that does nothing in the listener's place: JAX may be walking the list on another thread."""
    found = getattr(module, LISTENERS, None)
    if isinstance(found, list):
        for at, listener in enumerate(found):
            if listener == programs.listen:
                found[at] = _nothing
    programs.left = True


def _nothing(*_args: Foreign, **_more: Foreign) -> None:
    """The listener of an agent that has left."""


class Programs:
    """Puts the phases of each program together."""

    def __init__(self, state: AgentState) -> None:
        self._state = state
        self._waiting: dict[int, list[Program]] = {}
        """Programs that are not compiled yet, by thread."""
        self._known: dict[str, Definition] = {}
        self._ours = state.guard("compilations.listen")
        self.left = False

    def listen(self, event: str, seconds: float, **more: Foreign) -> None:
        """Called by JAX when something has ended that took so many ``seconds``."""
        if self.left or event not in (TRACED, LOWERED, COMPILED):
            return
        with self._ours:
            end = self._state.now()
            start = end - max(0, int(seconds * 1e9))
            name = _plain(str(more.get("fun_name", "")))
            waiting = self._waiting.setdefault(self._state.thread(), [])
            if event == TRACED:
                self._traced(waiting, name, start, end, sys._getframe(1))
            else:
                self._made(waiting, name, start, end, compiled=event == COMPILED)
        if self._state.failures.of("compilations") >= MAX_FAILURES:
            self.left = True

    def flush(self) -> None:
        """Write what nothing has compiled."""
        with self._ours:
            for thread, waiting in self._waiting.items():
                for program in waiting:
                    self._write(program, thread)
                waiting.clear()

    def _traced(self, waiting: list[Program], name: str, start: int, end: int, frame: FrameType) -> None:
        while waiting and waiting[-1].start >= start:
            waiting.pop()
        about = self._about(name, frame)
        waiting.append(Program(str(about["function"]), start, end, about))
        if len(waiting) > MAX_WAITING:
            self._write(waiting.pop(0), self._state.thread())

    def _made(self, waiting: list[Program], name: str, start: int, end: int, *, compiled: bool) -> None:
        last = waiting[-1] if waiting else None
        if last is None or (name and last.name != name) or start < last.start:
            last = Program(name, start, end, self._about(name, None))  # its trace was known before
            waiting.append(last)
        last.end = end
        if compiled:
            thread = self._state.thread()
            for program in waiting:
                self._write(program, thread)
            waiting.clear()

    def _about(self, name: str, frame: FrameType | None) -> dict[str, Foreign]:
        """The fields of a ``trace`` line."""
        function, told, (file, line), arguments = _found(frame)
        name = name or told or "a program"
        stack = user_stack()
        own = bool(file) and frames.is_own(file)
        if not own:
            file, line = "", 0
        caller = leaf(stack)
        key = "%s:%d" % (file, line) if own else "%s at %s:%d" % (name, caller[0], caller[2])
        where = {"file": file, "line": line, "end_line": frames.code_lines(function)[2] if own else 0}
        reason = self._reason(key, function if own else None, arguments)
        signature = ", ".join("%s: %s" % (argument, " ".join(kind)) for argument, kind in list(arguments.items())[:8])
        named = {"function": name, "definition_key": key, "owner": "user" if own else "jax"}
        return {**named, **where, **reason, "signature": signature, "stack": stack}

    def _reason(self, key: str, function: Foreign, arguments: Arguments) -> dict[str, Foreign]:
        known = self._known.get(key)
        if known is None or (function is not None and known.function is not None and known.function() is not function):
            cause = "first" if known is None else "new-function"
            if len(self._known) >= MAX_DEFINITIONS:
                self._known.clear()
            made = self._known[key] = Definition(self._state.new_id("function"))
            made.ordinal, made.arguments = 1, arguments
            made.function = weakref.ref(function) if function is not None else None
            return {"function_key": made.key, "ordinal": 1, "cause": cause}
        before, known.arguments = known.arguments, arguments
        known.ordinal += 1
        cause, argument, old, new = changed(before, arguments)
        found = {"function_key": known.key, "ordinal": known.ordinal, "cause": cause}
        return {**found, "argument": argument, "before": old, "after": new}

    def _write(self, program: Program, thread: int) -> None:
        state, about = self._state, program.about
        identity = state.new_id("trace")
        where = {key: about[key] for key in ("file", "line", "end_line")}
        name = state.name(
            ("trace", program.name, about["definition_key"]), program.name, own=about["owner"] == "user", **where
        )
        spent = program.end - program.start
        state.write(program.start, spent, identity, name, int(Kind.TRACE), 0, thread)
        state.log({"t": "trace", "at": program.start, "id": identity, "dur": spent, **about})


def changed(before: Arguments, after: Arguments) -> tuple[str, str, str, str]:
    """(cause, argument, before, after) of a trace that follows another one of the same function."""
    if before.keys() != after.keys():
        return "structure", "", "", ""
    for argument, (shape, kind) in after.items():
        old = before[argument]
        if old[0] != shape:
            return "shape", argument, old[0], shape
        if old[1] != kind:
            return "dtype", argument, old[1], kind
    return "other", "", "", ""


def _plain(name: str) -> str:
    """``jit(f)``, ``jit_f``: the program of ``f``."""
    if name.startswith("jit(") and name.endswith(")"):
        return name[4:-1]
    return name.removeprefix("jit_")


def _found(frame: FrameType | None) -> tuple[Foreign, str, tuple[str, int], Arguments]:
    """The function that is traced, its name, where it is defined, and its arguments, by the variables of JAX's."""
    for _ in range(DEPTH):
        if frame is None:
            break
        names = frame.f_code.co_varnames
        if "fun" in names and ("dbg" in names or "debug_info" in names):
            return _read(dict(variables(frame)))
        frame = frame.f_back
    return None, "", ("", 0), {}


def _read(values: Foreign) -> tuple[Foreign, str, tuple[str, int], Arguments]:
    told = values.get("dbg") or values.get("debug_info")
    function = values.get("fun")
    function = getattr(function, "f", function)  # linear_util.WrappedFun of older versions
    called, _, source = str(getattr(told, "func_src_info", "") or "").partition(" at ")
    file, _, line = source.rpartition(":")
    place = (frames.absolute(file), int(line)) if line.isdigit() else ("", 0)
    kinds = values.get("in_type") if "in_type" in values else getattr(values.get("avals_ft"), "vals", ())
    names = getattr(told, "arg_names", None) or ()
    arguments: Arguments = {}
    for at, aval in enumerate(tuple(kinds or ())[:MAX_ARGUMENTS]):
        name = str(names[at]) if at < len(names) else "argument %d" % at
        weak = " of Python" if getattr(aval, "weak_type", False) else ""
        shape = ", ".join(map(str, getattr(aval, "shape", ())))
        arguments[name] = "(%s)" % shape, "%s%s" % (getattr(aval, "dtype", ""), weak)
    return function, called, place, arguments


TARGETS = (("jax._src.monitoring", attach),)
