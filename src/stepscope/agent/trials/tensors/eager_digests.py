"""Looks at what heavy ops give that run eagerly: whether the same had been computed shortly before.

Eager code has no calls that could be counted, and no batch that could be held. What is seen of the ops of one type,
line and shape is kept together.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TYPE_CHECKING

from stepscope.agent.core import frames
from stepscope.agent.trials.tensors import array_digest
from stepscope.agent.trials.tensors.watched import Watched
from stepscope.wire.trials import EAGER

if TYPE_CHECKING:
    from typing import Optional

    from stepscope.agent.core.foreign import Foreign

RECENT = 500
"""Ops between two that give the same, at most."""
MOST_RUNS = 3_000
MOST_S = 8.0
"""Number of ops, and time from the first, after which enough is known."""
LEAST_RUNS = 100
MOST_GROUPS = 400


class EagerDigests:
    """All that is seen of eager ops."""

    def __init__(self) -> None:
        self.groups: dict[tuple[object, ...], Watched] = {}
        self._recent: OrderedDict[tuple[object, ...], None] = OrderedDict()
        self._runs = 0
        self._began_s = 0.0

    def see(self, op_type: str, inputs: Foreign, tensor: Foreign, number: int) -> Optional[Watched]:
        """Look at a result. Returns what is watched if it is new."""
        self._began_s = self._began_s or time.monotonic()
        self._runs += 1
        place = frames.user_frame() or ("", "", 0)
        shape = tuple(tensor.shape.as_list())
        key = (op_type, place, shape)
        group = self.groups.get(key)
        new = group is None
        if group is None:
            if len(self.groups) >= MOST_GROUPS:
                return None
            group = self.groups[key] = _watched(number, op_type, inputs, tensor, place)
        value = (op_type, shape, array_digest.checksum(tensor.numpy()))
        group.see_eagerly(value[2], shape, again=value in self._recent)
        self._recent[value] = None
        self._recent.move_to_end(value)
        if len(self._recent) > RECENT:
            self._recent.popitem(last=False)
        return group if new else None

    @property
    def is_enough(self) -> bool:
        """Whether more would say nothing new."""
        late = bool(self._began_s) and time.monotonic() - self._began_s > MOST_S
        return self._runs >= MOST_RUNS or (late and self._runs >= LEAST_RUNS)


def _watched(number: int, op_type: str, inputs: Foreign, tensor: Foreign, place: tuple[str, str, int]) -> Watched:
    watched = Watched(number, op_type, op_type, str(tensor.dtype.name))
    watched.key = EAGER
    watched.static = {
        "file": place[0],
        "in_function": place[1],
        "line": place[2],
        "inputs": [0 for _ in inputs][:8],
        "input_dtypes": [str(one.dtype.name) for one in inputs][:8],
        "input_shapes": [list(one.shape.as_list()) for one in inputs][:8],
    }
    return watched
