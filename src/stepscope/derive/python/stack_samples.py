"""Stack samples of the step thread, joined to the anatomy by time.

A sample belongs to the component of its moment. Two frames identify it: the innermost frame of the user's code (the
culprit) and the frame of the loop that makes the steps (the statement that pays). It stands for its duration: CPU time
for a sample of the CPU timer, time without CPU for one of the agent's thread (``agent.sampling.cpu_timer`` says why
there are two). Shares are shares of these durations.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepscope.derive.python import line_weights
from stepscope.derive.python.framework_files import AGENT, is_framework
from stepscope.derive.steps import sampled_parts
from stepscope.model.log.events import Code, Stack
from stepscope.model.log.waits import WaitSeen
from stepscope.model.report.components import REST
from stepscope.wire.kinds import Flag, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stepscope.derive.steps.anatomy import Anatomy
    from stepscope.derive.steps.steps import Steps
    from stepscope.model.report.components import ComponentName
    from stepscope.model.session.session import Worker
    from stepscope.tables.records import RecordTable

_OP_FUNCTIONS = frozenset({"quick_execute", "TFE_Py_FastPathExecute", "TFE_Py_Execute"})
"""Python functions whose own line is the C call that runs an eager op."""

_INSTALLED = ("/site-packages/", "/dist-packages/")
IDLE_PERIOD_NS = 200_000_000
"""Interval between two samples of an idle thread (``agent.sampling.sampler``)."""
VARIABLES = "/ops/resource_variable_ops.py"
"""TensorFlow code that reads and assigns variables."""
_BUILDING = frozenset(
    {
        "__init__",
        "_functional_construction_call",
        "_maybe_build",
        "add_weight",
        "build",
        "build_wrapper",
        "compile",
        "compute_output_spec",
        "from_config",
        "symbolic_call",
    }
)
"""Keras functions on the stack while layers and models are made."""
AUTOGRAPH_CALLS = "/tensorflow/python/autograph/impl/api.py"
"""TensorFlow code that calls on behalf of converted functions, those of a numpy_function too."""
_WAITS = {
    "/training/session_manager.py": frozenset({"wait_for_session", "_restore_checkpoint"}),
    "/training/server_lib.py": frozenset({"__init__", "join", "start"}),
    "/data/experimental/service/server_lib.py": frozenset({"join"}),
}
"""TensorFlow functions in whose own lines (a sleep, a call of C) a task waits for others of its cluster."""
_MEETS = frozenset({"ensure_initialized", "enable_collective_ops", "get_config_key_value", "wait_at_barrier"})
_MEETING = ("/distribute/collective_all_reduce_strategy.py", "/eager/remote.py")
"""TensorFlow code in which all tasks meet; the C calls below it wait for them."""
IMPORTING = "<frozen importlib"
"""Files of Python's import system, as code objects name them."""
_WRAPPERS = re.compile(
    r"_?(call_impl|use_grad|wrapped_call_impl)|(r_)?binary_op_wrapper|cache_miss|decorate(d|_context)|inner|wrapp(ed|er)"
    r"|deferring_binary_op|error_handler|op_dispatch_handler|reraise_with_filtered_traceback"
)
"""Functions of libraries that shorten tracebacks or choose what an operator or op calls, and names of what decorators
return: what they call has the name that a reader knows."""
_COMPREHENSIONS = re.compile(r"\.<locals>(\.<(genexpr|listcomp|dictcomp|setcomp)>)+$")
"""Ending of the name of code that is written inside of a function, and runs as a part of it, one in another without
``<locals>``; lists, dictionaries and sets have frames of their own up to Python 3.11."""
_PER_CALL = ("CallSpec.", "CallContext.")
"""Objects that Keras makes in each call of a layer."""


class Spot(Struct, frozen=True, kw_only=True):
    """A line of code on a stack."""

    file: str
    function: str
    line: int
    own: bool


