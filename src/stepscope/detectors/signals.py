"""The signals that detectors need, which framework gives which, and what to say of one that is missing.

A hint answers to the job: it says nothing of a framework that the job does not run, and names no command that cannot
work on it.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from stepscope.causes.cluster import members
from stepscope.derive import job_framework
from stepscope.derive.steps import step_candidates
from stepscope.model.session.session import records_lost
from stepscope.tables.errors import install_command

if TYPE_CHECKING:
    from stepscope.derive.job_framework import JobFramework
    from stepscope.derive.view import SessionView


class Signal(Enum):
    """A kind of data that a session may hold. The value is its name in reports."""

    STEPS = "steps"
    SAMPLES = "stack samples"
    CALLS = "times of the framework's calls"
    STACKS = "stack samples of any thread"
    BATCHES = "batches that the steps were seen to take"
    INPUT_WAIT = "measurement of the input wait inside the compiled step"
    TRACES = "traces of tf.functions"
    GRAPHS = "sizes of the graphs of sessions"
    NODES = "nodes of traced graphs"
    HOST = "CPU samples of the host during steady steps"
    LOCK = "samples of waits for the interpreter lock (GIL)"
    MEMORY = "samples of the process's memory"
    FAULTS = "counts of page faults"
    NATIVE = "native stacks"
    MEMORY_LOOKS = "snapshots of memory"
    SIZES = "sizes of what the compiled step works on"
    RESOURCES = "samples of network and disks"
    GPU = "samples of the GPU"
    LIVE_BYTES = "live bytes of the GPU's memory"
    OP_TRACE = "op trace of some steps"
    DEVICE_TRACE = "op trace with GPU or TPU work"
    PROGRAMS = "compiled programs in an op trace of some steps"
    RUN = "measured run"
    EXPERIMENT = "experiment"
    MEMBERS = "steps of several members of the job"
    RANKS = "files of several ranks of the job"
    ENDED = "end of the job"


HINTS = {
    Signal.STEPS: "nothing repeats at least four times; stepscope.step() marks the steps of any loop",
    Signal.SAMPLES: "the run was too short for samples (20 per second)",
    Signal.CALLS: "only calls of TensorFlow, Keras and ONNX Runtime are measured",
    Signal.STACKS: "no thread of the process was sampled before it ended",
    Signal.BATCHES: "only waits for a DataLoader are seen; stepscope.span() around the next() of another loader shows "
    "those for it",
    Signal.INPUT_WAIT: "tf.data's model was not read in this run",
    Signal.TRACES: "no tf.function was seen",
    Signal.GRAPHS: "no session was created while the agent's thread ran",
    Signal.NODES: "graphs are read one second after the last trace: the run was too short, or traced nothing",
    Signal.HOST: "the steady part must last at least 2 s, with one sample per second",
    Signal.LOCK: "needs /proc/self/task/TID/syscall; sampled five times per second while another thread is active",
    Signal.RESOURCES: "the steady part must last at least 4 s, with one sample per second",
    Signal.GPU: f"{install_command('gpu')}; the steady part must last at least 4 s",
    Signal.LIVE_BYTES: "NVML only shows reserved memory, which is nearly all; only the framework knows the live bytes",
    Signal.MEMORY: "the steady part must last at least 8 s, with one sample per second",
    Signal.FAULTS: "the steady part must last at least 5 s, with one sample per second",
    Signal.MEMORY_LOOKS: "the first is taken after a minute (enable: ten); stepscope memory PID shows a process",
    Signal.NATIVE: "run stepscope trace JOB --kind native while it runs",
    Signal.OP_TRACE: "run stepscope trace JOB while it runs",
    Signal.DEVICE_TRACE: "needs an op trace of a job on a GPU or TPU: stepscope trace JOB, or stepscope import FILE",
    Signal.PROGRAMS: "needs an op trace by a profiler of XLA, as JAX has it",
    Signal.RUN: "this session was imported; measure the job with stepscope run",
    Signal.EXPERIMENT: "nothing was tried on this run; stepscope whatif changes one thing at a time and measures it",
    Signal.MEMBERS: "this is the session of one process; stepscope merge joins those of a job's workers",
    Signal.RANKS: "these are no files of several ranks; stepscope import FILE ... takes those of all together",
    Signal.ENDED: "the job still runs, or how it ended was not seen: stepscope run sees it",
    Signal.SIZES: "only the number of samples per step is recorded, not their length",
}

IMPORTED_HINTS = HINTS | {
    Signal.OP_TRACE: "the file has no steps: no step markers, and no repeating work that takes most of the time",
    Signal.DEVICE_TRACE: "the file has no steps with work on a GPU or TPU",
    Signal.NATIVE: "import a file of sampled stacks with stepscope import",
}
"""Hints for a session of imported files."""
_STACKS_ALONE = "sampled stacks hold no ops: stepscope flame draws them"
OF_DEVICES = frozenset({Signal.DEVICE_TRACE, Signal.GPU, Signal.LIVE_BYTES})
"""Signals that a machine without a GPU cannot give: a detector that lacks one does not apply there."""
IN_FILES = frozenset({Signal.OP_TRACE, Signal.DEVICE_TRACE, Signal.NATIVE, Signal.PROGRAMS})
"""Signals an imported file can carry. A detector that lacks any other signal needs a measured run."""

OF_TENSORFLOW = frozenset({Signal.TRACES, Signal.GRAPHS, Signal.NODES, Signal.LIVE_BYTES})
"""Signals that only TensorFlow gives, if it computes the steps; JAX gives the first, too."""
OF_TRACES = frozenset({Signal.OP_TRACE, Signal.DEVICE_TRACE, Signal.PROGRAMS})
"""Signals that a running job gives by TensorFlow's profiler."""
OF_SAMPLES = frozenset({Signal.SAMPLES, Signal.STACKS})
"""Signals of sampled Python stacks."""
LATE = "is sampled from some five seconds after its start, if it computes"
MIN_SAMPLED_NS = 1_000_000_000
"""Steps that last longer are sampled, at 20 samples per second, if their thread is."""
EAGER = (
    "most calls of JAX come from jax.numpy outside of jitted functions, too many to be looked at: jax.jit around the "
    "whole step shows its steps, or stepscope.step() marks them"
)
"""Hint where the calls of jitted functions were not looked at to the end."""
UNREAD = "parts of what was recorded cannot be read"
"""Hint where steps may be in files that are damaged."""
_STEPS = {
    "onnxruntime": "no session of ONNX Runtime was seen to run at least four times: run, run_with_iobinding, "
    "run_with_ort_values and run_async are seen; stepscope.step() marks the steps of any loop",
    "torch": "of PyTorch only an optimizer's steps are seen, and none came at least four times; stepscope.step() marks "
    "the steps of any loop",
    "jax": "of JAX calls of jitted functions (from Python 3.12 on) and values that are read are seen, and none came at "
    "least four times; stepscope.step() marks the steps of any loop",
    "numpy": "NumPy's calls are not seen; stepscope.step() marks the steps of any loop",
    "": "no framework was imported whose calls are seen; stepscope.step() marks the steps of any loop",
}
"""Hints for missing steps, by what computes; a job with TensorFlow has that of ``HINTS``."""


