"""Jobs that die for lack of memory: what held it is chosen here. The usual step takes 100 ms."""

from __future__ import annotations

from msgspec.structs import replace
from tests.derive.graph_tables import Tables
from tests.derive.sessions import MS, SCRIPT, Job, S, node
from tests.detectors.jobs import CALL, LOOP_LINE, train_loop

from stepscope.model.log.memory import HeldValue, MemoryHeld, MemoryLacked
from stepscope.readers.iterator_model import Node

MB = 1 << 20
LIMIT = 2000 * MB
END = 9 * S


def looked(
    job: Job,
    at: int,
    own: int,
    *rows: HeldValue,
    space: int = 0,
    space_limit: int = 0,
    reason: str = "doubled",
    limit: int = LIMIT,
    line: int = CALL,
) -> None:
    """A look of the agent at ``own`` bytes of memory, 100 MiB of the group being others'."""
    job.event(
        MemoryHeld(
            at=at,
            reason=reason,
            own_bytes=own,
            space_bytes=space,
            group_limit=limit,
            group_bytes=own + 150 * MB,
            group_cache=50 * MB,
            host_limit=100_000 * MB,
            space_limit=space_limit,
            rows=rows,
            stack=((SCRIPT, "main", line),),
        )
    )


def value(name: str, bytes_: int, count: int = 0, shape: tuple[int, ...] = (64, 64)) -> HeldValue:
    """A variable of ``main``."""
    kind = "list" if count else "ndarray"
    return HeldValue(
        name=name,
        kind=kind,
        bytes=bytes_,
        count=count,
        dtype="float32",
        shape=shape,
        file=SCRIPT,
        function="main",
        line=CALL,
    )


def dying(*rows: HeldValue, own: int = 1800 * MB, code: int | None = -9, killed: bool = True) -> Job:
    """A loop that the kernel kills; at the last look before, variables hold ``rows``."""
    job = train_loop(80 * MS)
    job.trace(0, MS, cause="first", updates=4)
    job.exit_code, job.memory_killed, job.ended_ns = code, killed, 10 * S
    looked(job, 100 * MS, 300 * MB)
    looked(job, END, own, *rows, reason="share")
    return job


def without_room(space: int) -> Job:
    """A job with a limit of 10,000 MiB of address space that aborts with ``space`` taken."""
    job = dying(code=-6, killed=False)
    looked(job, END + MS, 1800 * MB, space=space, space_limit=10_000 * MB)
    return job


def raising(asked: int = 0, shape: tuple[int, ...] = ()) -> Job:
    """A job that an exception for lack of memory ends."""
    job = dying(code=1, killed=False)
    job.event(
        MemoryLacked(
            at=END + MS,
            error="ResourceExhaustedError",
            asked_bytes=asked,
            shape=shape,
            dtype="float",
            file=SCRIPT,
            function="main",
            line=CALL,
        )
    )
    return job


def buffering(stage: str, cls: str, line: int = 71) -> Job:
    """A job whose input holds 1,400 MiB in 700 elements of one stage."""
    job = dying()
    source = job.dataset("RangeDataset", line=70)
    made = job.dataset(cls, source, line=line)
    batch = job.dataset("BatchDataset", made, line=72, batch=8)
    iterator = job.iterator(batch, batch=8)
    held = Node(id=2, name=stage, inputs=(3,), buffered_elements=700, buffered_bytes=1400 * MB, num_elements=700)
    job.model(iterator, END, [node(1, "Batch", 2, elements=10), held, node(3, "Range", elements=700)])
    return job


def stepping(fixed: int = 0, samples: int = 256, mib: int = 1) -> Job:
    """A job whose step keeps ten tensors of ``mib`` MiB of each sample, and ``fixed`` MiB that do not grow."""
    job = dying()
    tables = Tables()
    graph = tables.graph(of=1)
    row = f"float32[?,{mib << 18}]"
    data = graph.op("data", "Placeholder", outputs=row)
    layer = tables.layer("wide", line=LOOP_LINE)
    kept = [data]
    for number in range(10):
        kept.append(graph.op(f"wide/{number}", "MatMul", kept[-1], outputs=row, layer=layer, line=12))
    last = graph.op("end", "AddN", *kept[1:], outputs="float32[]")
    if fixed:
        weight = graph.variable("weight", f"float32[{fixed},{1 << 18}]")
        gradient = graph.op("gradient", "MatMul", last, weight, outputs=f"float32[{fixed},{1 << 18}]")
        graph.op("apply", "AddN", gradient, *kept[1:], outputs="float32[]")
    job.graphs = tables.table()
    job.event(*tables.events())
    job.iterator(job.dataset("BatchDataset", batch=samples), batch=samples)
    return job


def modelled() -> Job:
    """A job whose Dense layer has 1 GiB of weights, read by the layer and by the optimizer."""
    job = dying()
    tables = Tables()
    graph = tables.graph(of=1)
    adam = tables.layer("adam", "Adam", line=LOOP_LINE + 2)
    dense = tables.layer("dense", line=LOOP_LINE)
    update = graph.variable("net/dense/kernel", "float32[131072,2048]", layer=adam)
    graph.op("update", "Mul", update, outputs="float32[131072,2048]", layer=adam)
    handle = graph.op("net/dense/resource", "Placeholder", outputs="resource[]")
    graph.variables.append((handle.number, "net/dense/kernel:0", "float32[131072,2048]", True))
    graph.op("net/dense/read", "ReadVariableOp", handle, outputs="float32[131072,2048]", layer=dense)
    job.graphs = tables.table()
    job.event(*tables.events())
    return job


def keras_value(name: str, bytes_: int, count: int = 0) -> HeldValue:
    """A Keras model in a variable of ``main``, or a list of ``count`` models."""
    return replace(
        value(name, bytes_, count, (131_072, 512)),
        kind="list" if count else "Sequential",
        model="Sequential",
        variable="net/dense/kernel",
        layer="Dense",
        built=(SCRIPT, "build", LOOP_LINE),
    )
