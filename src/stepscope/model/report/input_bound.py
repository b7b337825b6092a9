"""What the input could reach at best, by a model of its stages, and the edits that reach it."""

from __future__ import annotations

from typing import Literal

from stepscope.tables.structs import Struct

RateUnit = Literal["samples", "batches"]
BindingResource = Literal["cores", "stage", "step", "disk", "network"]


class InputStage(Struct, frozen=True, kw_only=True):
    """One stage of the pipeline, after tf.data's own rewriting. Times for one batch."""

    name: str
    file: str = ""
    """Path as in places; empty: tf.data inserted the stage."""
    line: int = 0
    cpu_ns: int
    """CPU time over all its threads."""
    blocked_ns: int = 0
    """Time for which it waits for something else than a CPU or its inputs."""
    parallel: bool
    """Whether it may have several threads."""
    elements: float
    """Elements that it works on."""
    bytes: float
    """Memory of what it gives."""


class InputEdit(Struct, frozen=True, kw_only=True):
    """One edit of the pipeline."""

    kind: str
    """Kind: parallel | prefetch | earlier | batch-first | cache | take-first"""
    text: str
    file: str = ""
    line: int = 0
    per_s: float
    """Rate after it and all before it, predicted."""
    binds: BindingResource
    """What binds then."""
    note: str = ""
    """Condition that no counter shows; empty: none."""
    bytes: float = 0.0
    """Memory that it takes."""
    what_if: str | None = None
    """Command that measures it without a change of the code; null: no intervention does it."""


class RateOnCores(Struct, frozen=True, kw_only=True):
    """The job on a number of cores like those of the run. Modelled; the step takes no less time on more cores."""

    cores: int
    now_per_s: float
    """As it is."""
    best_per_s: float
    """After all edits."""
    binds: BindingResource
    """What binds after them."""


class InputBound(Struct, frozen=True, kw_only=True):
    """The pipeline as it is and at best. Modelled, under the circumstances of the run."""

    text: str
    """The answer in one or two sentences."""
    unit: RateUnit
    """Unit of the rates: samples or batches a second."""
    now_per_s: float
    best_per_s: float
    """After all edits; no less than now."""
    without_cache_per_s: float
    """After those that need no memory."""
    binds: BindingResource
    """What binds at best. stage: work that runs on one thread; step: the step, which then never waits."""
    stage: str = ""
    """Name of the stage that binds."""
    cores: float
    """CPUs that the job may use."""
    step_ns: int
    """Time of the step without its wait, undisturbed, for one batch."""
    step_cpu_ns: int
    """CPU time of the same."""
    memory_bytes: float
    """Memory of the host; 0: unknown."""
    too_large_bytes: float = 0.0
    """Size of a cache that would help and does not fit; 0: there is none."""
    edits: tuple[InputEdit, ...] = ()
    """The edits that reach it, in their order."""
    trial: str = ""
    """The intervention that makes all edits in the running job; empty: none does."""
    what_if: str | None = None
    """Command that measures them together; null: no intervention does."""
    diff: str = ""
    """The edits as a unified diff of the user's sources."""
    no_diff: str = ""
    """Why edits are missing from it; empty: none is."""
    by_cores: tuple[RateOnCores, ...] = ()
    """Numbers of cores up to the first at which cores bind neither: what a larger or a smaller machine would bring."""
    stages: tuple[InputStage, ...] = ()
    """From the consumer to the sources."""