def given(signal: Signal, framework: JobFramework, *, pipelines: bool = False) -> bool:
    """Whether a job that is measured can give a signal, whatever this run gave. ``pipelines``: for what is asked of
    tf.data, which TensorFlow's profiler shows whatever computes the steps.
    """
    if signal in OF_TRACES and pipelines:
        return framework.traceable
    if signal is Signal.TRACES and "jax" in framework.computes:
        return True
    return signal not in OF_TENSORFLOW | OF_TRACES or "tensorflow" in framework.computes


def imported_hint(signal: Signal, view: SessionView) -> str:
    """Why imported files lack a signal."""
    stacks_alone = signal in OF_TRACES and not view.session.op_traces and view.session.stacks
    return _STACKS_ALONE if stacks_alone else IMPORTED_HINTS[signal]


def _of_steps(view: SessionView, framework: JobFramework | None) -> str:
    """Why a measured job has no steps."""
    if records_lost(view.session):
        return UNREAD
    if any(step_candidates.gave_up(worker) for worker in view.workers):
        return EAGER
    if framework is not None and "tensorflow" not in framework.computes:
        return _STEPS[framework.computes[0] if framework.computes else ""]
    return HINTS[Signal.STEPS]


def hint(signal: Signal, view: SessionView) -> str:
    """Why a measured job lacks a signal, and what would give it."""
    framework, steps = view.get(job_framework.build), view.steps
    if signal is Signal.STEPS:
        return _of_steps(view, framework)
    if signal in OF_SAMPLES and framework is not None and not framework.sampled:
        return f"a process without a framework {LATE}"
    if signal is Signal.SAMPLES and steps is not None and steps.span[1] - steps.span[0] >= MIN_SAMPLED_NS:
        return "no sample was taken of the thread that makes the steps"
    if signal is Signal.TRACES and job_framework.is_jax(view):
        return "no compilation of JAX was seen"
    if signal is Signal.MEMBERS and len(view.get(members.build)) > 1:
        return "the members' waits are not compared: the row of the members says why"
    return HINTS[signal]
