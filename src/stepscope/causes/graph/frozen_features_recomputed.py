"""Layers that a training step runs on the batch alone and never changes: each pass gives the same features.

``causes.input.same_data`` says whether the passes see the same examples.

The output of each node is followed through each graph of the step, in order of creation: it is fixed (constants, and
variables that no graph of the process writes), or it is made from the batch by ops that always give the same, or it
varies. Random numbers, states and written variables vary; so do numbers that mix the examples of a batch, because they
differ when batches are shuffled.

A variable counts as written if anything but a read takes it, if a gradient is taken of a result computed with it, or if
the graph also uses it on something that varies: that layer has to stay in the step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from stepscope.derive.graph import written_variables
from stepscope.derive.graph.index import CALLING, NOT_FOUND, PRODUCTS
from stepscope.model.log.graph import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable

from stepscope.derive.graph.index import GraphIndex

HEAVY = PRODUCTS | {"Conv1D", "Conv2D", "Conv3D", "DepthwiseConv2dNative", "Conv2DBackpropInput"}
"""Products and convolutions; the last is a transposed one."""
VARYING = (
    *("Random", "Multinomial", "Normal", "Stateful", "NonDeterministic", "Rng", "Sampl", "Shuffle", "Timestamp"),
    *("Assign", "ResourceApply", "ResourceSparseApply", "ResourceScatter", "PyFunc", "Dropout", "CudnnRNN"),
    *("While", "If", "Case", "Iterator", "Queue", "Stack", "TensorArray", "Optional"),
)
"""Parts of types of ops that may give different results each time, or for which the graph does not say."""
_PLAIN_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
_BATCH = frozenset({"IteratorGetNext", "IteratorGetNextSync"})
_NO_DATA = frozenset({"resource", "variant"})
_WHOLE = ("int", "uint", "bool", "string", "resource", "variant")
"""Types of facts about a batch as a whole: shapes, positions."""
_SUM_OF_GRADIENTS = "AddN"
_FUSED_NORM = "FusedBatchNorm"
_STATISTICS = frozenset({1, 2})
"""Outputs that are read only if the op takes the statistics of the batch itself."""


class FrozenLayers(Struct, frozen=True, kw_only=True):
    """Nodes of the steps' graphs that depend only on the batch and on fixed weights."""

    nodes: tuple[int, ...]
    """Rows: the products, the nodes that prepare the batch for them, and those that depend on them alone."""
    heavy: tuple[int, ...]
    """Rows of the products and convolutions with fixed weights, in order of creation."""


class _Flow(Struct):
    """Dependences of the nodes of one graph."""

    lead: int = UNKNOWN
    """Length of the first axis of values made from the batch."""
    of_batch: set[int] = field(default_factory=set)
    fixed: dict[int, frozenset[int]] = field(default_factory=dict)
    """Handles of the variables on which each row depends."""

    def steady(self, row: int) -> bool:
        """Whether a node gives the same in each pass."""
        return row in self.of_batch or row in self.fixed


def build(index: GraphIndex, graphs: Iterable[int]) -> FrozenLayers | None:
    """Frozen layers of the steps' ``graphs``; None if there are none, or if some graph was not read."""
    read = [g for g in graphs if g in index.graphs]
    called = {inner for g in index.graphs.values() for _, _, inner in g.calls}
    if any(g.state != "read" for g in index.graphs.values()) or not called <= set(index.graphs):
        return None
    written = written_variables.names(index)
    nodes: list[int] = []
    heavy: list[int] = []
    for graph in sorted(read):
        if not index.of_data(graph) and _trains(index, graph):
            mine, found = _in_graph(index, graph, written)
            nodes += mine
            heavy += found
    return FrozenLayers(nodes=tuple(nodes), heavy=tuple(heavy)) if heavy else None


