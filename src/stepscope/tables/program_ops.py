"""Ops of a compiled program (HLO) that a trace's events name: what they compute, how much, and for which line."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct


class Frame(NamedTuple):
    """A line that led to an op."""

    file: str
    function: str
    line: int


class Convolution(Struct, frozen=True, kw_only=True):
    """A convolution, or one of its two gradients, in the sizes of the forward one."""

    kernel: tuple[int, ...]
    """Positions of its kernel each way."""
    taken: int
    """Channels that each position of its result is made of."""
    made: int
    """Channels of its result."""
    plain: bool
    """Whether it moves by one position, without gaps, and mixes all channels."""
    gradient: bool = False
    """Flag: it is a gradient."""


class ProgramOp(Struct, frozen=True, kw_only=True):
    """An instruction of a program."""

    name: str
    """Name in the program, as events have it."""
    opcode: str
    """Opcode, for a call of a library the call's target: ``__cudnn$convForward``."""
    shape: str
    """Shape of its result, as XLA prints it; of a tuple its first part."""
    flops: float = 0.0
    """Operations of one run in its matrix products and convolutions by their definition, with those fused into it; an
    algorithm may need fewer. 0: it has none."""
    op_name: str = ""
    """Name of the framework's op that it was made of; "" if the program does not say."""
    frames: tuple[Frame, ...] = ()
    """Lines that led to it, innermost first; none if the program does not say."""
    convolution: Convolution | None = None
