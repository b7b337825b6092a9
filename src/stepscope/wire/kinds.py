"""The kinds of a ring record, and its flags.

A record is (start_ns, dur_ns, arg, name, kind, flags, thread, seq); times are CLOCK_MONOTONIC nanoseconds. ``name`` is
the id of a ``name`` line of the log, ``thread`` the id of a ``thread`` line. Records of one thread nest by time, which
is the only information about nesting.
"""

from __future__ import annotations

import enum

STEP_MARKER = "stepscope.step"
"""Name of the events that mark steps in our op traces, with the stats ``_r`` = 1 and ``step_num`` from 0. A step ends
where its call ends: it contains the ``next`` that fed the call."""


class Kind(enum.IntEnum):
    """Kind of a record. Numbers are part of the session format: never reused, never renumbered."""

    STEP = 1
    """An explicit step: ``stepscope.step()``. A span from one call to the next."""
    EXECUTION = 2
    """One call of Keras' compiled train, test or predict function. arg: batches in it (steps_per_execution).
    The name line has ``role``: train, test or predict."""
    LOOP = 3
    """One whole call of fit, evaluate, predict or *_on_batch. arg: samples in it if known, else 0.
    The name line has ``role`` (fit, evaluate, predict, train_on_batch, ...) and the user's calling line."""
    HOOK = 4
    """One CallbackList.on_* of Keras: all callbacks of that hook and Keras' own bookkeeping. arg: batch or epoch."""
    CALLBACK = 5
    """One hook of one callback. The name line has ``text`` "Class.hook", ``hook``, ``own`` (defined outside of
    Keras and TensorFlow) and the line of the method. arg: batch or epoch."""
    FUNCTION = 6
    """One call of a tf.function from Python, outside tracing. arg: samples (leading dimension), 0 if it was not
    examined in this call. Flag TRACED if a concrete function was made inside. With the role ``jit`` a moment: the call
    of a jitted function of JAX, whose work ends later."""
    TRACE = 7
    """One tracing of a Python function into a graph, of JAX with its compilation. arg: id of the ``trace`` line."""
    NEXT = 8
    """One Python ``next`` on an iterator of tf.data or of a DataLoader. arg: id of the ``iterator`` line. Flag END at
    its end. Flag bits 8-15: 1 + number of the DataLoader's worker that made the batch; 0: not known."""
    PYFUNC = 9
    """One call of user Python inside the input pipeline: py_function, numpy_function, a generator's ``next``
    or a PyDataset's ``__getitem__``. The name line has ``role``. On tf.data's or Keras' threads."""
    SESSION_RUN = 10
    """One Session.run. The name line has ``text`` = fetches. arg: samples (leading dimension of the first feed)."""
    SAVE = 11
    """One write of a checkpoint, weights or a SavedModel. arg: bytes if known. The name line has ``role`` and user
    line."""
    SUMMARY = 12
    """Summary (TensorBoard) write or flush from Python."""
    SYNC = 13
    """The host waits for or copies a tensor or array: .numpy(), float(), bool(), block_until_ready(). Only those of
    20 us or more, and all of them while nothing else repeats: then a value that is read may mark a turn of the loop
    (``agent.probes.reads``)."""
    GC = 14
    """One garbage collection. arg: generation."""
    SAMPLE = 15
    """One stack sample. name: id of a ``stack`` line, thread: the *sampled* thread, dur: the time that it stands for
    (with Flag.CPU: CPU time; else the part of the period that the thread did not use; 0: it was idle). arg: the
    thread's ``LockState``."""
    MODEL_CALL = 16
    """Outermost eager call of a Keras model, outside tracing. arg: samples."""
    APPLY = 17
    """Optimizer.apply_gradients (or apply) from Python, outside tracing. Of PyTorch a moment, the end of an optimizer's
    step; those are counted in every gap, whatever else is. arg: of PyTorch, the time that the step took, ns; 0: not
    known."""
    SPAN = 18
    """The user's own ``stepscope.span(name)``."""
    COUNTS = 19
    """Short calls that were counted instead of recorded, of one name, since the last such record. arg: their number,
    dur: their summed time, start: of the first. Flag bits 8-15 hold the Kind they stand for."""
    TICK = 20
    """One wake-up of the agent's thread. dur: CPU time that it used since the last tick; arg: records written so far by
    this process."""
    REST = 21
    """A second of a gap of the duty cycle (``agent.duty_cycle``), or the last part of one. Hot wrappers were detached,
    and records of other kinds are missing. arg: number of calls that were only counted; flag bits 8-15 hold their Kind.
    The word is the stored format's: readers turn these records into ``Worker.gaps`` (``store.gaps``)."""
    BUILD = 22
    """Outermost call that loads or makes a model, a SavedModel, a graph or a session. The name line has ``text`` = the
    function, ``role``: model, saved_model, graph, session or variables, and the user's line."""
    METRIC = 23
    """The user's own ``stepscope.metric(name, value)``: a moment. arg: the value, the 64 bits of a double."""
    INFERENCE = 24
    """One run of an ONNX Runtime session. The name line has ``text`` = its model. arg: samples (leading dimension of
    the first input)."""
    GRADIENT = 25
    """One call of ``GradientTape.gradient`` from Python, outside tracing and Keras' own loops: the backward pass of a
    step that no Keras optimizer need end. The name line has the user's line."""
    OP = 26
    """One call of an op from Python that was picked because nothing else shows the turns of a loop that runs op by op
    (``agent.probes.tensorflow.eager_turns``). The name line has TensorFlow's function and the user's line."""
    AUTOGRAD = 27
    """One run of PyTorch's autograd engine from Python, on the host: a backward pass."""