def _trains(index: GraphIndex, graph: int) -> bool:
    """Whether a graph writes variables and takes gradients: an evaluation or metrics alone do not."""
    rows = index.table.rows_of(graph)
    differentiates = any(index.is_gradient(row) for row in range(rows.start, rows.stop))
    return differentiates and bool(written_variables.written(index, graph))


def _in_graph(index: GraphIndex, graph: int, written: frozenset[tuple[str, str]]) -> tuple[list[int], list[int]]:
    """(nodes, products) of one graph, repeated without variables that turn out to be used otherwise until none does."""
    frozen = written_variables.others(index, graph, written)
    gradients = _differentiated(index, graph)
    while frozen:
        flow = _follow(index, graph, frozen)
        if flow is None:
            break
        products = _products(index, graph, flow)
        needed = {
            h for row, handles in products.items() if row not in flow.of_batch or row in gradients for h in handles
        }
        if not needed:
            return _prefix(index, graph, flow, set(products)), sorted(products)
        frozen -= needed
    return [], []


def _differentiated(index: GraphIndex, graph: int) -> set[int]:
    """Rows whose gradient by their inputs is used: in the graph, or by a tape around its call.

    A tape makes gradients of all variables it has seen, also of those that were not requested: these end nowhere, and
    TensorFlow removes them before it runs the graph.
    """
    table = index.table
    found = set()
    consumed: set[int] = set()
    used: set[int] = set()
    for row in reversed(_own_rows(index, graph)):
        inputs = table.inputs_of(row).tolist()
        ends = row not in consumed and not index.is_gradient(row) and table.type_of(row) != _SUM_OF_GRADIENTS
        consumed.update(inputs)
        if row not in used and not ends:
            continue
        used.update(inputs)
        of = index.forward_of(row) if index.is_gradient(row) else NOT_FOUND
        if of != NOT_FOUND and not set(table.inputs_of(of).tolist()).isdisjoint(inputs):
            found.add(of)
    around = [g.id for g in index.graphs.values() if g.role == "gradient" and g.of == graph]
    return found | {index.forward_of(row) for one in around for row in _own_rows(index, one)}


def _follow(index: GraphIndex, graph: int, frozen: set[int]) -> _Flow | None:
    """The dependences of each node; None if nothing is known to depend on the batch alone."""
    table = index.table
    entries = _entries(index, graph)
    leads = {s.shape[0] for row in entries for s in table.specs_of(row) if s.shape}
    if len(leads) != 1:
        return None
    flow = _Flow(lead=leads.pop(), of_batch=set(entries), fixed={row: frozenset({row}) for row in frozen})
    mixing = _own_statistics(index, graph)
    rows = table.rows_of(graph)
    for row in range(rows.start, rows.stop):
        inputs = table.inputs_of(row).tolist()
        if flow.steady(row) or row in mixing or index.is_gradient(row):
            continue
        if table.type_of(row) == "Const":
            flow.fixed[row] = frozenset()
        elif inputs and all(flow.steady(p) for p in inputs) and not _varies(index, row):
            if flow.of_batch.isdisjoint(inputs):
                flow.fixed[row] = frozenset().union(*(flow.fixed[p] for p in inputs))
            elif _by_example(index, row, flow.lead):
                flow.of_batch.add(row)
    return flow


def _entries(index: GraphIndex, graph: int) -> list[int]:
    """Rows at which the batch enters a graph as made by tf.data: from an iterator, or passed on by its only caller."""
    table = index.table
    rows = table.rows_of(graph)
    found = [row for row in range(rows.start, rows.stop) if table.type_of(row) in _BATCH]
    callers = [(g, node) for g in index.graphs.values() for node, _, inner in g.calls if inner == graph]
    if found or len(callers) != 1:
        return found
    call = index.caller.get(graph, NOT_FOUND)
    if call == NOT_FOUND or table.type_of(call) not in _PLAIN_CALLS:
        return []
    above = int(table.graph[call])
    given = [p for p in table.inputs_of(call).tolist() if p < 0 or not _handle(index, p)]
    outer = _follow(index, above, set()) if above != graph else None
    if outer is None or not given or not all(p in outer.of_batch or p in outer.fixed for p in given):
        return []
    variables = {row for row, _, _ in written_variables.handles(index, graph)}
    arguments = [row for row in range(rows.start, rows.stop) if table.type_of(row) == "Placeholder"]
    return [row for row in arguments if row not in variables and not _handle(index, row)]


