"""The lines of the agent's log, as typed structs (docs/session-format.md is generated from this module).

The agent writes plain JSON, because it may only import the standard library; the collector decodes with ``decode``.
``at`` is CLOCK_MONOTONIC nanoseconds in the log and nanoseconds since session start in a session. Ids are small
integers, unique within one process. Unknown fields are ignored, so that lines of a newer agent can be read."""

from __future__ import annotations

import msgspec

from stepscope.model.event import Event, Frame
from stepscope.model.log.cluster import ClusterEvent
from stepscope.model.log.eager import EagerOps
from stepscope.model.log.graph import GraphEvent
from stepscope.model.log.look import LookTaken
from stepscope.model.log.program import ProgramEvent
from stepscope.model.log.waits import WaitEvent


class ProcessStarted(Event, tag="process", frozen=True, kw_only=True):
    """First line of every log."""

    pid: int
    ppid: int
    argv: list[str] = []
    executable: str = ""
    python: str = ""
    cwd: str = ""
    main_thread: int = 0
    origin: str = ""
    """Origin of the process: "exec" or "fork"."""


class ThreadSeen(Event, tag="thread", frozen=True, kw_only=True):
    """A thread that writes records or is sampled. ``id`` is the record's thread field."""

    id: int
    native: int = 0
    name: str = ""
    main: bool = False


class Name(Event, tag="name", frozen=True, kw_only=True):
    """Meaning of a record's ``name``."""

    id: int
    text: str
    role: str = ""
    """Role. For EXECUTION train|test|predict; LOOP fit|evaluate|predict|train_on_batch|...; PYFUNC py_function|
    numpy_function|generator|pydataset; SESSION_RUN enqueue if it only fills queues; FUNCTION updates|reads if it has
    several graphs: whether this call's graph changes variables; SAVE checkpoint|weights| model|saved_model; SUMMARY
    write|flush; BUILD model|saved_model|graph|session|variables."""
    file: str = ""
    line: int = 0
    end_line: int = 0
    """Last line of the definition: the traced function, the callback's method, the generator."""
    hook: str = ""
    own: bool = False
    """Flag: defined in the user's code, not in site-packages."""
    converted: bool = False
    """Flag: AutoGraph has converted it: it was written inside of a function that TensorFlow traces."""
    call_file: str = ""
    call_line: int = 0
    call_function: str = ""
    """Function of user code that calls it (first seen), if known."""
    added: list[str] = []
    """Additional fetches of each hook, for SESSION_RUN in a MonitoredSession: "Class: fetches"."""


FRAMEWORKS = ("tensorflow", "keras", "tf_keras", "onnxruntime", "torch", "jax")
"""Frameworks that a job may be said to run on, in this order."""


class Framework(Event, tag="framework", frozen=True, kw_only=True):
    """A framework was imported. ``name``: one of ``FRAMEWORKS``, or numpy."""

    name: str
    version: str
    detail: str = ""
    dur: int = 0
    """Duration of its import, the imports in it included; 0 unknown."""


class Probe(Event, tag="probe", frozen=True, kw_only=True):
    """Result of attaching a probe."""

    name: str
    attached: bool
    why: str = ""


class AgentDiagnostic(Event, tag="diagnostic", frozen=True, kw_only=True):
    """A failure of ours, or something given up, inside the job."""

    code: str
    text: str


class Code(Event, tag="code", frozen=True, kw_only=True):
    """A code object seen in stacks."""

    id: int
    file: str
    function: str
    line: int = 0
    own: bool = False


class Stack(Event, tag="stack", frozen=True, kw_only=True):
    """A call stack, root to leaf: (id of a ``code`` line, line number)."""

    id: int
    frames: list[tuple[int, int]]
    wait: int = 0
    """Id of the ``wait`` line of what the thread did at these samples; 0: not known."""