class Sample(Struct, frozen=True, kw_only=True):
    """One sample of the step thread."""

    at: int
    weight_ns: int
    component: ComponentName | Literal[""]
    """Component of the anatomy; "" outside the steady steps."""
    frames: tuple[Spot, ...]
    """Frames, root to leaf."""
    on_cpu: bool = False
    """Flag: taken by the thread's CPU clock. False where the thread did not run, or has no such clock."""
    wait: WaitSeen | None = None
    """What the thread did when it was looked at; None: not known."""
    taken_ns: int | None = None
    """Weight with which it was taken, before ``ready_time.spread``; None: ``weight_ns``."""

    @property
    def culprit(self) -> Spot | None:
        """The innermost frame of the user's code: a comprehension's line is one of the function around it."""
        own = [f for f in self.frames if f.own]
        if not own:
            return None
        function = plain(own[-1].function)
        inside = function != own[-1].function and any((f.file, f.function) == (own[-1].file, function) for f in own)
        return replace(own[-1], function=function) if inside else own[-1]

    @property
    def leaf(self) -> Spot:
        """The innermost frame."""
        return self.frames[-1]

    def below_user(self) -> tuple[Spot, ...]:
        """Frames called by the user's innermost frame, outermost first."""
        for i in range(len(self.frames) - 1, -1, -1):
            if self.frames[i].own:
                return self.frames[i + 1 :]
        return self.frames

    @property
    def in_tensorflow(self) -> bool:
        """Whether the user's line was inside a framework."""
        return any(is_framework(f.file) for f in self.below_user())

    @property
    def in_agent(self) -> bool:
        """Whether the user's line was inside what measuring does besides the call that it measures.

        The wrapper of a call is the agent's, too, and what it calls may be C: it takes another agent function below it.
        """
        below = self.below_user()
        first = next((i for i, frame in enumerate(below) if is_agent(frame.file)), len(below))
        inside = below[first + 1 :]
        return any(is_agent(f.file) for f in inside) and not any(
            is_framework(f.file) or any(part in f.file for part in _INSTALLED) for f in inside
        )

    @property
    def waits_for_cluster(self) -> bool:
        """Whether the user's line waits inside TensorFlow for other tasks of the cluster (chief, server or peers)."""
        below = self.below_user()
        if not below:
            return False
        leaf = below[-1].function.rpartition(".")[2]
        waits = any(below[-1].file.endswith(file) and leaf in names for file, names in _WAITS.items())
        return waits or (leaf in _MEETS and any(f.file.endswith(_MEETING) for f in below))

    @property
    def makes_layers(self) -> bool:
        """Whether the user's line made or built Keras layers or a model."""
        return any(
            is_framework(f.file) and f.function.rpartition(".")[2] in _BUILDING and not f.function.startswith(_PER_CALL)
            for f in self.below_user()
        )

    @property
    def in_module(self) -> bool:
        """Whether it was taken in a call of a Module of PyTorch."""
        return any(sampled_parts.in_module(frame.file, frame.function) for frame in self.frames)

    @property
    def reads_variable(self) -> bool:
        """Whether the user's line was reading a TensorFlow variable: a model's weight, which input preparation does not
        read.
        """
        return any(f.file.replace("\\", "/").endswith(VARIABLES) for f in self.below_user())

    @property
    def in_op(self) -> bool:
        """Whether the innermost frame runs an op rather than Python."""
        leaf = self.leaf
        return leaf.function in _OP_FUNCTIONS or "/ops/gen_" in leaf.file


def plain(function: str) -> str:
    """The function in which a comprehension is written; others by their own name."""
    while (outer := _COMPREHENSIONS.sub("", function)) != function:
        function = outer
    return function


def is_agent(file: str) -> bool:
    """Whether a file is code of ours inside of the job."""
    return AGENT in file.replace("\\", "/")


def samples(steps: Steps, anatomy: Anatomy) -> tuple[Sample, ...]:
    """The samples of the step thread within the steady steps, in order of time."""
    taken = tuple(all_samples(steps))
    components = anatomy.component_at(np.array([s.at for s in taken], np.int64))
    split = anatomy.sampled is not None and anatomy.sampled.forward_ratio is not None
    return tuple(
        replace(s, component="forward" if split and c == REST and s.in_module else c)
        for s, c in zip(taken, components, strict=True)
        if c
    )


def sampled(steps: Steps | None) -> bool:
    """Whether there are stack samples of the step thread, at any time of the run."""
    if steps is None:
        return False
    records = steps.worker.records
    return bool(((records.kind == Kind.SAMPLE) & (records.thread == steps.thread)).any())


