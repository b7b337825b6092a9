"""Whether a call runs in a trace, by the frameworks that the process has imported."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from stepscope.agent.trials import support

CONTEXT, OPS = "tensorflow.python.eager.context", "tensorflow.python.framework.ops"


@pytest.fixture(autouse=True)
def no_framework(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has imported no framework with graphs."""
    for name in (CONTEXT, OPS, "jax._src.core"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def _import_tensorflow(monkeypatch: pytest.MonkeyPatch, *, eager: bool, graph: object) -> None:
    monkeypatch.setitem(sys.modules, CONTEXT, SimpleNamespace(executing_eagerly=lambda: eager))
    monkeypatch.setitem(sys.modules, OPS, SimpleNamespace(get_default_graph=lambda: graph))


def test_a_process_without_such_a_framework_makes_no_graph() -> None:
    """NumPy, PyTorch and ONNX Runtime run Python as it stands."""
    assert not support.in_trace()


@pytest.mark.parametrize(
    ("eager", "graph", "traced"),
    [
        (True, SimpleNamespace(), False),
        (False, SimpleNamespace(outer_graph=None), True),
        (False, SimpleNamespace(), False),
    ],
)
def test_a_trace_of_tensorflow(monkeypatch: pytest.MonkeyPatch, *, eager: bool, graph: object, traced: bool) -> None:
    """A function's graph has an outer one; that of a session has none."""
    _import_tensorflow(monkeypatch, eager=eager, graph=graph)
    assert support.in_trace() == traced


@pytest.mark.parametrize("clean", [True, False])
def test_a_trace_of_jax(monkeypatch: pytest.MonkeyPatch, *, clean: bool) -> None:
    """JAX says itself whether the thread traces."""
    monkeypatch.setitem(sys.modules, "jax._src.core", SimpleNamespace(trace_state_clean=lambda: clean))
    assert support.in_trace() != clean
