"""Op time in the report: by maker of the ops, by op, by type."""

from __future__ import annotations

from stepscope.tables.structs import Struct


class MakerTime(Struct, frozen=True, kw_only=True):
    """Op time of a line of user code, or of a layer."""

    layer: str = ""
    """Name of the layer, optimizer or metric in whose call the ops were made; empty: of none."""
    layer_type: str = ""
    file: str = ""
    """Path as in places; with ``line`` the line that made the ops, or that built the layer; empty: neither is known."""
    line: int = 0
    function: str = ""
    built: bool = False
    """Flag: it is the line that built the layer, because library code made the ops."""
    types: tuple[str, ...] = ()
    """Op types that take most of it, at most three."""
    calls: int = 0
    """Number of op runs, in the whole trace."""
    ns: int
    """Self time, in the whole trace."""
    ratio: float
    """Share of all op time."""
    gradient_ratio: float = 0.0
    """Share of all op time that is in its gradients."""
    input: bool = False
    """Flag: tf.data calls its ops, so they work for the input and not for the model."""


class OpTime(Struct, frozen=True, kw_only=True):
    """Time of one op."""

    name: str
    type: str
    """Type as executed: the optimizer may have replaced the graph's own."""
    layer: str = ""
    file: str = ""
    """Path as in ``MakerTime``, with ``line``."""
    line: int = 0
    gradient: bool = False
    input: bool = False
    """Flag as in ``MakerTime``."""
    device: str = ""
    """Plane of the trace that it ran on."""
    shape: str = ""
    """Shape of its result, as the compiled program has it; empty: no program says it."""
    flops: float = 0.0
    """Operations of one run in matrix products and convolutions, by the compiled program; 0: none, or not known."""
    calls: int = 0
    ns: int
    ratio: float


class TypeTime(Struct, frozen=True, kw_only=True):
    """Time of all ops of a type."""

    type: str
    calls: int
    ns: int
    ratio: float


class OpTable(Struct, frozen=True, kw_only=True):
    """Op time of one trace. Self times of all threads and devices, which may run at the same time, add up to it."""

    trace: str
    """Name of the trace in the session."""
    begin_ns: int = 0
    """Time of its first op."""
    steps: int
    """Number of steps that the trace shows; 0: none."""
    ns: int
    """All op time."""
    joined_ratio: float
    """Share of op time whose node in a graph is known."""
    input_ratio: float = 0.0
    """Share of op time in ops that work for the input."""
    named_ratio: float = 0.0
    """Share of op time whose maker is known: a line, or a layer, optimizer or metric."""
    unnamed_types: tuple[str, ...] = ()
    """Op types that take most of the rest, at most three."""
    makers: tuple[MakerTime, ...] = ()
    """Makers by line and layer, at most 30, from 0.5 %."""
    ops: tuple[OpTime, ...] = ()
    """Ops, at most 50."""
    types: tuple[TypeTime, ...] = ()
    """Types, at most 30."""
