"""What must be true for a remedy to be offered, as data: of the job that it is given to, and of what it is about.

A detector lists what could be done, the best first; ``fitting`` keeps what can work there. A remedy whose words are
those of a library needs a process that has it. Other conditions stand in ``CONDITIONS`` by the remedy's id.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from stepscope.causes.system import contention
from stepscope.derive import job_framework
from stepscope.model.log.events import Framework

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from stepscope.derive.view import SessionView
    from stepscope.tables.findings import Remedy

WORKER_CPUS = 0.5
"""CPUs that must be idle during the steps for a worker to gain anything."""


class Fact(Enum):
    """Something that is true of a job, or of what a finding is about."""

    IDLE_CPU = "a CPU is idle during the steps"
    TENSORFLOW = "its process has TensorFlow"
    CHEAP_ROWS = "a row costs no more than the Python around it"
    DRAWS = "it draws at random"
    PYTHON_OPS = "its Python calls TensorFlow's ops"
    READS_VALUES = "it reads tensors' values into Python"
    ONCE = "it happened once, in one of many steps or between two of them"
    FEW = "it happened in few of many steps"
    WHOLE_ARRAYS = "its time is in NumPy's own functions"
    UNSEEN = "what ran then is not known: nothing was sampled"
    IDLE_WORKERS = "some of the workers have hardly any work"
    CROWDED_WORKERS = "the workers take all CPUs, and have several threads, or code that calls a library that has"
    TRAINER = "the Trainer of transformers makes the loader"
    KEPT_IN_VAIN = "its loaders are to keep their workers, and do not"
    SHORT_PASSES = "a pass over the data is no longer than the start of its workers"
    SPAWNED = "its workers are new interpreters"


class Condition(Struct, frozen=True, kw_only=True):
    """Facts that a remedy needs, and those that rule it out."""

    needs: frozenset[Fact] = frozenset()
    unless: frozenset[Fact] = frozenset()


_WORKERS = Condition(needs=frozenset({Fact.IDLE_CPU}))
_AGAIN = Condition(unless=frozenset({Fact.ONCE}))
_ONE = Condition(needs=frozenset({Fact.ONCE}))
_EACH = Condition(unless=frozenset({Fact.FEW}))
_NOT_DRAWN = Condition(unless=frozenset({Fact.DRAWS}))

CONDITIONS = {
    "batched-rows": Condition(needs=frozenset({Fact.CHEAP_ROWS})),
    "callback-less-often": _AGAIN,
    "do-it-less-often": Condition(unless=frozenset({Fact.ONCE, Fact.UNSEEN})),
    "draw-less": Condition(needs=frozenset({Fact.DRAWS})),
    "evaluate-less": _ONE,
    "evaluate-less-often": _AGAIN,
    "find-what-stalls": Condition(needs=frozenset({Fact.UNSEEN})),
    "fewer-loader-workers": Condition(needs=frozenset({Fact.SHORT_PASSES})),
    "fork-loader-workers": Condition(needs=frozenset({Fact.SPAWNED})),
    "fuse-ops": _NOT_DRAWN,
    "input-in-processes": _WORKERS,
    "into-the-input": Condition(needs=frozenset({Fact.DRAWS})),
    "keep-loader-workers": Condition(unless=frozenset({Fact.KEPT_IN_VAIN})),
    "keep-what-is-built": Condition(unless=frozenset({Fact.UNSEEN})),
    "larger-batch-for-loop": _EACH,
    "less-often": _AGAIN,
    "less-in-numpy": Condition(needs=frozenset({Fact.WHOLE_ARRAYS})),
    "less-work-per-sample": Condition(unless=frozenset({Fact.CHEAP_ROWS})),
    "longer-epochs": _AGAIN,
    "loader-workers": Condition(needs=frozenset({Fact.IDLE_CPU}), unless=frozenset({Fact.CHEAP_ROWS, Fact.TRAINER})),
    "look-at-that-pause": _ONE,
    "look-at-that-step": _ONE,
    "look-at-those-steps": Condition(needs=frozenset({Fact.FEW}), unless=frozenset({Fact.ONCE})),
    "make-ahead": Condition(needs=frozenset({Fact.IDLE_CPU}), unless=frozenset({Fact.TENSORFLOW})),
    "more-loader-workers": Condition(
        needs=frozenset({Fact.IDLE_CPU}),
        unless=frozenset({Fact.CHEAP_ROWS, Fact.IDLE_WORKERS, Fact.CROWDED_WORKERS}),
    ),
    "more-workers": _WORKERS,
    "move-off-thread": Condition(unless=frozenset({Fact.UNSEEN})),
    "move-to-process": _WORKERS,
    "one-loader": Condition(needs=frozenset({Fact.KEPT_IN_VAIN})),
    "one-thread-per-worker": Condition(needs=frozenset({Fact.CROWDED_WORKERS})),
    "numpy-in-python": Condition(needs=frozenset({Fact.PYTHON_OPS})),
    "ops-in-graph": Condition(needs=frozenset({Fact.PYTHON_OPS})),
    "out-of-the-step": _NOT_DRAWN,
    "parallel-input": _WORKERS,
    "prepare-offline": _NOT_DRAWN,
    "read-less-often": _AGAIN,
    "reads-out-first": Condition(needs=frozenset({Fact.READS_VALUES})),
    "save-less": _ONE,
    "save-less-often": _AGAIN,
    "split-among-workers": Condition(needs=frozenset({Fact.IDLE_WORKERS})),
    "several-readers": Condition(unless=frozenset({Fact.TENSORFLOW})),
    "steps-per-execution": _EACH,
    "trainer-workers": Condition(needs=frozenset({Fact.IDLE_CPU, Fact.TRAINER}), unless=frozenset({Fact.CHEAP_ROWS})),
    "use-tensorflow-ops": Condition(unless=frozenset({Fact.PYTHON_OPS})),
    "use-tf-function": Condition(unless=frozenset({Fact.READS_VALUES})),
    "vectorise-start": Condition(unless=frozenset({Fact.TENSORFLOW})),
    "vectorise": Condition(unless=frozenset({Fact.WHOLE_ARRAYS, Fact.UNSEEN})),
}
"""By the ids of remedies; one without a row works wherever its finding is made."""

_KERAS = (
    r"\b[Kk]eras\b|steps_per_execution|validation_(freq|steps|batch_size)|(?<!torch\.)\bcompile\(|update_freq|"
    r"on_epoch_end|steps_per_epoch|PyDataset|\bgive fit\b"
)
_TENSORFLOW = (
    r"\btf\.|\bTF_|TFRecord|TensorFlow|tensorflow|AUTOTUNE|num_parallel|jit_compile|\bXLA\b|\binterleave\b|"
    r"\b(cache|repeat|prefetch|batch|shuffle|take)\(|@tf|experimental_enable_async"
)
WORDS: dict[str, tuple[re.Pattern[str], frozenset[str]]] = {
    "TensorFlow": (re.compile(_TENSORFLOW), frozenset({"tensorflow"})),
    "Keras": (re.compile(_KERAS), frozenset({"keras", "tf_keras", "tensorflow"})),
    "PyTorch": (re.compile(r"\btorch\b|DataLoader|num_workers|pin_memory|persistent_workers"), frozenset({"torch"})),
    "JAX": (re.compile(r"\bjax\b|\bJAX\b|\bXLA\b|jit_compile"), frozenset({"jax"})),
    "ONNX Runtime": (re.compile(r"SessionOptions|InferenceSession|ONNX"), frozenset({"onnxruntime"})),
}
"""Words of a library's own, and what a process imports that has it."""