class Traced(Event, tag="trace", frozen=True, kw_only=True):
    """A tf.function was traced, or JAX traced and compiled a program."""

    id: int
    function: str
    function_key: int
    """Identity of the Function object: retraces are counted per key. Never reused within a process."""
    definition_key: str = ""
    """Place file:line of the Python function: a function that is made repeatedly has one of these and many keys."""
    ordinal: int = 1
    """Number of the trace of this Function object, from 1."""
    dur: int = 0
    file: str = ""
    line: int = 0
    end_line: int = 0
    signature: str = ""
    cause: str = ""
    """Cause: "first" | "python-value" | "shape" | "dtype" | "structure" | "object" | "new-function" | "other"."""
    argument: str = ""
    """Argument that changed."""
    before: str = ""
    after: str = ""
    nodes: int = 0
    variables: int = -1
    """Number of variables that the graph reads or writes, including those of the optimizer; -1 unknown."""
    updates: int = 0
    """Number of ops that change variables as optimizers do: Assign(Sub), Resource(Apply|Scatter); not AssignAdd."""
    stack: list[Frame] = []
    """User frames of the call that led to the trace, root to leaf."""
    owner: str = ""
    """Owner: "user", "keras" (its train_function ...), "tf.data", "tensorflow", "jax" (or a library of its)."""
    outer: int = 0
    """Id of the enclosing trace, 0 if there is none."""
    jit: bool = False
    """Flag ``jit_compile``: XLA compiles it again for each set of shapes."""


class DatasetMade(Event, tag="dataset", frozen=True, kw_only=True):
    """A tf.data transformation was constructed."""

    id: int
    cls: str
    inputs: list[int] = []
    file: str = ""
    line: int = 0
    function: str = ""
    """Function of user code that made it."""
    stack: list[Frame] = []
    fn_name: str = ""
    fn_file: str = ""
    fn_line: int = 0
    fn_end_line: int = 0
    """Last line of the Python function passed to a map, filter, flat_map, interleave or from_generator."""
    batch: int = 0
    cardinality: int = -2
    """Cardinality in tf.data's convention: -1 infinite, -2 unknown."""
    parallel: int = 0
    """Value of num_parallel_calls; 0 none, -1 AUTOTUNE."""
    buffer: int = 0
    element_bytes: int = 0
    """Size of an element by its types and shapes, open dimensions as one; 0: unknown. Since 0.1."""
    parts: int = 0
    """Number of arguments that a function gets for an element: the parts of a tuple, else one; 0: unknown."""


class PyFunctionMade(Event, tag="pyfunction", frozen=True, kw_only=True):
    """A py_function or numpy_function was put into a graph. ``name``: the id of its PYFUNC name line."""

    name: int
    role: str
    stack: list[Frame] = []
    """User frames at the place of the tf.py_function call, root to leaf."""


class IteratorMade(Event, tag="iterator", frozen=True, kw_only=True):
    """An iterator over a dataset was made."""

    id: int
    dataset: int = 0
    batch: int = 0
    """Static leading dimension of its elements, 0 if unknown."""
    stack: list[Frame] = []


class IteratorModel(Event, tag="itermodel", frozen=True, kw_only=True):
    """tf.data's model of an iterator. ``proto``: base64; else ``error``: no-model (no autotune), no-op (TF < 2.17)."""

    iterator: int
    executions: int = 0
    """Number of calls of the consuming compiled function that had ended when the model was read."""
    in_call: bool = False
    """Flag: such a call was running at that moment."""
    cpu_ns: int = 0
    """CPU time of the process at that moment; 0: unknown. Since 0.1."""
    proto: str = ""
    error: str = ""


class BatchSeen(Event, tag="batch", frozen=True, kw_only=True):
    """Samples per execution for a compiled Keras function, in cases that records cannot show.

    ``loop``: start of its LOOP record. ``size``: a batch; ``samples``, ``steps``: an epoch; ``epochs``; 0: unknown."""

    loop: int
    role: str
    size: int = 0
    samples: int = 0
    steps: int = 0
    source: str = ""
    epochs: int = 0


class ChildStarted(Event, tag="child", frozen=True, kw_only=True):
    """The job started another process (subprocess, multiprocessing)."""

    pid: int
    command: str = ""
    file: str = ""
    line: int = 0
    function: str = ""


class ModelBuilt(Event, tag="model", frozen=True, kw_only=True):
    """A Keras model was compiled, for the ``compiles``-th time. Settings that explain how its step runs."""

    name: str = ""
    parameters: int = 0
    run_eagerly: bool = False
    steps_per_execution: int = 1
    jit_compile: bool = False
    file: str = ""
    line: int = 0
    compiles: int = 1


