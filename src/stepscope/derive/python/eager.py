"""The part of the steady steps that runs op by op from Python, from stack samples of the step thread.

A sample is eager if the user's line is inside TensorFlow or Keras and no compiled function encloses it. Calls that only
add ops to a graph are not eager: they run nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.derive.numeric import proportion
from stepscope.derive.python import stack_samples

if TYPE_CHECKING:
    from stepscope.derive.python.stack_samples import Sample
    from stepscope.model.report.components import ComponentName

FUNCTION_CALLS = "/polymorphic_function/"
"""TensorFlow code through which tf.functions are called."""
SESSION = "/client/session.py"
TRAINERS = ("/keras/src/backend/tensorflow/trainer.py", "keras/src/engine/training.py")
"""Code of Keras that runs a step. Sources: Keras 3.0 to 3.15, Keras 2.15, tf_keras."""
PY_FUNCTION = "/ops/script_ops.py"
"""TensorFlow code through which a graph calls Python back (tf.py_function): ops run there are no eager step."""
GRAPH_BUILDING = ("/framework/op_def_library.py", "/framework/func_graph.py")
"""TensorFlow code on the stack when an op is put into a graph instead of being run."""
DISPATCH_RATIO = 2.0
"""Dispatch time of the runtime for each unit of time spent in Python. Measured on eager steps of small ops against the
same steps as one graph: 1.2 to 2.2, most on a busy machine. Time in ops beyond that is computation, which a graph has
to do too."""

MIN_OPS_RATIO = 0.25
"""Minimum share of eager time in the calls that run ops. Measured: 0.52 to 0.68 on steps of small ops, 0.9 on large
ones; Keras' own Python around its compiled function has next to none."""


class EagerTime(Struct, frozen=True, kw_only=True):
    """Shares of the time of all samples of the steady steps."""

    eager_ratio: float
    python_ratio: float
    """Eager samples whose innermost frame is Python rather than the call that runs an op."""
    call_ratio: float
    """Eager samples within the calls that steps make, rather than between them."""
    function_ratio: float
    """Eager samples below a call of a tf.function: a setting runs functions eagerly."""
    trainer_ratio: float
    """Eager samples within the calls that steps make, below Keras' own step."""
    samples: int
    """Number of samples of the steady steps."""
    lines: tuple[tuple[str, str, int, int], ...]
    """(file, function, first line, last line) of the user's code that calls the ops, the most sampled first."""
    dispatch_ratio: float = 1.0
    """Most that dispatch takes of the steps, where ops were looked at (``eager_looks``); 1: not known."""
    most_dispatch_ratio: float = 1.0
    """The same where ops that took longer may have waited for a CPU."""

    @property
    def saved_ratio(self) -> float:
        """Share that one graph would save: Python and the runtime's dispatch, but no computation."""
        return self.python_ratio + min(self._dispatch, DISPATCH_RATIO * self.python_ratio)

    @property
    def _dispatch(self) -> float:
        """Most that dispatch can take."""
        return min(self.eager_ratio - self.python_ratio, self.dispatch_ratio)

    @property
    def most_ratio(self) -> float:
        """All that is eager, computation too, at the upper end of its 95 % interval."""
        return proportion.interval(self.eager_ratio, self.samples)[1]

    @property
    def interval(self) -> tuple[float, float]:
        """From Python's part alone to all that is eager but no computation, each at the end of its 95 % interval."""
        low, _ = proportion.interval(self.python_ratio, self.samples)
        dispatch = min(self.eager_ratio - self.python_ratio, self.most_dispatch_ratio)
        _, high = proportion.interval(self.python_ratio + dispatch, self.samples)
        return low, high


def build(taken: tuple[Sample, ...], *, keras: bool = False) -> EagerTime | None:
    """Eager time of the steps; None without samples. ``keras``: the steps are calls of Keras' own.

    Around a compiled step of 0.1 ms, Keras' Python and its ops on the iterator take as long again: calls observed to
    run graphs are not eager.
    """
    whole = stack_samples.weight_of(taken)
    if whole == 0:
        return None
    compiled = stack_samples.weight_of(s for s in taken if s.component == "call" and _is_compiled(s))
    calls = _with_ops(taken, "call")
    if keras and 2 * compiled > stack_samples.weight_of(calls):
        calls = []
    eager = calls + _with_ops(taken, "other-python")
    return EagerTime(
        eager_ratio=stack_samples.weight_of(eager) / whole,
        python_ratio=stack_samples.weight_of(s for s in eager if not s.in_op) / whole,
        call_ratio=stack_samples.weight_of(calls) / whole,
        function_ratio=stack_samples.weight_of(s for s in eager if _calls_function(s)) / whole,
        trainer_ratio=stack_samples.weight_of(s for s in calls if _in_trainer(s)) / whole,
        samples=len(taken),
        lines=stack_samples.lines_of(eager),
    )


def _with_ops(taken: tuple[Sample, ...], component: ComponentName) -> list[Sample]:
    """Eager samples of a component; none if hardly any runs an op: that is a framework's Python around a graph."""
    eager = [s for s in taken if s.component == component and is_eager(s)]
    ops = stack_samples.weight_of(s for s in eager if s.in_op)
    return eager if ops >= MIN_OPS_RATIO * stack_samples.weight_of(eager) else []


def is_eager(sample: Sample) -> bool:
    """Whether a sample runs ops from Python."""
    if not sample.in_tensorflow or sample.makes_layers or sample.waits_for_cluster:
        return False
    if any(part in f.file for f in sample.below_user() for part in GRAPH_BUILDING):
        return False
    below_call = False
    for frame in reversed(sample.frames):
        if PY_FUNCTION in frame.file:
            return False
        if SESSION in frame.file or FUNCTION_CALLS in frame.file:
            return below_call
        below_call = below_call or frame.own or "/keras/" in frame.file or "/tf_keras/" in frame.file
        below_call = below_call or "/ops/gen_" in frame.file
    return True


def _is_compiled(sample: Sample) -> bool:
    return _calls_function(sample) and not is_eager(sample)


def _in_trainer(sample: Sample) -> bool:
    return any(part in frame.file for frame in sample.frames for part in TRAINERS)


def _calls_function(sample: Sample) -> bool:
    return any(FUNCTION_CALLS in f.file for f in sample.frames)


def setting(found: EagerTime | None, *, keras: bool) -> str | None:
    """The setting that makes steps run eagerly: "run_eagerly", "run_functions_eagerly"; None if there is none.

    Keras' steps and tf.functions are compiled unless one of them is on.
    """
    if found is None or 4 * found.eager_ratio < 1:
        return None
    if 2 * found.function_ratio > found.eager_ratio:
        return "run_functions_eagerly"
    return "run_eagerly" if keras and 2 * found.call_ratio > found.eager_ratio else None
