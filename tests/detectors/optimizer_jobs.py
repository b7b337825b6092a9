"""Loops of PyTorch whose optimizer takes part of the step, and what was seen of it."""

from __future__ import annotations

from tests.derive.sessions import MS, SCRIPT, Job

from stepscope.model.log.program import OptimizerSeen, TableSeen
from stepscope.wire.kinds import Kind

STEPS = 100
SOURCE = """import torch
class Net(torch.nn.Module):
    def __init__(self):
        self.users = torch.nn.Embedding(300_000, 32)
model = Net()
optimizer = torch.optim.Adam(model.parameters())
for batch in batches:
    model(batch).backward()
    optimizer.step()
"""


def training(
    step: float,
    *,
    cls: str = "Adam",
    fused: bool = False,
    devices: tuple[str, ...] = ("cpu",),
    version: str = "2.13.0+cpu",
    tables: tuple[TableSeen, ...] = (),
    elements: int = 12_000_000,
    backward: float = 20,
    looks: int = 3,
    closure: bool = False,
    decays: bool = False,
) -> Job:
    """Steps of 100 ms.

    Args:
        step: milliseconds in the optimizer.
        cls: its class.
        fused: as it was asked for.
        devices: of its tensors.
        version: of PyTorch.
        tables: its largest.
        elements: numbers that it changes.
        backward: milliseconds in the backward pass.
        looks: at the optimizer.
        closure: whether its steps are given one.
        decays: whether weights decay.
    """
    job = Job()
    job.framework("torch", version)
    job.sources[SCRIPT] = SOURCE
    back = job.call(Kind.AUTOGRAD, "backward", call_file=SCRIPT, call_line=8)
    back.every(100 * MS, STEPS, dur=int(backward * MS), start=MS)
    ends = job.call(Kind.APPLY, "optimizer step", role="optimizer", call_file=SCRIPT, call_line=9)
    ends.every(100 * MS, STEPS, dur=0, start=99 * MS, arg=int(step * MS))
    for _ in range(looks):
        job.event(
            OptimizerSeen(
                name=ends.name.id,
                cls=cls,
                fused=fused,
                closure=closure,
                decays=decays,
                devices=devices,
                tensors=9,
                elements=elements,
                tables=tables,
            )
        )
    return job


def table(zero: int, *, rows: int = 300_000, columns: int = 32, looked: int = 64, sparse: bool = False) -> TableSeen:
    """A table, ``zero`` of whose rows have no gradient."""
    return TableSeen(rows=rows, columns=columns, looked=looked, zero=zero, sparse=sparse)
