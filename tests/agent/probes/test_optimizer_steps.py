"""Steps of PyTorch's optimizers, with modules that behave as its do: what the hook writes, counts, and leaves alone."""

from __future__ import annotations

import sys
import types
from collections import OrderedDict
from itertools import chain
from typing import TYPE_CHECKING

import pytest
from tests.agent.conftest import Armed, Record, read_process

from stepscope.agent import duty_cycle
from stepscope.agent.core import compiling
from stepscope.agent.probes.torch import optimizer_steps
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

OPTIMIZER = """
class Handle:
    def __init__(self, hooks):
        self.hooks_dict_ref, self.id = (lambda: hooks), len(hooks)

    def remove(self):
        self.hooks_dict_ref().pop(self.id, None)


def register(hook, hooks):
    handle = Handle(hooks)
    hooks[handle.id] = hook
    return handle


def register_optimizer_step_post_hook(hook):
    return register(hook, hooks)


def register_optimizer_step_pre_hook(hook):
    return register(hook, before)


def step(optimizer):
    for hook in before.values():
        hook(optimizer, (), {})
    work()
    for hook in chain(own, hooks.values()):
        hook(optimizer, (), {})
"""
"""As much of PyTorch's module as the probe touches, and how it walks its hooks."""


@pytest.fixture
def module(opened: AgentState) -> Foreign:
    """The module, with our hook."""
    made = types.ModuleType("torch.optim.optimizer")
    vars(made).update(chain=chain, hooks=OrderedDict(), before=OrderedDict(), own=[], work=int)
    exec(OPTIMIZER, vars(made))
    opened.attach("torch.optimizer_steps", optimizer_steps.attach, made)
    return made


def written(armed: Armed, kind: Kind) -> list[Record]:
    """Records of a kind."""
    (folder,) = (armed.folder / "procs").iterdir()
    return read_process(folder).kinds(kind)


def called_by(module: Foreign, name: str) -> Callable[[Foreign], None]:
    """A function of another module of PyTorch that calls the step, as schedulers and scalers do."""
    other = types.ModuleType(name)
    vars(other)["step"] = module.step
    exec("def called(optimizer):\n    step(optimizer)", vars(other))
    found: Callable[[Foreign], None] = vars(other)["called"]
    return found


def test_a_step_is_a_moment_named_by_the_users_line(opened: AgentState, module: Foreign, armed: Armed) -> None:
    """Whoever of PyTorch calls the step: one line has one name, and two lines have two, however often they run."""
    scheduled = called_by(module, "torch.optim.lr_scheduler")
    for _ in range(3):
        module.step(None)
        scheduled(None)
    records = written(armed, Kind.APPLY)
    assert [record.dur_ns for record in records] == [0] * 6
    names = [record.name for record in records]
    assert names == [names[0], names[1]] * 3
    assert names[0] != names[1]


def test_a_step_says_how_long_it_took(opened: AgentState, module: Foreign, armed: Armed) -> None:
    """From the hook before it to the hook after it; one within another has its own time."""
    clock = iter(range(100, 10_000, 100))
    vars(opened)["now"] = lambda: next(clock)
    for hooks in (module.hooks, module.before):
        hooks.clear()
    opened.attach("torch.optimizer_steps", optimizer_steps.attach, module)
    outer, inner = object(), object()
    nested = iter([inner])
    module.work = lambda: [module.step(one) for one in nested]
    module.step(outer)
    assert [record.arg for record in written(armed, Kind.APPLY)] == [100, 300]


def test_a_step_that_began_in_a_gap_has_no_time(opened: AgentState, module: Foreign, armed: Armed) -> None:
    """Its end is known."""
    cycle = opened.duty_cycle
    module.work = lambda: cycle.end(opened.now())
    cycle.tick(opened.now())
    cycle.detached = True
    module.step(None)
    assert [record.arg for record in written(armed, Kind.APPLY)] == [0]


def test_without_a_frame_of_the_users_it_is_still_a_step(opened: AgentState, module: Foreign, armed: Armed) -> None:
    """A thread may run nothing but PyTorch's code."""
    shared = {"f_code": module.step.__code__, "f_globals": vars(module), "f_lasti": 3, "f_lineno": 1}
    outer = types.SimpleNamespace(**shared, f_back=None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "_getframe", lambda _: types.SimpleNamespace(**shared, f_back=outer))
        vars(module)["hooks"].clear()
        opened.attach("torch.optimizer_steps", optimizer_steps.attach, module)
    for _ in range(3):
        module.step(None)
    assert opened.failures.of("optimizer_steps") == 0
    assert len(written(armed, Kind.APPLY)) == 3