def all_samples(steps: Steps) -> Iterator[Sample]:
    """The samples of the step thread over the whole run, without a component.

    A sample of an idle thread stands for no time, but the thread that makes the steps is not idle: where it has no CPU
    clock, such a sample stands for the time since the one before.
    """
    taken = tuple(thread_samples(steps.worker, [steps.thread]))
    if any(sample.on_cpu for sample in taken):
        yield from taken
        return
    before = 0
    for sample in taken:
        elapsed = min(sample.at - before, IDLE_PERIOD_NS) if before else 0
        yield sample if sample.weight_ns else replace(sample, weight_ns=elapsed)
        before = sample.at


def thread_samples(worker: Worker, threads: Sequence[int], *, gaps: bool = False) -> Iterator[Sample]:
    """The samples of some threads over the whole run, without a component. ``gaps``: with those taken in gaps."""
    return (sample for _, sample in by_thread(worker, threads, worker.with_gaps() if gaps else None))


def by_thread(
    worker: Worker, threads: Sequence[int], records: RecordTable | None = None
) -> Iterator[tuple[int, Sample]]:
    """The samples of some threads, each with the id of its thread. ``records``: other ones than those observed."""
    records = worker.records if records is None else records
    mine = (records.kind == Kind.SAMPLE) & np.isin(records.thread, threads)
    stacks = worker.get(stacks_of)
    columns = (records.thread, records.start_ns, records.dur_ns, records.name, records.flags & Flag.CPU)
    for thread, at, weight, stack, clock in zip(*(column[mine].tolist() for column in columns), strict=True):
        frames, wait = stacks.get(stack, ((), None))
        if frames:
            yield thread, Sample(at=at, weight_ns=weight, component="", frames=frames, on_cpu=bool(clock), wait=wait)


def stacks_of(worker: Worker) -> dict[int, tuple[tuple[Spot, ...], WaitSeen | None]]:
    """Frames and wait of each stack by its number."""
    codes = {c.id: c for c in worker.all(Code)}
    waits = {w.id: w for w in worker.all(WaitSeen)}
    return {s.id: (_frames(codes, s), waits.get(s.wait)) for s in worker.all(Stack)}


def _frames(codes: dict[int, Code], stack: Stack) -> tuple[Spot, ...]:
    """The frames of a stack, without those through which AutoGraph calls everything: the time is in what is called."""
    frames = tuple(_spot(codes, *frame) for frame in stack.frames)
    return tuple(frame for frame in frames if not frame.file.endswith(AUTOGRAPH_CALLS)) or frames


def _spot(codes: dict[int, Code], code: int, line: int) -> Spot:
    known = codes.get(code)
    if known is None:
        return Spot(file="", function="?", line=line, own=False)
    return Spot(file=known.file, function=known.function, line=line, own=known.own)


COMMON_RATIO = 0.6
"""A function on at least this share of a set of stacks belongs to all of it: the remainder is noise at the edges."""


def loop_function(taken: Sequence[Sample], steps: Steps) -> tuple[str, str] | None:
    """(file, function) of the loop that makes the steps.

    The user's innermost function that stands both on the stacks of the step's calls and on those between them; without
    samples of calls, the caller in the call's name line, else the innermost function common to all stacks.
    """
    calls = [s for s in taken if s.component == "call"]
    between = [s for s in taken if s.component == "other-python"]
    common = _common(calls) & _common(between) if calls and between else set()
    call = steps.call
    if not common and call is not None and call.call_file and call.call_function:
        return call.call_file, call.call_function
    common = common or _common(taken)
    depth: Counter[tuple[str, str]] = Counter()
    for sample in taken:
        for i, frame in enumerate(sample.frames):
            key = (frame.file, frame.function)
            if key in common:
                depth[key] = max(depth[key], i + 1)
    return max(depth, key=lambda key: depth[key], default=None)


def callers(taken: Sequence[Sample], loop: tuple[str, str] | None) -> tuple[Spot, ...]:
    """The user's frames from which the loop's function is called, innermost first; none if they are not always the
    same.
    """
    calls = [s for s in taken if s.component == "call"]
    frames, count = next(iter(Counter(_around(s, loop) for s in calls).most_common(1)), ((), 0))
    return frames if count >= COMMON_RATIO * len(calls) else ()