class InferenceSession(Event, tag="inference-session", frozen=True, kw_only=True):
    """An ONNX Runtime session was made, the first of its model and settings at that line."""

    model: str
    """File of the model, or the name of its graph if it came as bytes."""
    providers: list[str] = []
    intra_op_threads: int = 0
    """0: one per physical core."""
    inter_op_threads: int = 0
    parallel: bool = False
    """Flag: ops run in parallel on the inter-op threads."""
    spins: bool = True
    """Flag: threads of the intra-op pool spin while they wait."""
    arena: bool = True
    """Flag: tensors are in the session's arena; else in malloc's memory."""
    open_batch: bool = False
    """Flag: the first size of its first input that is no scalar is left open. Since 0.1."""
    replaceable: int = 0  # weights that each run may replace: they are inputs of the graph too. Since 0.1.
    file: str = ""
    line: int = 0
    function: str = ""


class GraphSize(Event, tag="graph", frozen=True, kw_only=True):
    """The number of ops in a session's graph, logged when it has changed, at growing intervals."""

    id: int
    """Id of the graph."""
    ops: int


class Metric(Event, tag="metric", frozen=True, kw_only=True):
    """The user's ``stepscope.metric(name, value)``, in sessions from before METRIC records."""

    name: str
    value: float


class UserProfiler(Event, tag="profiler", frozen=True, kw_only=True):
    """The user's own profiler started or stopped, or a profiler server was started whose clients may start one.

    ``action``: "start", "failed" (``at`` of its start), "stop", "stopped" (written, ``dur_ns``) or "server"."""

    action: str
    dur_ns: int = 0
    file: str = ""
    line: int = 0
    function: str = ""
    """Function of user code that starts it, or calls what does."""
    way: str = ""
    """Method: "run-metadata": runs of a session whose options ask for a full trace; "": the profiler. Since 0.1."""


class CaptureTaken(Event, tag="capture", frozen=True, kw_only=True):
    """Result of a capture requested from this process. ``at``: when recording began, if it did."""

    id: str
    kind: str = "ops"
    way: str = ""
    """Method: "profiler": TensorFlow's own; "run-metadata": the full trace of runs of a session."""
    outcome: str = ""
    """Outcome: "done" | "refused" (not begun) | "gave-way" (to the user's profiler, or to the job's end) | "failed"."""
    text: str = ""
    """Reason, or a remark about a finished capture."""
    steps: int = 0
    """Number of whole steps in it."""
    recorded_ns: int = 0
    unix_ns: int = 0
    """CLOCK_REALTIME at ``at``: the trace's own clock."""
    export_ns: int = 0
    """Wall time of stopping and writing, concurrent with the job."""
    cpu_ns: int = 0
    """CPU time of the thread that started, stopped and wrote it."""
    level: int = 0
    """Value of host_tracer_level; 0: TensorFlow's default."""
    files: list[str] = []
    """Files below ``captures/raw-ID`` of the session."""
    bytes: int = 0
    asked_by: str = ""
    request: str = ""
    title: str = ""
    """Title as given in the command."""
    joint: str = ""
    """Id of the joint capture that it is part of, as given in the command."""
    anchors: list[tuple[int, int]] = []
    """Pairs (kind, name) of the records whose ends are the ends of its steps."""
    thread: int = 0
    ends: list[int] = []
    """Of a joint capture: begin of its first step, and end of each; CLOCK_MONOTONIC."""


class AgentCost(Event, tag="cost", frozen=True, kw_only=True):
    """The calibrated cost of a record (with its wrapper), measured in this process once it is idle enough."""

    record_ns: int
    wrapper_ns: int
    samples: int = 0


class ProcessEnded(Event, tag="end", frozen=True, kw_only=True):
    """Last line, written at a normal interpreter exit."""

    records: int = 0
    lost_lines: int = 0
    thread_cpu_ns: int = 0


AnyEvent = (
    ProcessStarted
    | ThreadSeen
    | Name
    | Framework
    | Probe
    | AgentDiagnostic
    | Code
    | Stack
    | WaitEvent
    | Traced
    | DatasetMade
    | PyFunctionMade
    | IteratorMade
    | IteratorModel
    | BatchSeen
    | ChildStarted
    | ModelBuilt
    | ProgramEvent
    | InferenceSession
    | ClusterEvent
    | GraphSize
    | GraphEvent
    | Metric
    | UserProfiler
    | CaptureTaken
    | EagerOps
    | LookTaken
    | AgentCost
    | ProcessEnded
)

_DECODER: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)


def decode(line: bytes) -> AnyEvent:
    """Decode one line of the log. Raises msgspec.DecodeError: it is damaged, or of a type unknown to this version."""
    try:
        return _DECODER.decode(line)
    except RecursionError as error:  # without ``tables.nesting``, which would cost a line more than its decoding
        raise msgspec.DecodeError("JSON is nested too deeply") from error
