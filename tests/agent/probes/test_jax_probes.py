"""Probes of JAX, with modules that behave as its do: what they write, and what they leave alone."""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING

import pytest
from tests.agent.conftest import Armed, read_process

from stepscope.agent.probes.jax import compilations, jit_calls, waits
from stepscope.agent.probes.jax.compilations import COMPILED, LOWERED, TRACED
from stepscope.model.log.events import Probe, Traced
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState


class Aval:
    """Shape and type of an argument."""

    def __init__(self, *shape: int, dtype: str = "float32") -> None:
        self.shape, self.dtype, self.weak_type = shape, dtype, False


def step(x: Foreign) -> None:
    """A function of the program's."""


@pytest.fixture
def monitoring(opened: AgentState) -> Foreign:
    """``jax._src.monitoring``, with our listener."""
    made: Foreign = types.ModuleType("jax._src.monitoring")
    made._event_duration_secs_listeners = []
    made.register_event_duration_secs_listener = made._event_duration_secs_listeners.append
    opened.attach("compilations", compilations.attach, made)
    return made


def told(monitoring: Foreign, event: str, seconds: float, **more: str) -> None:
    """What JAX does when something has ended."""
    for listener in monitoring._event_duration_secs_listeners:
        listener(event, seconds, **more)


def traces(monitoring: Foreign, *shape: int, fun: Foreign = step, seconds: float = 0.001, **kind: str) -> None:
    """JAX's function that traces, by the names of its variables."""
    dbg = types.SimpleNamespace(func_src_info=f"step at {__file__}:{step.__code__.co_firstlineno}", arg_names=("x",))
    in_type = (Aval(*shape, **kind),)
    told(monitoring, TRACED, seconds, fun_name="step")
    del fun, dbg, in_type


def compiles(monitoring: Foreign, *shape: int, **more: Foreign) -> None:
    """All phases of a program."""
    traces(monitoring, *shape, **more)
    told(monitoring, LOWERED, 0.0001, fun_name="jit(step)")
    told(monitoring, COMPILED, 0.0001, fun_name="jit(step)")


def logged(armed: Armed) -> list[Traced]:
    """The ``trace`` lines."""
    (folder,) = (armed.folder / "procs").iterdir()
    return [line for line in read_process(folder).lines if isinstance(line, Traced)]


def kinds(armed: Armed, kind: Kind) -> list[Foreign]:
    """Records of a kind."""
    (folder,) = (armed.folder / "procs").iterdir()
    found: list[Foreign] = read_process(folder).kinds(kind)
    return found


def test_a_program_is_one_trace_with_its_reason(monitoring: Foreign, armed: Armed) -> None:
    """Its phases are one record; what changed is said; a function that is made again is another one."""
    for shape in ((8, 4), (9, 4)):
        compiles(monitoring, *shape)
    compiles(monitoring, 9, 4, dtype="int32")
    compiles(monitoring, 9, 4, dtype="int32")
    compiles(monitoring, 9, 4, fun=lambda x: x)
    lines = logged(armed)
    assert [(line.cause, line.argument) for line in lines] == [
        ("first", ""),
        ("shape", "x"),
        ("dtype", "x"),
        ("other", ""),
        ("new-function", ""),
    ]
    assert (lines[1].before, lines[1].after) == ("(8, 4)", "(9, 4)")
    assert {(line.function, line.owner, line.file) for line in lines} == {("step", "user", __file__)}
    assert [record.dur_ns > 1_000_000 for record in kinds(armed, Kind.TRACE)] == [True] * 5


def test_what_is_traced_inside_belongs_to_the_outer(monitoring: Foreign, opened: AgentState, armed: Armed) -> None:
    """And a trace that nothing compiles is written at the end."""
    traces(monitoring, 1, seconds=0.0)
    traces(monitoring, 2, seconds=100.0)
    told(monitoring, LOWERED, 0.0, fun_name="jit(step)")
    told(monitoring, COMPILED, 0.0, fun_name="jit(step)")
    traces(monitoring, 3, seconds=0.0)
    assert len(logged(armed)) == 1
    opened.hooks.finish()
    assert len(logged(armed)) == 2
    assert opened.failures.of("compilations") == 0


def test_without_the_variables_the_name_stands(monitoring: Foreign, armed: Armed) -> None:
    """Another JAX: no reason is claimed; another event is none of ours."""
    told(monitoring, "/jax/other", 1.0)
    told(monitoring, COMPILED, 0.5, fun_name="jit(loss)", platform="cpu")
    (line,) = logged(armed)
    assert (line.function, line.owner, line.cause, line.signature) == ("loss", "jax", "first", "")


def test_an_agent_that_has_left_listens_no_more(monitoring: Foreign, opened: AgentState) -> None:
    """The list keeps its length: JAX may be walking it."""
    opened.uninstall()
    (listener,) = monitoring._event_duration_secs_listeners
    assert listener is compilations._nothing
    told(monitoring, COMPILED, 0.5, fun_name="jit(f)")