class Trait(enum.Enum):
    """A property of kinds: one for every question that code asks about several kinds."""

    STEP = 0
    """Possible step, or part of an evaluation."""
    MAKER = 1
    """Calls that may make the steps, and that show a thread's purpose."""
    COMPUTES = 2
    """Computation by the framework: the report's compute."""
    CALLED = 3
    """Call by the user's code for a result; arg: samples."""
    TASK = 4
    """Possible request to a service."""
    STARTED = 5
    """First such call ends the making of the model."""
    KERAS = 6
    """Keras' own loops and compiled functions."""
    COMPILED = 7
    """Call of a compiled function. If that of Keras is a tf.function, one counter counts both."""
    TRAINER = 8
    """Call that may be a whole training step; an optimizer's update alone is a part of one."""
    GRAPH = 9
    """Run of a graph that the user's code requested."""
    LIGHT = 10
    """Possible repeating call of a step: in a gap of the duty cycle, a light wrapper of one such kind counts."""
    DETACHED = 11
    """Missing in gaps. Calls of one such kind are counted; the others are assumed to be as many as there were per such
    call."""
    HOT = 12
    """Wrappers that are detached, or cost less, in gaps: the cost of other wrappers is no reason for a gap."""
    STAYS = 13
    """Recorded in gaps, too."""
    THINNABLE = 14
    """Mostly counted instead of recorded above the governor's rate."""
    OURS = 15
    """The agent's own record: not a call of the job."""
    IDLE = 16
    """Record that an idle process makes, too."""
    WRITES = 17
    """Call that writes files."""
    WHOLE = 18
    """Call whose whole time belongs to the line that called it."""
    GRAPH_MADE = 19
    """Call that makes a graph, or may."""
    FORWARD = 20
    """Call that asks a model for its outputs, and does not train by itself."""
    SESSION = 21
    """Run of a session that was made before."""
    UNNAMED = 22
    """Records that all have one name, that of the kind."""
    BY_LINE = 23
    """Calls of a framework's own method: only the user's line says which of them are alike."""
    UPDATE = 24
    """Part of a training step that runs op by op from Python."""
    MARK = 25
    """Shows a turn of a loop where no call that may be a step is recorded."""


