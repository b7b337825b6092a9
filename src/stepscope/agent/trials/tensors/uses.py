"""What takes the tensors that are watched: the ops of the program, views passed over, once a function is traced."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.agent.core.foreign import Foreign

VIEWS = frozenset(("Identity", "Reshape", "Squeeze", "ExpandDims", "StopGradient", "PreventGradient", "Snapshot"))
"""Types with one result, that has the numbers of their input."""
SIZES = frozenset(("Shape", "ShapeN", "Size", "Rank"))
"""Types that take no number of their input."""
MOST = 24
DEPTH = 16
"""Views in a row that are followed."""
WHOLE: dict[str, object] = {"type": "", "name": "", "place": 0, "shape": [], "of": []}
"""A use that is not known: by who calls the function, or one of too many."""


def of_op(op: Foreign, outputs: frozenset[str], needed: set[str]) -> list[dict[str, object]]:
    """The uses of an op's first result.

    Args:
        op: the op.
        outputs: names of the tensors that the function returns.
        needed: names of the ops that the program needs.
    """
    found = []
    for use in _of_tensor(op.outputs[0], outputs, needed, DEPTH):
        found.append(use)
        if len(found) >= MOST:
            return [*found, WHOLE]
    return found


def _of_tensor(tensor: Foreign, outputs: frozenset[str], needed: set[str], depth: int) -> Iterator[dict[str, object]]:
    if tensor.name in outputs or not depth:
        yield WHOLE
    for op in tensor.consumers():
        kind = str(op.type)
        if str(op.name) not in needed or kind in SIZES:
            continue
        if kind in VIEWS:
            yield from _of_tensor(op.outputs[0], outputs, needed, depth - 1)
        else:
            yield _use(op, kind, tensor)


def _use(op: Foreign, kind: str, tensor: Foreign) -> dict[str, object]:
    place = next((number for number, one in enumerate(op.inputs) if one.name == tensor.name), 0)
    result = op.outputs[0] if len(op.outputs) == 1 else None
    return {
        "type": kind,
        "name": str(op.name),
        "place": place,
        "shape": shape(result) if result is not None else [],
        "of": shape(tensor),
    }


def shape(tensor: Foreign) -> list[int]:
    """The shape as it is known when the graph is made; -1 for a size that is not, and alone for an unknown rank."""
    if tensor.shape.rank is None:
        return [-1]
    return [-1 if size is None else int(size) for size in tensor.shape.as_list()]
