"""Ops of the step, replayed alone after the job: what was asked of the replay, and what it measured.

``Replays`` is the file ``captures/replay.json`` of a session. Times are nanoseconds of one run of an op.
"""

from __future__ import annotations

import hashlib
from typing import Literal

import msgspec

SCHEMA = "stepscope.replay/1"
MAX_OPS = 64
"""Number of ops in a file beyond which it is none of ours."""

Variant = Literal["", "float32", "bfloat16", "batch", "channels"]
"""What is different: nothing; another type of the numbers; a batch ``BATCH_FACTOR`` times as large; the width of a
convolution as its channels."""
BATCH_FACTOR = 8


class Tensor(msgspec.Struct, frozen=True, kw_only=True):
    """Type and shape of a tensor."""

    dtype: str
    shape: tuple[int, ...] = ()

    @property
    def elements(self) -> int:
        """The number of elements."""
        count = 1
        for size in self.shape:
            count *= size
        return count


class ReplayInput(Tensor, frozen=True, kw_only=True):
    """An input of an op: a tensor, and how to fill it."""

    values: tuple[int, ...] = ()
    """Its numbers, where the op needs these: axes, shapes."""
    fill: Literal["random", "definite"] = "random"
    """Numbers of a tensor without ``values``: random, or a positive definite matrix."""
    below: int = 100
    """Bound of random whole numbers: the size of what they are indices of."""


class ReplayNode(msgspec.Struct, frozen=True, kw_only=True):
    """An op, or a part of an op that TensorFlow's optimizer made of several."""

    type: str
    attributes: str = ""
    """Attributes as JSON."""
    inputs: tuple[tuple[int, int], ...] = ()
    """(number of an earlier node, its output); a negative number -1-i is the recipe's input i."""
    out_attr: str = ""
    """Attribute that is the type of its output; "" if its inputs show it."""
    out_dtype: str = ""


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """How to build an op alone."""

    inputs: tuple[ReplayInput, ...]
    nodes: tuple[ReplayNode, ...]
    main: int = 0
    """Index of the node that does the work; others were fused with it."""
    output: Tensor
    """Output of the last node."""

    @property
    def type(self) -> str:
        """Type of the node that does the work."""
        return self.nodes[self.main].type

    @property
    def bytes(self) -> int:
        """Bytes of all inputs and the output."""
        return sum(t.elements * size_of(t.dtype) for t in (*self.inputs, self.output))

    def key(self) -> str:
        """Same for recipes of the same op at the same shapes."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()[:16]


class RecipeOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A recipe as the replay's program is given it."""

    key: str
    variant: Variant = ""
    bytes: int
    inputs: tuple[ReplayInput, ...]
    nodes: tuple[ReplayNode, ...]


class ReplayPart(msgspec.Struct, frozen=True, kw_only=True):
    """What is measured with one number of threads."""

    threads: int = 0
    """Threads within an op; 0: as many as TensorFlow takes."""
    roofs: bool = False
    recipes: tuple[RecipeOrder, ...] = ()


class ReplayOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What the replay's program reads."""

    seconds: float
    """Time from its start after which nothing new is measured."""
    least_s: float
    """Time after the import of TensorFlow for which it measures in any case."""
    parts: tuple[ReplayPart, ...]


class Roofs(msgspec.Struct, frozen=True, kw_only=True):
    """What the machine reaches at best, as measured."""

    flops_per_s: float
    """Floating-point operations per second of a product of float32 matrices, with all threads."""
    memory_bytes_per_s: float
    """Bytes per second that an addition reads and writes in memory, with all threads."""
    copies: tuple[tuple[int, float], ...] = ()
    """(bytes of a copy, bytes per second) of copies by one thread: within caches, and in memory."""
    fixed_ns: float
    """Time of an op of four elements."""


class ReplayTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Times of one variant of an op alone."""

    variant: Variant = ""
    threads: int = 0
    fastest_ns: float = 0.0
    median_ns: float = 0.0
    slow_ns: float = 0.0
    """Time that a quarter of the runs took longer than."""
    warm_ns: float = 0.0
    """Fastest run with inputs that the run before it has read too; 0: not measured."""
    runs: int = 0
    waited_ratio: float = 0.0
    """Time that its threads waited for a CPU during the fastest run, over that run's time: others had it."""
    problem: str = ""
    """Why it was not measured."""


class ReplayedOp(msgspec.Struct, frozen=True, kw_only=True):
    """One op."""

    key: str
    """``Recipe.key``."""
    times: tuple[ReplayTimes, ...] = ()


class Replays(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured after the job. Since 0.1."""

    schema: str = SCHEMA
    tensorflow: str = ""
    cores: int = 0
    """CPUs that the replay could use."""
    threads: int = 0
    """Threads within an op that the job set; 0: TensorFlow's default."""
    fixed_ns: float = 0.0
    """Time of an op of four elements."""
    others_cores: float = 0.0
    """CPUs that other processes used meanwhile."""
    wall_ns: int = 0
    """Time from the start of the replay to its end."""
    ops: tuple[ReplayedOp, ...] = ()
    roofs: Roofs | None = None
    problem: str = ""
    """Why it ended early; "" if it did not."""


def size_of(dtype: str) -> int:
    """Bytes of an element of a type."""
    if dtype == "bool":
        return 1
    digits = "".join(c for c in dtype if c.isdigit())
    return max(1, int(digits) // 8) if digits else 4