_T = Trait
# fmt: off
KIND_TRAITS: dict[Kind, tuple[Trait, ...]] = {
    Kind.STEP: (_T.STEP, _T.STARTED, _T.STAYS),
    Kind.EXECUTION: (
        _T.STEP, _T.MAKER, _T.COMPUTES, _T.STARTED, _T.KERAS, _T.COMPILED, _T.TRAINER, _T.DETACHED, _T.HOT,
    ),
    Kind.LOOP: (_T.MAKER, _T.STARTED, _T.KERAS, _T.TRAINER, _T.STAYS),
    Kind.HOOK: (_T.HOT, _T.THINNABLE),
    Kind.CALLBACK: (_T.HOT, _T.THINNABLE),
    Kind.FUNCTION: (
        _T.STEP, _T.MAKER, _T.COMPUTES, _T.CALLED, _T.TASK, _T.STARTED, _T.COMPILED, _T.TRAINER, _T.GRAPH, _T.LIGHT,
        _T.DETACHED, _T.HOT, _T.THINNABLE, _T.GRAPH_MADE,
    ),
    Kind.TRACE: (_T.STARTED, _T.STAYS, _T.GRAPH_MADE),
    Kind.NEXT: (_T.LIGHT, _T.DETACHED, _T.HOT, _T.THINNABLE, _T.UNNAMED),
    Kind.PYFUNC: (_T.THINNABLE,),
    Kind.SESSION_RUN: (
        _T.STEP, _T.MAKER, _T.COMPUTES, _T.CALLED, _T.STARTED, _T.GRAPH, _T.STAYS, _T.THINNABLE, _T.SESSION,
    ),
    Kind.SAVE: (_T.WRITES, _T.WHOLE),
    Kind.SUMMARY: (_T.THINNABLE, _T.WRITES, _T.WHOLE),
    Kind.SYNC: (_T.MAKER, _T.LIGHT, _T.DETACHED, _T.HOT, _T.THINNABLE, _T.BY_LINE, _T.MARK),
    Kind.GC: (_T.IDLE, _T.UNNAMED),
    Kind.SAMPLE: (_T.OURS, _T.IDLE),
    Kind.MODEL_CALL: (
        _T.STEP, _T.MAKER, _T.COMPUTES, _T.CALLED, _T.TASK, _T.LIGHT, _T.DETACHED, _T.HOT, _T.THINNABLE, _T.FORWARD,
        _T.BY_LINE,
    ),
    Kind.APPLY: (_T.COMPUTES, _T.STARTED, _T.DETACHED, _T.THINNABLE, _T.BY_LINE, _T.UPDATE),
    Kind.SPAN: (_T.STAYS, _T.THINNABLE),
    Kind.COUNTS: (_T.OURS,),
    Kind.TICK: (_T.STAYS, _T.OURS, _T.IDLE),
    Kind.REST: (_T.OURS, _T.UNNAMED),
    Kind.BUILD: (_T.WHOLE,),
    Kind.METRIC: (_T.STAYS, _T.THINNABLE),
    Kind.INFERENCE: (
        _T.STEP, _T.MAKER, _T.COMPUTES, _T.CALLED, _T.TASK, _T.STARTED, _T.STAYS, _T.THINNABLE, _T.FORWARD,
        _T.SESSION,
    ),
    Kind.GRADIENT: (
        _T.STEP, _T.COMPUTES, _T.STARTED, _T.LIGHT, _T.DETACHED, _T.HOT, _T.THINNABLE, _T.BY_LINE, _T.UPDATE,
    ),
    Kind.OP: (
        _T.MAKER, _T.COMPUTES, _T.LIGHT, _T.DETACHED, _T.HOT, _T.THINNABLE, _T.BY_LINE, _T.MARK,
    ),
    Kind.AUTOGRAD: (_T.DETACHED, _T.HOT, _T.THINNABLE, _T.UNNAMED),
}
"""Traits of every kind, by number: the only sets of kinds that exist (a test)."""
# fmt: on


_KINDS = {trait: tuple(kind for kind, traits in KIND_TRAITS.items() if trait in traits) for trait in Trait}


def kinds_with(trait: Trait) -> tuple[Kind, ...]:
    """The kinds that have a trait, by number."""
    return _KINDS[trait]


class Flag(enum.IntFlag):
    """Flags of a record."""

    TRACED = 1
    """A new concrete function was made inside the call."""
    RAISED = 2
    """The call raised an exception (except StopIteration: END)."""
    END = 4
    """The iterator was exhausted."""
    NESTED = 8
    """Another record of the same probe encloses this one."""
    THINNED = 16
    """The probe is over its rate: this record stands for itself and for the COUNTS next to it."""
    CPU = 32
    """A stack sample by the thread's CPU clock: dur is CPU time. Other samples of that thread stand for the rest."""
    FIRST = 64
    """A session runs these fetches with these feeds for the first time: it prepares its graph for them."""


SHAPE_SHIFT = 8
"""Bits 8-15 of the flags of a call (``Trait.CALLED``, and LOOP) hold the number of the shape that it was given, of a
``shape`` line of the log; 0: not known. COUNTS records hold their kind there, NEXT records a worker."""
OTHER_SHAPE = 255
"""Number of all shapes beyond those that have a number."""


class LockState(enum.IntEnum):
    """State of a sampled thread with respect to the interpreter lock. Numbers are part of the session format."""

    NOT_LOOKED = 0
    RUNS = 1
    """The thread was on a CPU, or ready for one."""
    WAITS = 2
    """The thread waited for the interpreter lock."""
    ELSEWHERE = 3
    """The thread was blocked in something else."""