def _handle(index: GraphIndex, row: int) -> bool:
    return any(spec.dtype in _NO_DATA for spec in index.table.specs_of(row))


def _varies(index: GraphIndex, row: int) -> bool:
    """Whether an op may give another result for the same inputs."""
    table = index.table
    kind = table.type_of(row)
    if kind in _PLAIN_CALLS:
        inner = [graph for _, graph in index.called_by(row)]
        return not inner or any(_varies(index, r) for graph in inner for r in _own_rows(index, graph))
    return any(part in kind for part in VARYING)


def _own_rows(index: GraphIndex, graph: int) -> range:
    rows = index.table.rows_of(graph)
    return range(rows.start, rows.stop)


def _by_example(index: GraphIndex, row: int, lead: int) -> bool:
    """Whether the first axis is still that of the examples, or a multiple of it. Shapes and positions are exempt."""
    specs = index.table.specs_of(row)
    shape = specs[0].shape if specs else None
    if shape is None or specs[0].dtype.startswith(_WHOLE):
        return bool(specs)
    if not shape:
        return False
    return shape[0] == UNKNOWN or (lead > 0 and shape[0] % lead == 0 and (len(shape) > 1 or shape[0] == lead))


def _own_statistics(index: GraphIndex, graph: int) -> set[int]:
    """Batch normalisations in training: something reads the mean that they took of the batch."""
    table = index.table
    found = set()
    for row in _own_rows(index, graph):
        first, last = int(table.first_input[row]), int(table.first_input[row + 1])
        pairs = zip(table.producers[first:last].tolist(), table.slots[first:last].tolist(), strict=True)
        found |= {p for p, slot in pairs if p >= 0 and slot in _STATISTICS and _FUSED_NORM in table.type_of(p)}
    return found


def _products(index: GraphIndex, graph: int, flow: _Flow) -> dict[int, frozenset[int]]:
    """Products with their fixed variables; of data that varies too, but not of gradients."""
    found = {}
    for row in _own_rows(index, graph):
        inputs = index.table.inputs_of(row).tolist()
        handles = frozenset().union(*(flow.fixed.get(p, frozenset()) for p in inputs))
        if handles and row not in flow.fixed and not index.is_gradient(row) and _computes(index, row):
            found[row] = handles
    return found


def _computes(index: GraphIndex, row: int) -> bool:
    """Whether a node is a product, or calls a graph that contains one."""
    kind = index.table.type_of(row)
    inner = [graph for _, graph in index.called_by(row)] if kind in CALLING else []
    return kind in HEAVY or any(index.table.type_of(r) in HEAVY for graph in inner for r in index.inside(graph))


def _prefix(index: GraphIndex, graph: int, flow: _Flow, products: set[int]) -> list[int]:
    """Nodes on the batch that a product needs, or that need one; for calls also the called graphs."""
    table = index.table
    after = set(products)
    for row in _own_rows(index, graph):
        if row in flow.of_batch and not after.isdisjoint(table.inputs_of(row).tolist()):
            after.add(row)
    before, todo = set(products), list(products)
    while todo:
        new = {p for p in table.inputs_of(todo.pop()).tolist() if p in flow.of_batch} - before
        before |= new
        todo += new
    mine = sorted((after | before) - set(_entries(index, graph)))
    called = [
        r for row in mine if table.type_of(row) in CALLING for _, g in index.called_by(row) for r in index.inside(g)
    ]
    return mine + called
