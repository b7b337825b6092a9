"""What a ring record can be, and the flags it may carry.

A record is (start_ns, dur_ns, arg, name, kind, flags, thread, seq); times are CLOCK_MONOTONIC
nanoseconds. ``name`` is the id of a ``name`` line of the log, ``thread`` the id of a ``thread`` line.
Records of one thread nest by time: nothing else says which record is inside which.
"""

from __future__ import annotations

import enum

STEP_MARKER = "stepscope.step"
"""Name of the events that mark steps in an op trace of ours, with the stats ``_r`` = 1 and ``step_num`` from 0. A step
ends where its call ends: it holds the ``next`` that fed the call."""


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
    """One call of a tf.function from Python, outside of tracing. arg: samples (leading dimension), 0 when it was
    not looked at in this call. Flag TRACED when a concrete function was made inside."""
    TRACE = 7
    """One tracing of a Python function into a graph. arg: id of the ``trace`` line."""
    NEXT = 8
    """One Python ``next`` on a tf.data iterator. arg: id of the ``iterator`` line. Flag END at its end."""
    PYFUNC = 9
    """One call of user Python inside the input pipeline: py_function, numpy_function, a generator's ``next``
    or a PyDataset's ``__getitem__``. The name line has ``role``. On tf.data's or Keras' threads."""
    SESSION_RUN = 10
    """One Session.run. The name line has ``text`` = fetches. arg: samples (leading dimension of the first feed)."""
    SAVE = 11
    """Checkpoint, weights or SavedModel written. arg: bytes if known. The name line has ``role`` and user line."""
    SUMMARY = 12
    """Summary (TensorBoard) write or flush from Python."""
    SYNC = 13
    """The host waits for or copies a tensor: .numpy(), float(), bool(). Only those of 20 us or more."""
    GC = 14
    """One garbage collection. arg: generation."""
    SAMPLE = 15
    """One stack sample. name: id of a ``stack`` line, thread: the *sampled* thread, dur: the time that it stands for
    (with Flag.CPU: CPU time; else what the thread did not use of the period; 0: it was idle). arg: the thread's
    ``LockState``."""
    MODEL_CALL = 16
    """Outermost eager call of a Keras model, outside of tracing. arg: samples."""
    APPLY = 17
    """Optimizer.apply_gradients (or apply) from Python, outside of tracing."""
    SPAN = 18
    """The user's own ``stepscope.span(name)``."""
    COUNTS = 19
    """Short calls that were counted instead of recorded, of one name, since the last such record.
    arg: how many, dur: their summed time, start: of the first. Flag bits 8-15 hold the Kind they stand for."""
    TICK = 20
    """The agent's thread woke up. dur: CPU time that the agent's thread used since the last tick; arg: records
    written so far by this process."""
    REST = 21
    """A second, or the last part of one, in which hot wrappers were detached (``agent.rest``): records of other kinds
    are missing. arg: calls that were only counted; flag bits 8-15 hold their Kind."""
    BUILD = 22
    """A model, a SavedModel, a graph or a session was loaded or made: the outermost such call. The name line has
    ``text`` = the function, ``role``: model, saved_model, graph, session or variables, and the user's line."""
    METRIC = 23
    """The user's own ``stepscope.metric(name, value)``: a moment. arg: the value, the 64 bits of a double."""
    INFERENCE = 24
    """One run of an ONNX Runtime session. The name line has ``text`` = its model. arg: samples (leading dimension of
    the first input)."""


class Flag(enum.IntFlag):
    """Flags of a record."""

    TRACED = 1
    """A new concrete function was made inside."""
    RAISED = 2
    """The call ended by an exception (StopIteration excepted: END)."""
    END = 4
    """The iterator was at its end."""
    NESTED = 8
    """Another record of the same probe encloses this one."""
    THINNED = 16
    """The probe is over its rate: this record stands for itself and for the COUNTS beside it."""
    CPU = 32
    """A stack sample by the thread's CPU clock: dur is CPU time. Other samples of that thread stand for the rest."""


class LockState(enum.IntEnum):
    """What a sampled thread did about the interpreter lock. Numbers are part of the session format."""

    NOT_LOOKED = 0
    RUNS = 1
    """It was on a CPU, or ready for one."""
    WAITS = 2
    """It waited for the interpreter lock."""
    ELSEWHERE = 3
    """It was blocked in something else."""
