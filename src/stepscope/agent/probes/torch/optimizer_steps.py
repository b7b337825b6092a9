"""The end of each ``Optimizer.step`` of PyTorch, by its own hook for all optimizers: the turns of a training loop.

A moment (APPLY without a duration), named by the user's line: what the call computes ends later, on a device, and
nothing here waits for it. A step is an optimizer's step: gradients that are accumulated over several batches make one.
Optimizers at other lines have other names; an evaluation has none.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from stepscope.agent.core import compiling
from stepscope.agent.probes.support import Sites, lacking, report
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

REGISTER = "register_optimizer_step_post_hook"
ROLE = "optimizer"


def attach(state: AgentState, module: Foreign) -> None:
    """Register the hook; PyTorch has it since 2.1."""
    why = lacking(module, REGISTER, ("hook",))
    if not why:
        leaving: list[bool] = []
        handle = getattr(module, REGISTER)(_hook(state, leaving))
        # From inside the hook it stays where it is, without effect: PyTorch walks its hooks at that moment.
        state.hooks.on_uninstall(lambda: None if leaving else handle.remove())
    report(state, "optimizer_steps", why)


def _hook(state: AgentState, leaving: list[bool]) -> Callable[[Foreign, Foreign, Foreign], None]:
    """The hook; ``leaving`` is not empty while it makes the agent leave: a job of PyTorch has no thread of ours."""
    sites = Sites(state, "optimizer", text="optimizer step", role=ROLE)
    now = state.now
    write = state.write
    thread = state.thread
    caller = sys._getframe
    kind = int(Kind.APPLY)
    ours = state.guard("optimizer_steps.hook")
    tracing = compiling.test()
    off = state.hooks.off

    def hook(_optimizer: Foreign, _args: Foreign, _kwargs: Foreign) -> None:
        if tracing():
            return
        at = now()
        with ours:
            if at >= off.due_ns:
                leaving.append(True)
                off.look(at)
                leaving.pop()
            write(at, 0, 0, sites.name(_outside(caller(1))), kind, 0, thread())

    return hook


def _outside(frame: FrameType) -> FrameType:
    """The innermost frame from ``frame`` on that is not PyTorch's: schedulers and scalers call the step, too."""
    found: FrameType | None = frame
    while found is not None and str(found.f_globals.get("__name__")).startswith("torch."):
        found = found.f_back
    return found or frame


TARGETS = (("torch.optim.optimizer", attach),)
