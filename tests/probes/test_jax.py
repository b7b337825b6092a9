"""What the probes record of a training by JAX, where it is installed."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from tests.probes.conftest import PYTHON

from stepscope.agent.probes.jax import jit_calls
from stepscope.model.log.events import AgentDiagnostic, Probe, Traced
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign

    Run = Foreign
    """A ``Recorded`` of conftest."""


@pytest.fixture(scope="module")
def run(recorded: Callable[[str], Run]) -> Run:
    """The program ``jax_training``."""
    if subprocess.run([PYTHON, "-c", "import jax"], capture_output=True, check=False).returncode:
        pytest.skip(f"jax is not installed for {PYTHON}")
    return recorded("jax_training")


@pytest.mark.slow
def test_a_real_training(run: Run) -> None:
    """Results and JAX's own compilations are those of a plain run; steps, reads and compilations are the program's."""
    assert (run.result.returncode, run.result.stdout) == (0, run.plain.stdout), run.result.stderr
    assert run.all(AgentDiagnostic) == []
    probes = {p.name: p.attached for p in run.all(Probe)}
    assert (probes["compilations"], probes["waits"]) == (True, True)
    steps = [one for one in run.records if one.kind == Kind.FUNCTION]
    assert len(steps) == (30 if probes[jit_calls.PROBE] else 0)
    assert {one.name.text for one in steps} <= {"step"}
    reads = [one for one in run.records if one.kind == Kind.SYNC and one.name.text == "float"]
    assert 0 < len(reads) <= 20  # short ones are only counted while calls repeat
    assert len({one.name.call_line for one in reads if one.name.call_line}) == 1
    made = [one for one in run.all(Traced) if one.function == "step"]
    assert [(one.cause, one.argument, one.before, one.after) for one in made] == [
        ("first", "", "", ""),
        ("shape", "x", "(8, 4)", "(16, 4)"),
    ]


@pytest.mark.slow
def test_jitted_calls_are_seen_where_python_looks_at_their_class(run: Run) -> None:
    """Before Python 3.12 the probe says why it is not attached."""
    version = subprocess.run(
        [PYTHON, "-c", "import sys; print(sys.version_info >= (3, 12))"], capture_output=True, text=True, check=True
    )
    (line,) = (p for p in run.all(Probe) if p.name == jit_calls.PROBE)
    assert line.attached == (version.stdout.strip() == "True")
    assert line.attached or "past their class" in line.why
