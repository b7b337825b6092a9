"""How far a job was from the limit of its memory, and which batch would still fit."""

from __future__ import annotations

from typing import Literal

from stepscope.tables.structs import Struct


class MemoryRoom(Struct, frozen=True, kw_only=True):
    """The tightest limit of the process that makes the steps, else of the largest. Bytes."""

    limit: Literal["control group", "address space", "host", "device"]
    """Kind of limit. control group: the tightest of the process's groups; address space: RLIMIT_AS; device: memory of
    the GPU, of which the framework's live bytes count."""
    limit_bytes: int
    used_bytes: int
    """Taken when last seen, by all that the limit bounds; page cache, which the kernel takes back, does not count."""
    peak_bytes: int
    """Most that was seen to be taken at once."""
    bytes_per_second: float = 0.0
    """Rate at which the process's memory rises over the steady steps without levelling off; 0: it does not."""
    seconds_left: float | None = None
    """Time until the limit is reached at this rate; null: memory does not rise."""
    batch: int = 0
    """Mean samples of a step; 0: not known."""
    batch_fits: int = 0
    """Largest batch that fits, by the shapes of the step's graph (docs/memory.md); 0: not known."""
    sample_bytes: int = 0
    """Memory that one more sample takes in a step."""
    fixed_bytes: int = 0
    """Memory of a step that does not grow with its batch; variables do not count."""
    scale: float | None = None
    """Ratio of the step's measured memory to that of its shapes, with which both of the above are multiplied; null: it
    was not measured, and a usual one stands for it."""
    what_if: str | None = None
    """Command that proves it with a larger batch."""

    @property
    def factor(self) -> float | None:
        """How many times the batch fits; None: not known."""
        return self.batch_fits / self.batch if self.batch and self.batch_fits else None
