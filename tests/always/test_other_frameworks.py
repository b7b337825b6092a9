"""Jobs of PyTorch and JAX: they are measured and sampled, and nothing of theirs stays."""

from __future__ import annotations

import pytest
from tests.always.conftest import Environment, wait_for

from stepscope.sessions.bundle import open_session
from stepscope.wire.kinds import Kind

STEPS = """
import os, sys, time
import torch.optim.optimizer
print("ready", flush=True)
optimizer = torch.optim.optimizer
while not os.path.exists("stop"):
    for hook in optimizer.BEFORE + optimizer.AFTER: hook(None, (), {})
    time.sleep(0.005)
"""
"""Steps of an optimizer until the file `stop` exists."""
LAUNCHER = """
import subprocess, sys
import torch
sys.exit(subprocess.run([sys.executable, "steps.py"]).returncode)
"""
"""As torchrun: it imports PyTorch and makes no step; its worker does."""
OPTIMIZER = """
BEFORE, AFTER = [], []
class Handle:
    def remove(self): pass
def register_optimizer_step_pre_hook(hook):
    BEFORE.append(hook)
    return Handle()
def register_optimizer_step_post_hook(hook):
    AFTER.append(hook)
    return Handle()
"""
"""``torch.optim.optimizer``, as much of it as the probe touches."""


@pytest.fixture
def torch(environment: Environment) -> Environment:
    """An enabled environment with what looks like PyTorch, and JAX, in the folder of its jobs."""
    optim = environment.folder / "torch" / "optim"
    optim.mkdir(parents=True)
    (optim.parent / "__init__.py").write_text("")
    (optim / "__init__.py").write_text("")
    (optim / "optimizer.py").write_text(OPTIMIZER)
    (environment.folder / "jax.py").write_text("")
    (environment.folder / "steps.py").write_text(STEPS)
    done = environment.enable()
    assert done.returncode == 0, done.stderr
    assert "PyTorch" in done.stdout
    return environment


@pytest.mark.parametrize("program", ["steps.py", "launcher.py"])
def test_steps_are_measured_and_nothing_stays(torch: Environment, program: str) -> None:
    """Of the job itself, and of a worker of one that only launches; the run directory goes when the session stands."""
    (torch.folder / "launcher.py").write_text(LAUNCHER)
    process = torch.start(torch.folder / program)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    wait_for(lambda: list(torch.sessions.glob("*.stepscope")), "a session")
    (torch.folder / "stop").write_text("")
    _, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    wait_for(lambda: not torch.runs(), "the run directory to go")
    (path,) = torch.finished()
    session = open_session(path)
    assert sum(int((worker.records.kind == Kind.APPLY).sum()) for worker in session.workers) > 0
    assert all(int((worker.records.kind == Kind.SAMPLE).sum()) > 0 for worker in session.workers)
    assert (session.manifest.mode, session.manifest.state) == ("enable", "finished")


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_a_program_of_a_moment_leaves_nothing(torch: Environment, framework: str) -> None:
    """No sidecar has been started for it, and its run directory goes with it."""
    program = f"import {framework}\nfrom stepscope.agent import state; print(state.CURRENT is not None)"
    assert torch.run(program) == ("True\n", "", 0)
    assert torch.runs() == []
    assert not torch.sessions.exists()