def test_a_jax_without_listeners_or_arrays_is_said(opened: AgentState, armed: Armed) -> None:
    """No probe fails on what is missing."""
    empty: Foreign = types.ModuleType("jax.empty")
    compilations.attach(opened, empty)
    waits.attach(opened, empty)
    jit_calls.attach(opened, empty)
    (folder,) = (armed.folder / "procs").iterdir()
    why = {line.name: line.why for line in read_process(folder).lines if isinstance(line, Probe)}
    assert all(why[name] for name in ("compilations", "waits", "jit_calls"))


class Waiting:
    """An array whose value takes longer than what is only counted."""

    def __float__(self) -> float:
        return 2.0

    def item(self, *at: int) -> float:
        return float(len(at))

    def block_until_ready(self) -> Waiting:
        return self


def test_reads_have_the_line_that_waits(opened: AgentState, armed: Armed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each read is recorded while nothing else repeats; results are the array's; what is missing is said."""
    module: Foreign = types.ModuleType("jax._src.array")
    cls: Foreign = type("ArrayImpl", (), dict(vars(Waiting)))
    module.ArrayImpl, module.xc = cls, types.SimpleNamespace(batched_block_until_ready=lambda arrays: None)
    monkeypatch.setitem(sys.modules, "jax._src.array", module)
    opened.attach("waits", waits.attach, module)
    array: Foreign = cls()
    assert (float(array), array.item(1, 2), array.block_until_ready() is array) == (2.0, 2.0, True)
    module.xc.batched_block_until_ready([array])
    assert len(kinds(armed, Kind.SYNC)) == 4
    opened.uninstall()
    assert cls.__float__ is Waiting.__float__


def called_in(package: str, function: Callable[..., object], times: int = 1) -> None:
    """Call it from a module of that package."""
    other = types.ModuleType(package + ".inside")
    exec("def calls(function):\n    return function(1)", vars(other))
    for _ in range(times):
        vars(other)["calls"](function)


@pytest.fixture
def jitted(opened: AgentState, monkeypatch: pytest.MonkeyPatch) -> Foreign:
    """A class like that of jitted functions, with our wrapper."""

    class PjitFunction:
        def __init__(self, name: str, module: str) -> None:
            self.__name__, self.__module__ = name, module

        def __call__(self, *args: Foreign) -> Foreign:
            if not args:
                raise TypeError("no argument")
            return args

    module: Foreign = types.ModuleType("jaxlib._jax")
    module.PjitFunction = PjitFunction
    monkeypatch.setitem(sys.modules, "jaxlib._jax", module)
    monkeypatch.setattr(jit_calls, "SINCE", (3, 0))
    opened.attach("jit_calls", jit_calls.attach, module)
    return PjitFunction


def test_calls_of_the_program_are_moments(jitted: Foreign, armed: Armed) -> None:
    """Those through Flax, too; JAX's own calls and functions are not; an error is the job's, without our frame."""
    train, tanh = jitted("train", __name__), jitted("tanh", "jax._src.numpy")
    for _ in range(3):
        assert train(5) == (5,)
        assert tanh(5) == (5,)
    called_in("flax", train, 2)
    called_in("jax", train, 2)
    with pytest.raises(TypeError, match="no argument") as error:
        train()
    assert [entry.name for entry in error.traceback][1:] == ["__call__"]
    records = kinds(armed, Kind.FUNCTION)
    assert [record.dur_ns for record in records] == [0] * 6
    assert len({record.name for record in records}) == 3


def test_in_gaps_calls_are_counted(jitted: Foreign, opened: AgentState, armed: Armed) -> None:
    """Nothing is recorded in one."""
    train = jitted("train", __name__)
    train(1)
    opened.duty_cycle._begin(opened.now(), 10**9, [int(Kind.FUNCTION)] * 8)
    for _ in range(5):
        train(1)
    opened.duty_cycle.end(opened.now())
    assert len(kinds(armed, Kind.FUNCTION)) == 1
    assert sum(record.arg for record in kinds(armed, Kind.REST)) == 5


@pytest.mark.parametrize("own", [jit_calls.MOST_INSIDE, jit_calls.MOST_INSIDE + 1])
def test_the_wrapper_goes_where_jaxs_own_calls_are_many(jitted: Foreign, opened: AgentState, own: int) -> None:
    """It stays at the bound, and goes beyond it; the class's own method is back then."""
    train = jitted("train", __name__)
    for _ in range(jit_calls.WINDOW * (jit_calls.WINDOWS + 1)):
        called_in("jax", train, own)
        train(1)
    assert hasattr(jitted.__call__, "__wrapped__") == (own <= jit_calls.MOST_INSIDE)


def test_it_goes_where_the_program_has_no_turns(jitted: Foreign, opened: AgentState) -> None:
    """The agent's thread looks."""
    called_in("jax", jitted("add", "jax"), jit_calls.MOST_ALONE + 1)
    for tick in list(opened.hooks.ticks):
        tick(opened.now())
    assert not hasattr(jitted.__call__, "__wrapped__")
