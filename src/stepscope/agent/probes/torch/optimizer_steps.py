"""The end of each ``Optimizer.step`` of PyTorch, by its own hooks for all optimizers: the turns of a training loop.

A moment (APPLY without a duration), named by the user's line, with the time since the hook before the step: what the
call computes may end later, on a device, and nothing here waits for it. A step is an optimizer's step: gradients that
are accumulated over several batches make one. Optimizers at other lines have other names; an evaluation has none.

PyTorch's compiler may read the hook as a part of the job's step. What it reads must not change, and of a counter in C
in the hook's place it warns. So that test comes first and alone, and in gaps of the duty cycle the hook counts.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from stepscope.agent.core import compiling
from stepscope.agent.core.guard import MAX_FAILURES
from stepscope.agent.optimizer_looks import OptimizerLooks
from stepscope.agent.probes.support import Sites, lacking, report
from stepscope.agent.probes.torch_frames import left_alone
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

REGISTER = "register_optimizer_step_post_hook"
REGISTER_BEFORE = "register_optimizer_step_pre_hook"
ROLE = "optimizer"
PROBE = "optimizer_steps"
MAX_PASSED = 1000
"""Functions of PyTorch that are remembered: a program may generate them."""
MAX_BEGUN = 1000
"""Optimizers whose step has begun: those whose steps raise stay in the table."""


def attach(state: AgentState, module: Foreign) -> None:
    """Register the hooks; PyTorch has them since 2.1."""
    why = lacking(module, REGISTER, ("hook",)) or lacking(module, REGISTER_BEFORE, ("hook",))
    if not why:
        handles: list[Foreign] = []

        def leave() -> None:
            for handle in handles:
                _exchange(handle)

        begun: dict[int, int] = {}
        handles.append(getattr(module, REGISTER)(_hook(state, leave, begun)))
        handles.append(getattr(module, REGISTER_BEFORE)(_before(state, begun)))
        state.hooks.on_uninstall(leave)
    report(state, PROBE, why)


def _exchange(handle: Foreign) -> None:
    """Put a function that does nothing in the hook's place.

    PyTorch may be walking its hooks, around this call or on another thread. An entry that goes then raises in the job,
    one that is exchanged does not.
    """
    hooks: dict[int, Foreign] | None = getattr(handle, "hooks_dict_ref", dict)()
    number = getattr(handle, "id", None)
    if hooks and number in hooks:
        hooks[number] = _nothing


def _nothing(_optimizer: Foreign, _args: Foreign, _kwargs: Foreign) -> None:
    """The hook of an agent that has left."""


def _before(state: AgentState, begun: dict[int, int]) -> Callable[[Foreign, Foreign, Foreign], None]:
    """The hook before a step: notes in ``begun`` when it was called, by the optimizer."""
    now = state.now
    cycle = state.duty_cycle

    def before(optimizer: Foreign, _args: Foreign, _kwargs: Foreign) -> None:
        if compiling.is_compiling() or cycle.detached:
            return
        if len(begun) >= MAX_BEGUN:
            begun.clear()
        begun[id(optimizer)] = now()

    left_alone(before.__code__)
    return before


def _hook(
    state: AgentState, leave: Callable[[], object], begun: dict[int, int]
) -> Callable[[Foreign, Foreign, Foreign], None]:
    """The hook after a step; ``leave`` takes both out of PyTorch's hooks."""
    sites = Sites(state, "optimizer", text="optimizer step", role=ROLE)
    known = sites.known
    passed: dict[int, CodeType] = {}
    now = state.now
    write = state.write
    thread = state.thread
    caller = sys._getframe
    kind = int(Kind.APPLY)
    off = state.hooks.off
    cycle = state.duty_cycle
    counts = cycle.light(Kind.APPLY, now)
    ours = state.guard(PROBE + ".hook")
    looks = OptimizerLooks(state.log, now)
    looking = state.guard("optimizer_looks.look")

    def hook(optimizer: Foreign, args: Foreign, kwargs: Foreign) -> None:
        if compiling.is_compiling():
            return
        if cycle.detached:
            counts()
            return
        at = now()
        frame: FrameType | None = caller(1)
        while frame is not None and id(frame.f_code) in passed:
            frame = frame.f_back
        hit = known.get((id(frame.f_code), frame.f_lasti)) if frame is not None else None
        name = (
            hit[0] if hit is not None and at < off.due_ns else look(at, caller(1), optimizer, (*args, *kwargs.values()))
        )
        write(at, 0, at - begun.pop(id(optimizer), at), name, kind, 0, thread())

    def look(at: int, frame: FrameType, optimizer: Foreign, given: tuple[Foreign, ...]) -> int:
        """The name of a step, where it is not known, or it is time to see whether measuring is switched off."""
        name = 0
        with ours:
            off.look(at)
            name = sites.name(_outside(frame, passed))
        if name:
            with looking:
                looks.look(optimizer, name, closure=any(map(callable, given)))
        if state.failures.of(PROBE) >= MAX_FAILURES:
            leave()
        return name

    return hook


def _outside(frame: FrameType, passed: dict[int, CodeType]) -> FrameType:
    """The innermost frame from ``frame`` on that is not PyTorch's: schedulers and scalers call the step, too.

    The functions on the way go into ``passed``, which keeps their code alive, so that its id is not reused.
    """
    found: FrameType | None = frame
    while found is not None and str(found.f_globals.get("__name__")).startswith("torch."):
        if len(passed) < MAX_PASSED:
            passed[id(found.f_code)] = found.f_code
        found = found.f_back
    return found or frame


def attach_compiler(state: AgentState, module: Foreign) -> None:
    """Note the function that says whether the compiler reads the code: its module comes after those with wrappers."""
    found = getattr(module, "is_compiling", None)
    if callable(found):
        compiling.is_compiling = found
    report(state, PROBE + ":compiler", "" if callable(found) else "no is_compiling")


TARGETS = (("torch.optim.optimizer", attach), ("torch.compiler", attach_compiler))