def _around(sample: Sample, loop: tuple[str, str] | None) -> tuple[Spot, ...]:
    """The user's frames outside of the loop's function, innermost first."""
    own = [f for f in reversed(sample.frames) if f.own]
    first = next((i for i, f in enumerate(own) if (f.file, f.function) == loop), len(own))
    return tuple(f for f in own[first + 1 :] if (f.file, f.function) != loop)


def outside(taken: Sequence[Sample], loop: tuple[str, str] | None) -> frozenset[tuple[str, str]]:
    """(file, function) of the user's functions that call the loop's on most stacks that it is on."""
    inside = [s for s in taken if any((f.file, f.function) == loop for f in s.frames)]
    seen = Counter(key for s in inside for key in {(f.file, f.function) for f in _around(s, loop)})
    return frozenset(key for key, count in seen.items() if count >= COMMON_RATIO * len(inside))


def making_steps(taken: Sequence[Sample], loop: tuple[str, str] | None) -> frozenset[tuple[str, str]]:
    """(file, function) of the user's functions that make the steps: the loop's, and those in which the step's calls
    run.
    """
    calls = [s for s in taken if s.component == "call"]
    return frozenset(_common(calls) | ({loop} if loop is not None else set()))


def _common(taken: Sequence[Sample]) -> set[tuple[str, str]]:
    """The user's functions that stand on most of the stacks."""
    seen = Counter(key for s in taken for key in {(f.file, f.function) for f in s.frames if f.own})
    return {key for key, count in seen.items() if count >= COMMON_RATIO * len(taken)}


def lines_of(taken: Sequence[Sample]) -> tuple[tuple[str, str, int, int], ...]:
    """(file, function, first line, last line) of the two user functions most often sampled, by the lines with most of
    their samples.
    """
    culprits = [c for s in taken if (c := s.culprit) is not None]
    order = Counter((c.file, c.function) for c in culprits).most_common(2)
    found = []
    for key, _ in order:
        own = ((spot.line, 1) for spot in culprits if (spot.file, spot.function) == key)
        lines = line_weights.most(line_weights.ranked(own)) or (0,)
        found.append((*key, min(lines), max(lines)))
    return tuple(found)


def waiting_ratio(taken: Sequence[Sample], component: ComponentName) -> float | None:
    """Share of a component's sampled time in which the thread did not run; None if the thread has no CPU clock."""
    inside = [s for s in taken if s.component == component]
    whole = weight_of(inside)
    if not whole or not any(s.on_cpu for s in taken):
        return None
    return weight_of(s for s in inside if not s.on_cpu) / whole


def weight_of(taken: Iterable[Sample]) -> int:
    """Summed duration of samples, ns."""
    return sum(s.weight_ns for s in taken)


def taken_of(taken: Iterable[Sample]) -> int:
    """Summed duration of samples as they were taken, ns."""
    return sum(s.weight_ns if s.taken_ns is None else s.taken_ns for s in taken)


def statement_of(sample: Sample, loop: tuple[str, str] | None, around: Sequence[Spot] = ()) -> Spot | None:
    """The innermost frame of the loop function on a sample's stack, outside of it of those ``around`` it."""
    for function in (loop, *((f.file, f.function) for f in around)):
        found = next((f for f in reversed(sample.frames) if (f.file, f.function) == function), None)
        if found is not None:
            return found
    return None


def called(sample: Sample) -> str:
    """The function that the user's line calls; "" for none. Wrappers of ours and of Keras' tracebacks, and Python's own
    import system, are not what it calls.
    """
    return next((f.function for f in sample.below_user() if not is_agent(f.file) and not _passes_on(f)), "")


def _passes_on(frame: Spot) -> bool:
    """Whether a frame only leads to what is called."""
    return frame.file.startswith(IMPORTING) or _WRAPPERS.fullmatch(frame.function.rpartition(".")[2]) is not None


def inside_call(sample: Sample, loop: tuple[str, str] | None) -> bool:
    """Whether the framework called the user's innermost frame from the loop: a layer that runs eagerly, say."""
    frames = sample.frames[: -(len(sample.below_user()) + 1)]
    depth = next((i for i in range(len(frames) - 1, -1, -1) if (frames[i].file, frames[i].function) == loop), None)
    return depth is not None and any(is_framework(frame.file) for frame in frames[depth:])
