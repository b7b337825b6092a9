"""PyTorch's backward passes: each run of its autograd engine from Python, on whatever thread (AUTOGRAD).

``Tensor.backward``, ``torch.autograd.backward`` and ``grad`` end in one private function, which two modules hold;
PyTorch exchanges both itself, while it traces (``torch.compiler``). No name that users call is replaced: its compiler
knows those by identity. A run inside of another one (checkpoints) has a record in that one. Records name no line: to
walk to the user's frame costs as much as the record, and stack samples show the line.

Where PyTorch's compiler looks at frames nothing is recorded, and it leaves the wrapper's frame alone: it would compile
it, and all that it calls, as the job's code (``probes.torch_frames``). Without a PyTorch that takes that order nothing
is measured.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

from stepscope.agent.core import compiling
from stepscope.agent.probes.support import drop_our_frame, lacking, report
from stepscope.agent.probes.torch_frames import compiler_looks, left_alone
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

ENGINE = "_engine_run_backward"
PROBE = "backward"


def attach(state: AgentState, _module: Foreign) -> None:
    """Patch the function that runs the engine, in both modules that hold it. PyTorch has it since 2.2."""
    package, module = sys.modules.get("torch.autograd"), sys.modules.get("torch.autograd.graph")
    why = lacking(package, ENGINE, ("t_outputs",))
    if not why and getattr(module, ENGINE, None) is not getattr(package, ENGINE):
        why = "torch.autograd.graph has another %s" % ENGINE
    looks = compiler_looks()
    if not why and looks is None:
        why = "nothing says whether the compiler looks at frames"
    if not why and looks is not None:
        wrapped = _wrap(state, getattr(package, ENGINE), looks)
        why = left_alone(wrapped.__code__)
    if not why:
        for owner in (module, package):
            state.patch(owner, ENGINE, wrapped, (int(Kind.AUTOGRAD), None))
    report(state, PROBE, why)


def _wrap(state: AgentState, original: Callable[..., Foreign], looks: Callable[[], object]) -> Foreign:
    name = state.name((PROBE,), PROBE)
    now = state.now
    write = state.write
    thread = state.thread
    kind = int(Kind.AUTOGRAD)

    @functools.wraps(original)
    def run(*args: Foreign, **kwargs: Foreign) -> Foreign:
        if compiling.is_compiling() or looks() is not None:
            try:
                return original(*args, **kwargs)
            except BaseException as error:
                drop_our_frame(error)
                raise
        flags = 0
        start = now()
        try:
            return original(*args, **kwargs)
        except BaseException as error:
            flags = drop_our_frame(error)
            raise
        finally:
            spent = now() - start
            write(start, spent, 0, name, kind, flags, thread())

    return run


TARGETS = (("torch.compiler", attach),)
