"""Which allocator serves a process: seen by the collector from outside, by the agent from inside, and in windows of
stacks.

If oneDNN is on, its pool serves TensorFlow's tensors: malloc, whichever it is, then serves the rest.

Serves steady_page_faults, in addition to the cause of that name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.derive.machine import fault_causes
from stepscope.model.log.events import DatasetMade, Framework, InferenceSession

if TYPE_CHECKING:
    from stepscope.derive.machine.fault_causes import FaultCauses
    from stepscope.derive.view import SessionView
    from stepscope.model.session.session import Worker
    from stepscope.tables.allocator_info import AllocatorInfo

_LIBRARIES = {
    "libjemalloc": "jemalloc",
    "libtcmalloc": "tcmalloc",
    "libmimalloc": "mimalloc",
    "libtbbmalloc": "tbbmalloc",
    "libc.so": "glibc",
    "libc-2.": "glibc",
}
_NAMES = {"glibc": "the C library's malloc", "": "the allocator", "unknown": "the allocator", "other": "the allocator"}
GENERATOR = "GeneratorDataset"
"""Class of the dataset behind ``Dataset.from_generator``, and behind Python generators given to Keras."""
PINS_THRESHOLD = (2, 21)
"""The first TensorFlow whose generator dataset calls mallopt(M_MMAP_THRESHOLD, 128 KiB). glibc then no longer raises
the threshold to the size of freed blocks, so every larger block is mapped again. Source: generator_dataset_op.cc of
2.21.0, whose log line names M_TRIM_THRESHOLD; the wheels of 2.16 to 2.20 do not contain that line."""
_HOW = {"preloaded": "preloaded", "linked": "linked", "static": "linked in"}


class Serving(Struct, frozen=True, kw_only=True):
    """The allocators that serve a process."""

    allocator: str
    """glibc, jemalloc ...; "" if unknown."""
    info: AllocatorInfo | None
    pool: str
    """oneDNN: its pool serves the tensors; none: malloc does; "" if unknown, or there is no TensorFlow."""
    causes: FaultCauses | None = None
    """Fault causes from a window of native stacks."""
    without_arena: InferenceSession | None = None
    """The first session of ONNX Runtime whose arena was switched off."""
    pinned_by: DatasetMade | None = None
    """The generator dataset by which TensorFlow pinned glibc's mmap threshold; None if none did."""

    @property
    def name(self) -> str:
        """The allocator's name as used in a sentence."""
        return _NAMES.get(self.allocator, self.allocator)

    @property
    def tensors_on_malloc(self) -> bool:
        """Whether malloc serves TensorFlow's tensors although it need not."""
        return self.pool == "none"

    @property
    def sentence(self) -> str:
        """The known facts, for the long report."""
        how = f" ({_HOW[self.info.how]})" if self.info is not None and self.info.how in _HOW else ""
        text = f"The allocator is {self.name}{how}"
        shown = {k: v for k, v in (self.info.settings if self.info else {}).items() if not k.startswith("TF_")}
        if shown:
            text += ", set up by " + " ".join(f"{key}={value}" for key, value in shown.items())
        serves = {"none": "; oneDNN is off, so tensors are its, too", "oneDNN": "; tensors are in oneDNN's pool"}
        arena = "; ONNX Runtime's arena is off, so its tensors are, too" if self.without_arena is not None else ""
        return text + serves.get(self.pool, "") + arena + "."


def build(view: SessionView) -> Serving:
    """For the process that makes the steps. A library seen returning memory has priority."""
    session = view.session
    causes = fault_causes.build(session, view.steps)
    worker = view.worker or next((w for w in session.workers if w.info.pid == session.manifest.job_pid), None)
    info = worker.info.allocator if worker is not None else None
    seen = next((site.library for site in causes.sites), "") if causes is not None else ""
    by_stack = next((name for prefix, name in _LIBRARIES.items() if seen.startswith(prefix)), "")
    pool = info.pool if info is not None else ""
    for framework in worker.all(Framework) if worker is not None else ():
        if framework.name == "tensorflow" and framework.detail:
            pool = "oneDNN" if framework.detail == "oneDNN on" else "none"
    name = by_stack or (info.name if info is not None else "")
    made = worker.all(InferenceSession) if worker is not None else ()
    without_arena = next((one for one in made if not one.arena), None)
    pinned_by = _pins_threshold(worker) if worker is not None and name == "glibc" else None
    return Serving(
        allocator=name, info=info, pool=pool, causes=causes, without_arena=without_arena, pinned_by=pinned_by
    )


def _pins_threshold(worker: Worker) -> DatasetMade | None:
    """The first generator dataset of a process whose TensorFlow pins the threshold; one with a line if there is one."""
    versions = [one.version for one in worker.all(Framework) if one.name == "tensorflow"]
    if not any(_parsed(version) >= PINS_THRESHOLD for version in versions):
        return None
    made = [one for one in worker.all(DatasetMade) if one.cls.lstrip("_") == GENERATOR]
    return next((one for one in made if one.file), made[0] if made else None)


def _parsed(version: str) -> tuple[int, ...]:
    """Major and minor number of a version; empty if it has none."""
    parts = version.split(".")[:2]
    return tuple(int(part) for part in parts) if all(part.isdigit() for part in parts) else ()
