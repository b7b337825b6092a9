"""What a call of a graph needs, on graphs whose sizes are chosen here."""

import pytest
from tests.derive.graph_tables import Tables

from stepscope.derive.graph.index import GraphIndex
from stepscope.derive.graph.step_memory import StepMemories, StepMemory

MB = 1 << 20
LARGE = "float32[?,1024]"
"""4 KiB a sample."""
SAMPLES = 256
"""A tensor of it takes a MiB."""


def need(tables: Tables, graph: int, samples: int = SAMPLES) -> StepMemory:
    """What one graph needs."""
    return StepMemories(GraphIndex(tables.worker()), samples).of(graph)


def test_what_the_gradient_takes_lives_until_then() -> None:
    """Results that only the gradients take are all held at the end of the forward pass."""
    tables = Tables()
    step = tables.graph()
    data = step.op("data", "Placeholder", outputs=LARGE)
    layers = [data]
    for i in range(4):
        layers.append(step.op(f"layer_{i}", "MatMul", layers[-1], outputs=LARGE))
    back = layers[-1]
    for i in reversed(range(4)):
        back = step.op(f"gradient_{i}", "MatMul", back, layers[i], outputs=LARGE)
    found = need(tables, step.id)
    assert found.grown == pytest.approx(5 * MB)
    assert found.fixed == 0
    assert found.per_sample == pytest.approx(5 * 4096)


def test_a_chain_needs_two() -> None:
    """Without gradients a tensor dies once the next one is made."""
    tables = Tables()
    step = tables.graph()
    last = step.op("data", "Placeholder", outputs=LARGE)
    for i in range(8):
        last = step.op(f"layer_{i}", "MatMul", last, outputs=LARGE)
    assert need(tables, step.id).total == pytest.approx(2 * MB)


def test_ops_of_each_element_write_into_what_nobody_needs() -> None:
    """Kernels of each element, and ops that only rename, need no memory of their own."""
    tables = Tables()
    step = tables.graph()
    first = step.op("product", "MatMul", step.op("data", "Placeholder", outputs=LARGE), outputs=LARGE)
    again = step.op("relu", "Relu", first, outputs=LARGE)
    named = step.op("identity", "Identity", again, outputs=LARGE)
    step.op("tanh", "Tanh", named, outputs=LARGE)
    assert need(tables, step.id).total == pytest.approx(MB)


def test_gradients_of_variables_do_not_grow() -> None:
    """A gradient has its variable's shape, whatever the batch is; the variable itself is not counted."""
    tables = Tables()
    step = tables.graph()
    weight = step.variable("weight", "float32[1024,2048]")
    data = step.op("data", "Placeholder", outputs=f"float32[{SAMPLES},1024]")
    out = step.op("product", "MatMul", data, weight, outputs=f"float32[{SAMPLES},2048]")
    step.op("gradient", "MatMul", data, out, outputs="float32[1024,2048]")
    found = need(tables, step.id)
    assert (found.fixed, found.grown) == (8 * MB, 2 * MB)
    assert [t.grows for t in found.tensors] == [False, True]


def test_a_called_graph_needs_its_own_peak() -> None:
    """While a called graph runs, its tensors live beside those of the caller."""
    tables = Tables()
    step, inner = tables.graph(), tables.graph("f", name="inner")
    data = step.op("data", "Placeholder", outputs=LARGE)
    kept = step.op("kept", "MatMul", data, outputs=LARGE)
    call = step.op("call", "PartitionedCall", kept, outputs=LARGE)
    step.call(call, inner, "f")
    step.op("end", "MatMul", call, kept, outputs=LARGE)
    a = inner.op("a", "MatMul", inner.op("x", "Placeholder", outputs=LARGE), outputs=LARGE)
    b = inner.op("b", "MatMul", a, outputs=LARGE)
    inner.op("c", "MatMul", a, b, outputs=LARGE)
    assert need(tables, step.id).total == pytest.approx(5 * MB)


def test_unknown_sizes_count_nothing() -> None:
    """Tensors of unknown rank or size, handles and strings are left out."""
    tables = Tables()
    step = tables.graph()
    for number, outputs in enumerate(["float32[*]", "resource[]", "string[4096]", "float32[?,?]"]):
        step.op(f"op_{number}", "MatMul", outputs=outputs)
    assert need(tables, step.id).total == 0


def test_turned_operands_are_copied() -> None:
    """Einsum copies what it takes and gives, in two kernels at once."""
    tables = Tables()
    step = tables.graph()
    data = step.op("first", "MatMul", step.op("data", "Placeholder", outputs=LARGE), outputs=LARGE)
    step.op("einsum", "Einsum", data, outputs=LARGE)
    assert need(tables, step.id).total == pytest.approx((2 + 2 * 2) * MB)