def fitting(view: SessionView, offered: Iterable[Remedy], about: Collection[Fact] = ()) -> tuple[Remedy, ...]:
    """The remedies that can work.

    Args:
        view: the job.
        offered: by the detector, the best first.
        about: what is true of what the finding is about.
    """
    has, facts = libraries(view), {*of_job(view), *about}
    kept = [remedy for remedy in offered if _worded(remedy, has) and _holds(remedy, facts)]
    first = [replace(one, text=one.text.removeprefix("or ").removeprefix("and ")) for one in kept[:1]]
    return (*first, *kept[1:])


def libraries(view: SessionView) -> frozenset[str] | None:
    """What the process of the steps imported, without steps any process of the job; None: not known, as of an older
    session with calls of a framework that no line names.

    A file of a profiler says it only where its events are no other framework's.
    """
    if view.session.manifest.mode == "import":
        trace = view.traces.main
        if trace is None or trace.framework == "tensorflow":
            return None
        return frozenset({trace.framework, *(other.framework for other in trace.together)})
    workers = [view.worker] if view.worker is not None else list(view.workers)
    if not workers:
        return None
    seen = {event.name for worker in workers for event in worker.all(Framework)}
    seen = seen.union(*(worker.info.frameworks for worker in workers))
    return frozenset(seen) if seen or view.get(job_framework.build) is not None else None


def of_job(view: SessionView) -> frozenset[Fact]:
    """What is true of the job, whatever a finding is about."""
    has = libraries(view)
    facts = {Fact.IDLE_CPU: _idle_cpus(view) >= WORKER_CPUS, Fact.TENSORFLOW: has is not None and "tensorflow" in has}
    return frozenset(fact for fact, holds in facts.items() if holds)


def workers(view: SessionView) -> str:
    """Number of workers to propose: a CPU for each, and one for the process that trains."""
    cpus = view.session.manifest.host.cpus if libraries(view) is not None else 0
    return str(max(1, min(4, cpus - 1))) if cpus else "N"


def loader_workers(view: SessionView) -> str:
    """Workers for PyTorch's DataLoader."""
    return f"make batches in worker processes: DataLoader(num_workers={workers(view)}, persistent_workers=True)"


def trainer_workers(view: SessionView) -> str:
    """The same where the Trainer of transformers makes the loader from its arguments."""
    said = loader_workers(view).replace("DataLoader(num", "TrainingArguments(dataloader_num")
    return said.replace(" persistent", " dataloader_persistent")


def _idle_cpus(view: SessionView) -> float:
    """CPUs that were free during the steps; one where that is not known."""
    used = view.get(contention.build)
    if used is not None:
        return used.available - used.got - used.fed - used.withheld
    return float(view.session.manifest.host.cpus - 1) if view.session.manifest.host.cpus else 1.0


def _worded(remedy: Remedy, has: frozenset[str] | None) -> bool:
    """Whether the process has one of the libraries whose words a remedy uses; a remedy may name several as choices."""
    if has is None:
        return True
    spoken = [names for words, names in WORDS.values() if words.search(remedy.text)]
    return not spoken or any(names & has for names in spoken)


def _holds(remedy: Remedy, facts: Collection[Fact]) -> bool:
    condition = CONDITIONS.get(remedy.id, Condition())
    return condition.needs.issubset(facts) and condition.unless.isdisjoint(facts)
