"""What an optimizer of PyTorch changes in a step: how many numbers in how many tensors, op by op or fused, and of its
largest tables how many rows have a gradient. Writes the log line ``optimizer``.

Looked at after a step, in a few of them. Only attributes of plain tensors are read, whose getters run no op: what is
a subclass may run the job's code. Rows are looked at in the gradient's memory, and only on the CPU.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Optional

    from stepscope.agent.core.foreign import Foreign

LOOKS = 3
"""Looks at the optimizers of a line."""
MAX_LINES = 64
"""Lines whose optimizers are looked at."""
MAX_TENSORS = 4_000
"""Tensors of an optimizer that is looked at: 4 ms (docs/benchmarks/torch-optimizers.md)."""
MOST_TABLES = 4
"""Tables of an optimizer that are logged, the largest."""
ROWS = 64
"""Rows of a gradient that are looked at."""
MIN_ROWS = 4 * ROWS
"""Rows from which a matrix may be a table."""
BYTES = 64
"""Bytes of a row that are looked at."""
MATRIX = 2
OWN = "torch.optim."
"""Begin of the modules whose optimizers are known."""


class OptimizerLooks:
    """The looks at the optimizers of a process."""

    def __init__(self, log: Callable[[dict[str, Foreign]], object], now: Callable[[], int]) -> None:
        """``log`` writes a line, ``now`` is the clock of the records."""
        self._log = log
        self._now = now
        self._done: dict[int, int] = {}

    def look(self, optimizer: Foreign, name: int, *, closure: bool = False) -> None:
        """Log what an optimizer has changed in the step that has ended.

        Args:
            optimizer: the optimizer.
            name: of its line.
            closure: whether the step was given a function that computes the loss.
        """
        done = self._done.get(name, 0)
        if done >= LOOKS or (not done and len(self._done) >= MAX_LINES):
            return
        self._done[name] = done + 1
        cls = type(optimizer)
        groups = getattr(optimizer, "param_groups", None)
        if not str(cls.__module__).startswith(OWN) or type(groups) is not list or not groups:
            return
        tensors = [one for group in groups for one in group.get("params", ())][: MAX_TENSORS + 1]
        plain = [one for one in tensors if _is_plain(one)]
        if len(tensors) > MAX_TENSORS or len(plain) < len(tensors):
            return
        self._log(
            {
                "t": "optimizer",
                "at": self._now(),
                "name": name,
                "cls": cls.__name__,
                "fused": any(bool(group.get("fused")) for group in groups),
                "closure": closure,
                "decays": any(bool(group.get("weight_decay")) for group in groups),
                "devices": sorted({str(one.device.type) for one in plain}),
                **_counted(plain),
            }
        )


def _is_plain(tensor: Foreign) -> bool:
    cls = type(tensor)
    return str(cls.__module__) in {"torch", "torch.nn.parameter"} and cls.__name__ in {"Tensor", "Parameter"}


def _counted(tensors: list[Foreign]) -> dict[str, Foreign]:
    """Of the tensors with a gradient: their number, their elements, and the largest tables with their rows."""
    given = [(one, one.grad, _product(one.shape)) for one in tensors]
    given = [(one, gradient, size) for one, gradient, size in given if gradient is not None]
    tables = [row for row in given if len(row[0].shape) == MATRIX and int(row[0].shape[0]) >= MIN_ROWS]
    tables.sort(key=lambda row: -row[2])
    return {
        "tensors": len(given),
        "elements": sum(size for _, _, size in given),
        "tables": [_table(one, gradient) for one, gradient, _ in tables[:MOST_TABLES]],
    }


def _table(tensor: Foreign, gradient: Foreign) -> dict[str, Foreign]:
    looked, zero = _rows(gradient)
    return {
        "rows": int(tensor.shape[0]),
        "columns": int(tensor.shape[1]),
        "sparse": bool(gradient.is_sparse),
        "looked": looked,
        "zero": zero,
    }


def _product(shape: Foreign) -> int:
    size = 1
    for one in shape:
        size *= int(one)
    return size


def _rows(gradient: Foreign) -> tuple[int, int]:
    """How many rows of a gradient were looked at, and how many of them begin with zeros; (0, 0): it cannot be read."""
    width = _row_bytes(gradient)
    if width is None:
        return 0, 0
    rows = int(gradient.shape[0])
    begin, seen = int(gradient.data_ptr()), min(width, BYTES)
    nothing = bytes(seen)
    # the golden ratio spreads the rows: embeddings of frequent words often lie side by side
    picked = [int((0.5 + 0.6180339887 * i) % 1.0 * rows) for i in range(ROWS)]
    return ROWS, sum(ctypes.string_at(begin + row * width, seen) == nothing for row in picked)


def _row_bytes(gradient: Foreign) -> Optional[int]:
    """Bytes of a row of a dense matrix in the CPU's memory, one row behind the other; None if it is no such matrix."""
    plain = _is_plain(gradient) and str(gradient.device.type) == "cpu" and str(gradient.layout) == "torch.strided"
    if not plain or len(gradient.shape) != MATRIX or not gradient.data_ptr():
        return None
    width = int(gradient.shape[1])
    if tuple(gradient.stride()) != (width, 1) or not width:
        return None
    return width * int(gradient.element_size())
