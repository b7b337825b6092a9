"""Lack of memory that nobody catches: told with sizes, never with the message, and the job is as without us."""

from __future__ import annotations

import importlib.util
import textwrap
from pathlib import Path

import pytest
from tests.agent.conftest import Armed

from stepscope.agent.core import memory_limits
from stepscope.agent.probes.python import memory_watch
from stepscope.model.log.memory import MemoryHeld, MemoryLacked

DIES = """
    import numpy as np, stepscope
    stepscope.step()
    def load():
        kept = np.ones((8, 1 << 20))
        return kept, np.ones((1 << 20, 1 << 30))
    load()
"""
OTHER = """
    import stepscope
    stepscope.step()
    raise ValueError("allocating 123456 bytes")
"""


def test_what_was_asked_for_and_what_was_held_is_told(armed: Armed, tmp_path: Path) -> None:
    """Class, size, type, shape and line of what did not fit, and the variables of the function that died."""
    script = tmp_path / "job.py"
    script.write_text(textwrap.dedent(DIES))
    result = armed.start(script)
    (process,) = armed.processes()
    (lacked,) = process.of(MemoryLacked)
    assert lacked.error.endswith("MemoryError")
    assert (lacked.shape, lacked.dtype, lacked.line) == ((1 << 20, 1 << 30), "float64", 6)
    assert lacked.asked_bytes == 8 << 50
    held = process.of(MemoryHeld)
    assert held[-1].reason == "error"
    assert {(row.name, row.bytes, row.function) for row in held[-1].rows} == {("kept", 64 << 20, "load")}
    assert "Traceback" in result.stderr
    assert result.returncode == 1


def test_other_exceptions_are_not_told(armed: Armed, tmp_path: Path) -> None:
    """An exception that is none of memory leaves no line."""
    script = tmp_path / "job.py"
    script.write_text(textwrap.dedent(OTHER))
    armed.start(script)
    (process,) = armed.processes()
    assert process.of(MemoryLacked) + process.of(MemoryHeld) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "allocating tensor with shape[256,32,96,96] and type float on /job:a/device:CPU:0 [[{{node net/Relu}}]]",
            {"shape": [256, 32, 96, 96], "dtype": "float", "device": "CPU:0", "node": "net/Relu"},
        ),
        (
            "Unable to allocate 1.50 GiB for an array with shape (3, 128) and data type float32",
            {"asked_bytes": 3 << 29, "dtype": "float32", "shape": [3, 128]},
        ),
        ("Out of memory while trying to allocate 123456789 bytes.", {"asked_bytes": 123_456_789}),
        ("out of memory", {}),
        (
            "CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 79.18 GiB",
            {"asked_bytes": 512 << 20, "device": "GPU:0"},
        ),
    ],
)
def test_sizes_in_messages(text: str, said: dict[str, object]) -> None:
    """Numbers, types and nodes are taken from the messages of numpy, TensorFlow, XLA and PyTorch."""
    assert memory_watch.sizes(text) == said


def test_limits_of_this_process() -> None:
    """A limit is a number of bytes, or none; the host's memory is known."""
    limit, usage = memory_limits.control_group()
    assert (limit > 0) == bool(usage)
    assert memory_limits.host() > 0
    assert memory_limits.address_space() >= 0


@pytest.mark.parametrize(
    ("groups", "files", "limit"),
    [
        ("0::/job/inner\n", {"job/memory.max": "4096\n", "job/inner/memory.max": "max\n"}, 4096),
        ("4:memory:/job\n0::/\n", {"memory/job/memory.limit_in_bytes": "8192\n"}, 8192),
        ("0::/elsewhere\n", {"memory.max": "max\n"}, 0),
    ],
)
def test_control_groups_of_both_versions(
    groups: str, files: dict[str, str], limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tightest limit of the group and its ancestors counts, by files as v1 and v2 have them."""
    for name, text in files.items():
        path = tmp_path / "fs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "cgroup").write_text(groups)
    monkeypatch.setattr(memory_limits, "_ROOT", str(tmp_path / "fs"))
    monkeypatch.setattr(memory_limits, "_GROUPS", str(tmp_path / "cgroup"))
    assert memory_limits.control_group()[0] == limit


KEEPS = """
    import keras, numpy as np, stepscope, tensorflow as tf

    class Wide(keras.Model):
        def __init__(self):
            super().__init__()
            self.wide = keras.layers.Dense(4096)
        def call(self, x):
            return self.wide(x)

    class Desk:
        def __init__(self):
            self.open = []

    def build():
        model = keras.Sequential()
        model.add(keras.layers.Input((1024,)))
        model.add(keras.layers.Dense(2048))
        model.compile("adam", "mse")
        return model

    def load():
        x = np.ones((1024, 1024, 2), "float32")
        features = tf.Variable(x)
        model = build()
        model.train_on_batch(x[:8, :, 0], np.ones((8, 2048), "float32"))
        own = Wide()
        own(x[:8, :, 0])
        desk = Desk()
        desk.open += [build() for _ in range(3)]
        raise MemoryError

    load()
"""


def test_variables_of_keras_count_for_who_holds_the_model(armed: Armed, tmp_path: Path) -> None:
    """A model counts with its optimizer's variables, with its largest layer and the line that built it."""
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("TensorFlow is not installed in this environment")
    script = tmp_path / "job.py"
    script.write_text(textwrap.dedent(KEEPS))
    armed.start(script)
    (process,) = armed.processes()
    rows = {row.name: row for row in process.of(MemoryHeld)[-1].rows}
    assert (rows["x"].bytes, rows["features"].bytes) == (8 << 20, 8 << 20)
    assert rows["features"].shape == (1024, 1024, 2)
    kernel, bias = 4 * 1024 * 2048, 4 * 2048
    assert 3 * (kernel + bias) <= rows["model"].bytes < 3 * (kernel + bias) + 1024  # Adam has two more of each
    assert (rows["model"].model, rows["model"].layer) == ("Sequential", "Dense")
    assert rows["model"].variable.endswith("/kernel")
    assert rows["model"].built is not None
    assert rows["model"].built[1:] == ("build", 18)
    assert rows["own"].bytes == 2 * kernel + 4 * 4096
    assert (rows["desk.open"].count, rows["desk.open"].model) == (3, "Sequential")
    assert 3 * kernel <= rows["desk.open"].bytes < 3 * kernel + (1 << 20)


@pytest.mark.parametrize(
    ("module", "name", "text", "lacks"),
    [
        ("torch", "OutOfMemoryError", "CUDA out of memory.", True),
        ("mine", "OutOfMemoryError", "CUDA out of memory.", False),
        ("jax.errors", "JaxRuntimeError", "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 5 bytes.", True),
        ("jax.errors", "JaxRuntimeError", "INVALID_ARGUMENT: no", False),
    ],
)
def test_errors_that_say_that_a_device_lacks_memory(module: str, name: str, text: str, lacks: bool) -> None:
    error = type(name, (RuntimeError,), {"__module__": module})(text)
    assert memory_watch.lacks_memory(error) is lacks
