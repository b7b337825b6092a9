"""Tensors that take the place of an op's results: of their shape and type, filled with one number.

The number is read from what the op is given, one element of each input, so that the op's inputs stay needed and
TensorFlow cannot compute ahead what uses the result. Of results of replaced ops the number and the shape are known
already: a chain of replaced ops costs one fill where it ends.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Optional

    from stepscope.agent.core.foreign import Foreign

LEAST, MOST = 0.25, 0.75
"""Bounds of the number: logarithms, quotients and roots of it and of one less it are finite."""
SMALL = 64
"""Integers up to which a result may be the shape, or the axes, of another: it stays."""
MOST_INPUTS = 4
"""Inputs of an op that are kept needed."""
LOOP = "while"
"""Part of the names of graphs of loops: a number there may decide when the loop ends."""


class Fills:
    """All tensors that took the place of others."""

    def __init__(self) -> None:
        self.busy = False
        """Whether ops are made that are ours."""
        self._numbers: dict[tuple[int, str], Foreign] = {}
        """(graph, tensor) -> the number that is read from it, float32[]."""
        self._sizes: dict[tuple[int, str], Foreign] = {}
        """(graph, tensor that took the place of another) -> its shape, a list of numbers and scalars."""
        self._kept: list[Foreign] = []
        """The graphs, whose ids are keys."""

    def has(self, tensor: Foreign) -> bool:
        """Whether a tensor took the place of another."""
        return hasattr(tensor, "op") and _key(tensor) in self._sizes

    def in_place_of(self, inputs: Foreign, outputs: Foreign, graph: Foreign) -> Optional[list[Foreign]]:
        """What takes the place of an op's results; None if nothing can."""
        if not self._kept or self._kept[-1] is not graph:
            self._kept.append(graph)
        self.busy = True
        try:
            found = [self._in_place_of(tensor, inputs, graph) for tensor in outputs]
        finally:
            self.busy = False
        if all(one is None for one in found):
            return None
        return [outputs[place] if one is None else one for place, one in enumerate(found)]

    def _in_place_of(self, tensor: Foreign, inputs: Foreign, graph: Foreign) -> Foreign:
        if not _is_replaceable(tensor, in_loop=LOOP in str(getattr(graph, "name", ""))):
            return None
        sizes = self._shape(tensor, inputs)
        if sizes is None:
            return None
        tensorflow = sys.modules["tensorflow"]
        number = self._number(inputs)
        made = tensorflow.fill(_stacked(sizes), _cast(number, tensor.dtype)) if sizes else _cast(number, tensor.dtype)
        if made is number:
            made = tensorflow.identity(number)
        made.set_shape(tensor.shape)
        self._numbers[_key(made)], self._sizes[_key(made)] = number, sizes
        return made

    def _number(self, inputs: Foreign) -> Foreign:
        """The number that is read from an op's inputs."""
        tensorflow = sys.modules["tensorflow"]
        numbers: list[Foreign] = []
        for tensor in inputs:
            number = self._number_of(tensor)
            if number is not None and not any(number is other for other in numbers):
                numbers.append(number)
        numbers = numbers[:MOST_INPUTS]
        if len(numbers) > 1:
            return tensorflow.add_n(numbers) / float(len(numbers))
        return numbers[0] if numbers else tensorflow.constant(MOST)

    def _number_of(self, tensor: Foreign) -> Foreign:
        known = self._numbers.get(_key(tensor))
        if known is not None or tensor.op.type == "Const":
            return known
        dtype = tensor.dtype
        if not (dtype.is_floating or dtype.is_integer):
            return None
        tensorflow = sys.modules["tensorflow"]
        first = tensor
        if tensor.shape.rank != 0:
            first = tensorflow.reduce_max(tensorflow.reshape(tensor, [-1])[:1])
        number = tensorflow.clip_by_value(tensorflow.cast(first, tensorflow.float32), LEAST, MOST)
        self._numbers[_key(tensor)] = number
        return number

    def _shape(self, tensor: Foreign, inputs: Foreign) -> Optional[list[Foreign]]:
        """The shape of a result: what is unknown of it is the same dimension of an input, or the batch's."""
        if tensor.shape.rank is None:
            return None
        sizes: list[Foreign] = tensor.shape.as_list()
        found = []
        for place, size in enumerate(sizes):
            known = size if size is not None else self._size(place, len(sizes), inputs)
            if known is None:
                return None
            found.append(known)
        return found

    def _size(self, place: int, rank: int, inputs: Foreign) -> Foreign:
        for one in inputs:
            given = one.shape.rank
            if given is None or given <= place or one.shape.as_list()[place] is not None:
                continue
            if given == rank or not place:
                sizes = self._sizes.get(_key(one))
                return sizes[place] if sizes is not None else sys.modules["tensorflow"].shape(one)[place]
        return None


def _key(tensor: Foreign) -> tuple[int, str]:
    return id(tensor.graph), str(tensor.name)


def _is_replaceable(tensor: Foreign, *, in_loop: bool) -> bool:
    """Whether a number of its type and shape can take its place without deciding what else is computed."""
    dtype, rank = tensor.dtype, tensor.shape.rank
    if rank is None or (rank == 0 and in_loop):
        return False
    if dtype.is_floating or dtype.is_complex:
        return True
    if not rank or not (dtype.is_integer or dtype.is_bool) or dtype.is_quantized:
        return False
    count = tensor.shape.num_elements()
    return count is None or count > SMALL


def _cast(number: Foreign, dtype: Foreign) -> Foreign:
    """The number as that type: integers are 0, which is an index of everything, and bools are true."""
    tensorflow = sys.modules["tensorflow"]
    return number < 1.0 if dtype.is_bool else tensorflow.cast(number, dtype)


def _stacked(sizes: list[Foreign]) -> Foreign:
    return sizes if all(isinstance(size, int) for size in sizes) else sys.modules["tensorflow"].stack(sizes)
