"""The probe of Keras' models attaches where TensorFlow computes, and nowhere else."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from tests.agent.conftest import Armed

from stepscope.model.log.events import AgentDiagnostic, Framework, Probe

CONFIG = """
def backend():
    return %r
"""
MODEL = """
class Model:
    def __call__(self, x): return x
"""
OPTIMIZER = """
class BaseOptimizer:
    def apply_gradients(self, grads_and_vars): pass
"""


def _keras(folder: Path, backend: str) -> None:
    """As much of Keras as the probe touches."""
    files = {
        "backend/config.py": CONFIG % backend,
        "models/model.py": MODEL,
        "optimizers/base_optimizer.py": OPTIMIZER,
    }
    for name, text in files.items():
        path = folder / "keras" / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        (path.parent / "__init__.py").write_text("")
    (folder / "keras" / "src" / "__init__.py").write_text("")
    lines = "import keras.src.backend.config, keras.src.models.model, keras.src.optimizers.base_optimizer"
    (folder / "keras" / "__init__.py").write_text(lines + "\n__version__ = '3.15.1'\n")


@pytest.mark.parametrize("backend", ["torch", "jax"])
def test_keras_on_another_framework_is_left_as_it_is(armed: Armed, tmp_path: Path, backend: str) -> None:
    """Without TensorFlow there is no error, no patch and no probe that is missing; the backend is told."""
    _keras(tmp_path, backend)
    program = f"""
    import sys
    sys.path.insert(0, {str(tmp_path)!r})
    import keras
    print(keras.src.models.model.Model()(3), hasattr(keras.src.models.model.Model.__call__, "__wrapped__"))
    """
    result = armed.start(textwrap.dedent(program))
    assert (result.stdout, result.stderr) == ("3 False\n", "")
    (process,) = armed.processes()
    assert process.of(AgentDiagnostic) == []
    assert [probe.name for probe in process.of(Probe) if "model_calls" in probe.name] == []
    assert [line.detail for line in process.of(Framework) if line.detail] == [backend]