def test_the_way_to_a_known_line_is_not_searched(
    opened: AgentState, module: Foreign, armed: Armed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To look at the name of each frame's module costs as much as a record."""
    scheduled = called_by(module, "torch.optim.lr_scheduler")
    searched: list[Foreign] = []
    search: Foreign = optimizer_steps._outside

    def spy(*args: Foreign) -> Foreign:
        searched.append(args)
        return search(*args)

    monkeypatch.setattr(optimizer_steps, "_outside", spy)
    for _ in range(5):
        module.step(None)
        scheduled(None)
    assert (len(searched), len(written(armed, Kind.APPLY))) == (2, 10)


def test_in_gaps_steps_are_counted(opened: AgentState, module: Foreign, armed: Armed) -> None:
    """Nothing is recorded in one, the hook itself counts, and a gap without a step says so."""
    cycle, hooks = opened.duty_cycle, dict(module.hooks)
    cycle.tick(opened.now())
    for steps in (7, 0):
        for _ in range(2000):
            module.step(None)
        cycle.tick(opened.now() + duty_cycle.FIRST_WINDOW_NS)
        assert cycle.detached
        for _ in range(steps):
            module.step(None)
        cycle.end(opened.now())
    assert module.hooks == hooks
    assert len(written(armed, Kind.APPLY)) == 4000
    told = [(record.flags >> 8, record.arg) for record in written(armed, Kind.REST)]
    assert told == [(Kind.EXECUTION, 0), (Kind.APPLY, 7), (Kind.EXECUTION, 0), (Kind.APPLY, 0)]


def test_the_compiler_reads_nothing_that_changes(
    opened: AgentState, module: Foreign, monkeypatch: pytest.MonkeyPatch, armed: Armed
) -> None:
    """While PyTorch's compiler reads the code, the hook asks for nothing else: else it would be compiled again.

    ``torch.compiler`` is imported after the optimizers (PyTorch 2.13).
    """
    monkeypatch.setattr(compiling, "is_compiling", bool)

    class Cycle:
        light = opened.duty_cycle.light

        @property
        def detached(self) -> bool:
            raise AssertionError

    monkeypatch.setitem(vars(opened), "duty_cycle", Cycle())
    vars(module)["hooks"].clear()
    opened.attach("torch.optimizer_steps", optimizer_steps.attach, module)
    compiler = types.SimpleNamespace(is_compiling=lambda: True)
    dict(optimizer_steps.TARGETS)["torch.compiler"](opened, compiler)
    vars(opened)["now"] = lambda: pytest.fail("asked for the time")
    module.step(None)
    monkeypatch.undo()
    assert written(armed, Kind.APPLY) == []


def test_without_a_compiler_nothing_is_compiled(opened: AgentState, module: Foreign, armed: Armed) -> None:
    """Another PyTorch may have no such function: its steps are recorded all the same."""
    dict(optimizer_steps.TARGETS)["torch.compiler"](opened, types.SimpleNamespace())
    module.step(None)
    assert len(written(armed, Kind.APPLY)) == 1


def test_the_agent_leaves_while_hooks_are_walked(opened: AgentState, module: Foreign, armed: Armed) -> None:
    """From another thread, or in the hook itself: PyTorch's walk goes on, and what stays behind does nothing."""

    def leaves(*_: object) -> None:
        opened.hooks.clean_up()

    vars(module)["own"].append(leaves)
    vars(module)["hooks"][-1] = lambda *_: None
    module.step(None)
    module.step(None)
    assert (len(module.hooks), len(module.before)) == (2, 1)
    assert module.hooks[0](None, (), {}) is None
    assert not module.hooks[0].__closure__
    assert not module.before[0].__closure__
    assert written(armed, Kind.APPLY) == []


def test_the_hook_leaves_after_three_failures(opened: AgentState, module: Foreign, armed: Armed) -> None:
    """A hook that cannot do its work costs the job nothing any more, and the log says so."""
    vars(opened)["name"] = None
    for _ in range(5):
        module.step(None)
    assert opened.failures.of("optimizer_steps") == 3
    assert not module.hooks[0].__closure__


@pytest.mark.parametrize("lacks", ["hooks_dict_ref", "id"])
def test_a_hook_that_cannot_leave_does_not_raise(opened: AgentState, armed: Armed, lacks: str) -> None:
    """Another PyTorch may have other handles: the job goes its way, and the log has it."""
    made = types.ModuleType("torch.optim.optimizer")
    vars(made).update(chain=chain, hooks=OrderedDict(), before=OrderedDict(), own=[], work=int)
    exec(OPTIMIZER.replace("return handle", f"del handle.{lacks}; return handle"), vars(made))
    opened.attach("torch.optimizer_steps", optimizer_steps.attach, made)
    vars(opened)["name"] = None
    for _ in range(5):
        made.step(None)
    assert opened.failures.of("optimizer_steps") >= 3
