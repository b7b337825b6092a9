"""Where PyTorch's DataLoader spends the time of a batch, by stack samples under its fetch.

The fetch calls the dataset for the rows and the collate function for the batch; both may be the user's, and what either
calls. Serves data_loader_wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.derive.python import costly

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepscope.derive.python.costly import Function, Path
    from stepscope.derive.python.stack_samples import Sample

FETCH = "/torch/utils/data/_utils/fetch.py"


def costliest(taken: Iterable[Sample]) -> Function | None:
    """The innermost function of the user's that most of the fetch's time is in; None without one, or if few samples
    show it.
    """
    stacks = [(sample.weight_ns, below) for sample in taken if (below := _below(sample)) is not None]
    return costly.find(stacks, costly.MOST * sum(weight for weight, _ in stacks))


def _below(sample: Sample) -> Path | None:
    """The user's frames that the fetch called; None outside of a fetch."""
    at = next((i for i in range(len(sample.frames) - 1, -1, -1) if sample.frames[i].file.endswith(FETCH)), None)
    return costly.path(sample.frames[at + 1 :]) if at is not None else None
