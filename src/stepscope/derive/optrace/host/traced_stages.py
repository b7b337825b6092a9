"""The input pipeline in an op trace: the tree of tf.data's stages, with self times and the functions they call.

The result has the form of tf.data's own live model (``derive.input.stages``), and answers the same questions if there
is no such model: TensorFlow before 2.17, datasets without autotune, iterators inside a tf.function, imported files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.derive.optrace.host import stage_calls
from stepscope.readers.iterator_model import IteratorModelData, Node

if TYPE_CHECKING:
    from stepscope.derive.optrace.host.stage_calls import Function, Path, PipelineCalls, WorkByStage


class StageNode(Struct, frozen=True, kw_only=True):
    """One stage of the pipeline as it ran, all of its iterators together. Sums over the trace."""

    path: Path
    """Path from the consumer: ("Root", "Prefetch", "MapAndBatch")."""
    datasets: str
    """Graph ops it stands for: ``fused(MapDataset:1,BatchDatasetV2:2)``; "" if unknown."""
    calls: int
    """Number of elements requested, including the end of the data."""
    total_ns: int
    """Time in its calls, including its inputs' time and waits."""
    self_ns: int
    """Its own work, summed over its threads, without its inputs' work."""
    parallel: bool
    """Whether it has threads of its own."""
    parallelism: int
    """Number of calls of its function that may run at a time, or did; 1 if unknown."""
    buffered: float | None
    """Mean number of elements ready when it was called; None if it has no buffer."""
    function: Function | None
    inputs: tuple[StageNode, ...]

    @property
    def type(self) -> str:
        """Name after tf.data's own rewriting: MapAndBatch, ParallelMapV2, TFRecord ..."""
        return self.path[-1]

    @property
    def latency_ns(self) -> float:
        """Its own work divided by its parallelism."""
        return self.self_ns / self.parallelism

    def walk(self) -> tuple[StageNode, ...]:
        """The stage and all of its inputs, the consumer's side first."""
        return (self, *(inner for node in self.inputs for inner in node.walk()))


class Tree(Struct, frozen=True, kw_only=True):
    """The pipeline that fed the steps."""

    root: StageNode
    batches: int
    """Batches that the steps took from it during the trace."""

    @property
    def blocking(self) -> StageNode:
        """The stage that needs the most time for a batch."""
        return max(self.root.walk(), key=lambda node: node.latency_ns)

    def per_batch(self, ns: float) -> float:
        """A sum over the trace as a mean per batch."""
        return ns / max(1, self.batches)


def build(calls: PipelineCalls, work: WorkByStage) -> Tree:
    """The tree of some calls."""
    return Tree(root=_node(min(calls.paths, key=len), calls, work), batches=calls.batches)


def _node(path: Path, calls: PipelineCalls, work: WorkByStage) -> StageNode:
    mine = calls.rows_of(path)
    known = calls.buffered[mine]
    known = known[known >= 0]
    function = work.functions.get(path)
    allowed = max(1, int(calls.parallelism[mine].max()))
    # A map that tf.data has fused with a batch runs several calls at a time and names no parallelism.
    ran = round(function.at_a_time) if function is not None and path[-1].startswith("MapAndBatch") else 1
    return StageNode(
        path=path,
        datasets=calls.datasets.get(path, ""),
        calls=len(mine),
        total_ns=int(calls.dur_ns[mine].sum()),
        self_ns=work.self_ns.get(path, 0),
        parallel=path in work.parallel,
        parallelism=max(allowed, ran),
        buffered=float(known.mean()) if len(known) else None,
        function=function,
        inputs=tuple(_node(p, calls, work) for p in calls.paths if stage_calls.above(p) == path),
    )


def as_model(tree: Tree) -> IteratorModelData:
    """The tree in the form of tf.data's live model, so that one reader serves both."""
    order = tree.root.walk()
    number = {node.path: i + 1 for i, node in enumerate(order)}
    nodes = {
        number[node.path]: Node(
            id=number[node.path],
            name=node.type.partition("[")[0],
            num_elements=tree.batches if node is tree.root else node.calls,
            processing_ns=node.self_ns,
            buffered_elements=round(node.buffered or 0),
            parameters={"parallelism": float(node.parallelism)} if node.parallel else {},
            inputs=tuple(number[inner.path] for inner in node.inputs),
        )
        for node in order
    }
    return IteratorModelData(nodes=nodes, output=number[tree.root.path], gaps_us=(), complete=True)
