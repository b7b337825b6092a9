"""The input pipeline as it ran: a tree of stages, with what each takes and for whom it waits."""

from __future__ import annotations

from typing import Literal

from stepscope.tables.place import Place
from stepscope.tables.structs import Struct

WaitsFor = Literal["", "input", "consumer", "other"]
TreeSource = Literal["model", "trace", "none"]


class TreeStage(Struct, frozen=True, kw_only=True):
    """One stage, after tf.data's own rewriting. Times are means for one batch."""

    name: str
    """tf.data's name: Map, ParallelMapV2, MapAndBatch, Generator ..."""
    depth: int
    """Number of stages between it and the consumer."""
    function: str = ""
    """Function that it calls; empty: none, or not known."""
    place: Place | None = None
    """Where user code made it; null: tf.data inserted it, or not known."""
    self_ns: int
    """Own time over all its threads."""
    batch_ns: int
    """Own time, divided by its parallelism."""
    wait_ns: int = 0
    """Time between two batches in which it and the stages that run on its threads do nothing; 0 for a stage that runs
    on the threads of the stage before it."""
    waits_for: WaitsFor = ""
    """For whom they then wait. input: stages that feed them are slower. consumer: it takes no batch yet.
    other: none of these; the stages limit, and their clocks do not show why: a CPU, a lock, a call of Python."""
    parallelism: float
    """Elements on which it may work at a time."""
    asked_parallel: int = 0
    """num_parallel_calls of the source; 0: none, -1: AUTOTUNE."""
    elements: float
    """Elements that it gives."""
    buffered: float = 0.0
    """Elements that were ready, mean of the reads."""
    bytes: float = 0.0
    """Memory of what it gives; 0: not known."""
    limits: bool = False
    """Whether it is one of the stages, run one after the other, that take most time for a batch."""
    mend: bool = False
    """Whether it is the stage to mend: the steps wait, and it is the slowest of those that limit."""


class InputFunction(Struct, frozen=True, kw_only=True):
    """A Python function of the user's that the pipeline calls."""

    name: str
    role: str
    """How: py_function | numpy_function | generator | pydataset"""
    place: Place | None = None
    calls: int
    """Number of calls within the steady steps."""
    ns_per_step: int
    """Its time for one step, over all threads."""


class InputTree(Struct, frozen=True, kw_only=True):
    """The pipeline that fed the steps."""

    text: str
    """Which stage to mend, or why none, in a sentence."""
    source: TreeSource
    """From where the stages are known. model: tf.data's own counters; trace: an op trace."""
    wait_ratio: float | None
    """Share of the steps that waits for a batch; null: not measured."""
    wall_ns: int = 0
    """Time between two batches; 0: not known."""
    stages: tuple[TreeStage, ...] = ()
    """From the consumer to the sources."""
    functions: tuple[InputFunction, ...] = ()
    """User Python in the pipeline, longest first."""
