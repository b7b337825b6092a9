"""PyTorch's backward passes, with modules that behave as its do: what is recorded, and what is left alone."""

from __future__ import annotations

import sys
import traceback
import types
from typing import TYPE_CHECKING

import pytest
from tests.agent.conftest import Armed, Record, read_process

from stepscope.agent.core import compiling
from stepscope.agent.probes.torch import backward
from stepscope.wire.kinds import Flag, Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

PACKAGE = """
def backward(tensor, keep=False):
    return _engine_run_backward((tensor,), keep, accumulate=True)
"""


def engine(t_outputs: Foreign, keep: bool, *, accumulate: bool) -> Foreign:
    """Computes gradients: those of a function by its call."""
    (tensor,) = t_outputs
    return tensor() if callable(tensor) else (tensor, keep, accumulate)


class Torch:
    """As much of PyTorch as the probe touches."""

    def __init__(self, patch: pytest.MonkeyPatch, frames: Foreign) -> None:
        self.graph = types.ModuleType("torch.autograd.graph")
        self.package = types.ModuleType("torch.autograd")
        vars(self.graph)["_engine_run_backward"] = vars(self.package)["_engine_run_backward"] = engine
        exec(PACKAGE, vars(self.package))
        native = types.ModuleType("torch._C")
        vars(native)["_dynamo"] = types.SimpleNamespace(eval_frame=frames)
        for module in (self.graph, self.package, native):
            patch.setitem(sys.modules, module.__name__, module)
        self.backward: Callable[..., Foreign] = vars(self.package)["backward"]

    @property
    def engines(self) -> tuple[Foreign, Foreign]:
        """What the two modules hold."""
        return vars(self.package)["_engine_run_backward"], vars(self.graph)["_engine_run_backward"]


def older(skipped: list[Foreign]) -> Foreign:
    """PyTorch up to 2.5."""
    return types.SimpleNamespace(skip_code=skipped.append, get_eval_frame_callback=lambda: None)


def newer(skipped: list[Foreign]) -> Foreign:
    """PyTorch 2.6 and later."""
    return types.SimpleNamespace(
        get_eval_frame_callback=lambda: None,
        _FrameAction=types.SimpleNamespace(SKIP="skip", DEFAULT="default"),
        _FrameExecStrategy=lambda *actions: actions,
        set_code_exec_strategy=lambda code, how: skipped.append(code) if how == ("skip", "default") else None,
    )


def written(armed: Armed) -> list[Record]:
    """Records of backward passes."""
    (folder,) = (armed.folder / "procs").iterdir()
    return read_process(folder).kinds(Kind.AUTOGRAD)


@pytest.mark.parametrize("frames", [older, newer])
def test_a_pass_is_timed(
    opened: AgentState, armed: Armed, monkeypatch: pytest.MonkeyPatch, frames: Callable[[list[Foreign]], Foreign]
) -> None:
    """Arguments and result are the job's; the compiler leaves our frame alone; both modules have one function."""
    skipped: list[Foreign] = []
    torch = Torch(monkeypatch, frames(skipped))
    opened.attach("torch.backward", backward.attach, torch.package)
    assert torch.engines[0] is torch.engines[1]
    assert skipped == [torch.engines[0].__code__]
    for keep in (True, False, True):
        assert torch.backward(3, keep) == (3, keep, True)
    assert len(written(armed)) == 3
    assert all(record.dur_ns > 0 for record in written(armed))
    opened.uninstall()
    assert torch.engines == (engine, engine)


def test_an_error_is_the_jobs(opened: AgentState, armed: Armed, monkeypatch: pytest.MonkeyPatch) -> None:
    """It passes without a frame of ours, and is flagged."""
    torch = Torch(monkeypatch, older([]))
    opened.attach("torch.backward", backward.attach, torch.package)
    with pytest.raises(ZeroDivisionError) as caught:
        torch.backward(lambda: 1 // 0)
    files = {frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)}
    assert files == {"<string>", __file__} or sys.version_info < (3, 11)
    assert [record.flags for record in written(armed)] == [Flag.RAISED]


def test_nothing_is_recorded_while_the_compiler_reads(
    opened: AgentState, armed: Armed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may read the job's call through ours, or look at what is called after a graph break."""
    frames = older([])
    torch = Torch(monkeypatch, frames)
    looks: list[str] = []
    frames.get_eval_frame_callback = lambda: looks[0] if looks else None
    opened.attach("torch.backward", backward.attach, torch.package)
    with monkeypatch.context() as patch:
        patch.setattr(compiling, "is_compiling", lambda: True)
        assert torch.backward(3) == (3, False, True)
    looks.append("a callback")
    assert torch.backward(3) == (3, False, True)
    assert written(armed) == []


def test_in_gaps_the_engine_is_the_jobs(opened: AgentState, armed: Armed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of ours runs there."""
    torch = Torch(monkeypatch, older([]))
    opened.attach("torch.backward", backward.attach, torch.package)
    opened.patches.detach(frozenset())
    assert torch.engines == (engine, engine)
    torch.backward(3)
    opened.patches.reattach()
    torch.backward(3)
    assert len(written(armed)) == 1


@pytest.mark.parametrize("other", ["compiler", "orders", "engine", "graph"])
def test_of_another_pytorch_nothing_is_replaced(
    opened: AgentState, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    """Where the compiler takes no orders, or the function is not where it was, the log says why."""
    frames = older([])
    if other in {"compiler", "orders"}:
        delattr(frames, "get_eval_frame_callback" if other == "compiler" else "skip_code")
    torch = Torch(monkeypatch, frames)
    if other == "engine":
        del vars(torch.package)["_engine_run_backward"]
    if other == "graph":
        vars(torch.graph)["_engine_run_backward"] = lambda t_outputs: None
    before = [vars(module).get("_engine_run_backward") for module in (torch.package, torch.graph)]
    lines: list[dict[str, Foreign]] = []
    monkeypatch.setattr(opened, "log", lines.append)
    opened.attach("torch.backward", backward.attach, torch.package)
    assert [vars(module).get("_engine_run_backward") for module in (torch.package, torch.graph)] == before
    (line,) = [line for line in lines if line["t"] == "probe"]
    assert (line["attached"], bool(line["why"])) == (False, True)
