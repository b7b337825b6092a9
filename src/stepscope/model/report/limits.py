"""Whether the step's ops are as fast as they can be here: their times in the steps and alone, the machine's roofs."""

from __future__ import annotations

from stepscope.tables.structs import Struct


class OpLimit(Struct, frozen=True, kw_only=True):
    """An op, or several of the same shapes, types and attributes."""

    type: str
    """Type in the program."""
    inputs: tuple[str, ...] = ()
    """Types and shapes of its inputs, "float32[64,128]"."""
    file: str = ""
    """Path as in places; with ``line`` the line that made the heaviest of them; empty: unknown."""
    line: int = 0
    calls_per_step: float
    ratio: float
    """Share of the step's call, of the time of which a moment with several ops is divided among them."""
    step_ns: int
    """Time of one run in the steps, divided so."""
    run_ns: int
    """Duration of one run in the steps, whatever ran at the same time."""
    alone_ns: int = 0
    """Time of the fastest run alone; 0: it was not run alone."""
    reached_ratio: float = 0.0
    """``alone_ns`` over ``step_ns``: from 0.7 on it is as fast in the steps as it can be here. 0: unknown."""
    flops_per_s: float = 0.0
    """Floating-point operations per second alone; 0: it only moves data, or there is no formula for its type."""
    bytes_per_s: float = 0.0
    """Bytes of inputs and output per second alone."""
    roof_ratio: float = 0.0
    """Shortest possible time by the machine's roofs over the time alone; 0: unknown."""
    proven: bool = False
    """Whether it is as fast as it can be here."""
    why: str = ""
    """Why that is not proven; empty if it is."""
    cheaper: tuple[str, ...] = ()
    """Ways in which it was at least 1.5 times as fast alone."""


class MachineRoofs(Struct, frozen=True, kw_only=True):
    """What the machine reaches at best, as measured."""

    flops_per_s: float
    """Floating-point operations per second of a product of float32 matrices, with all threads."""
    memory_bytes_per_s: float
    """Bytes per second that an addition reads and writes in memory, with all threads."""
    copies: tuple[tuple[int, float], ...] = ()
    """(bytes of a copy, bytes per second) of copies by one thread: within caches, and in memory."""
    fixed_ns: float
    """Time of an op of four elements."""


class Limits(Struct, frozen=True, kw_only=True):
    """What was measured alone after the job, against the traced steps."""

    text: str
    """The answer in one sentence."""
    explained_ratio: float
    """Share of the step's call in ops that are proven to be as fast as they can be here."""
    ops: tuple[OpLimit, ...] = ()
    """The heaviest ops, the heaviest first, at most 20."""
    roofs: MachineRoofs | None = None
    threads: int = 0
    """Threads within an op, as the job set them; 0: TensorFlow's default."""
    cores: int = 0
    """CPUs that the job could use."""
    others_cores: float = 0.0
    """CPUs that other processes used while the ops ran alone."""
    problem: str = ""
    """Why the ops were not all run; empty if they were."""
