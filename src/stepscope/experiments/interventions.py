"""The catalogue of interventions: what each changes in a running job, what it cannot do, and how to keep its gain.

``agent.trials`` puts them in effect in the job. A *gain* is what a lasting change would bring; a *ceiling* is what
would be left if a part of the step cost nothing, which no change reaches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.experiments.compute_parts import OF_COMPUTE
from stepscope.experiments.input_parts import OF_INPUT
from stepscope.experiments.intervention import ANY, KERAS, TENSORFLOW, TF_DATA, Intervention, made
from stepscope.tables.errors import UsageError
from stepscope.wire import trials

if TYPE_CHECKING:
    from collections.abc import Collection

NUMBERED = frozenset(("batch", "steps-per-execution", "threads"))
"""Interventions whose argument is a number of at least 1."""
OPTIONAL = frozenset(("slopes",))
"""Interventions whose argument may be left out: what a first run names takes its place."""
PARTS = frozenset(("batch",))
"""Interventions whose argument may also be a part: 1/2."""
SWITCHED = frozenset(("no-callbacks", "without-callback", "no-summaries", "no-checkpoints", "stub", "gc-off"))
"""Interventions that can be switched on and off while the job runs: nothing that is made once depends on them."""


ALL: tuple[Intervention, ...] = (
    made(
        "ceiling",
        "compute-only",
        "input-wait",
        text="Holds the first 8 batches in memory and repeats them, so that the input costs nothing.",
        limits="Fits and evaluations of Keras and the program's loops over tf.data datasets; not predict, Python "
        "generators in a loop, datasets inside a tf.function, or inputs that a strategy distributes. An epoch of "
        "unknown length has 1,000 steps.",
        lasting="the input pipeline: its slowest stage, its source, Python in it",
        on=TENSORFLOW | TF_DATA,
    ),
    made(
        "ceiling",
        "input-only",
        "call",
        "host-sync",
        text="Takes the batches and computes nothing: steps return their last result after 3 real ones.",
        limits="Steps of fit, and compiled functions that the program calls on its main thread, those that prepare its "
        "input included; a loop that runs eagerly is not reached.",
        lasting="the compiled step: its heaviest ops, its size, the device",
    ),
    made(
        "ceiling",
        "no-callbacks",
        "callbacks",
        "saving",
        text="Fits run without the callbacks that they are given, and without the progress bar.",
        limits="A program that reads what a callback has kept fails. What a callback hides (a wait for the device) "
        "comes back elsewhere. In one process, the hooks of batches alone are left out.",
        lasting="the callbacks, one at a time: without-callback:NAME",
        on=KERAS,
    ),
    made(
        "ceiling",
        "without-callback",
        "callbacks",
        "saving",
        argument="name of the callback's class",
        text="Fits run without the callbacks of one class.",
        limits="A program that reads what the callback has kept fails; the effects of several callbacks do not add up. "
        "In one process, its hooks of batches alone are left out.",
        lasting="this callback's batch methods",
        on=KERAS,
    ),
    made(
        "ceiling",
        "no-validation",
        "evaluation",
        text="Fits run without their validation.",
        limits="Fits of Keras only, not evaluate or predict. Who reads the validation's results finds the training's.",
        lasting="validation: its batch size (validation_batch_size), validation_freq, validation_steps",
    ),
    made(
        "ceiling",
        "no-metrics",
        "call",
        text="Models of Keras are compiled without metrics.",
        limits="Metrics that the program updates itself stay. Who reads the results of a fit's metrics finds its loss.",
        lasting="the metrics of compile: fewer, cheaper, or only in the validation",
        on=KERAS,
    ),
    made(
        "ceiling",
        "simple-loss",
        "call",
        text="Losses of Keras, given to compile or called in a loop, compute the mean square of the model's output.",
        limits="Functions of a loss that the program calls itself stay (without-lines takes them out), as does a Loss "
        "that calculates in __call__. What only the loss needs may be dropped from the graph.",
        lasting="the loss: fewer pairs, fewer casts, one pass over the logits; or a loss of the framework's own",
        on=KERAS,
    ),
    made(
        "ceiling",
        "no-summaries",
        "callbacks",
        "saving",
        "host-sync",
        text="Writes no summaries for TensorBoard, eagerly or in a graph.",
        limits="What the program itself computes for its summaries is still computed.",
        lasting="how often summaries are written, and histograms among them",
        keeps=True,
    ),
    made(
        "ceiling",
        "no-checkpoints",
        "saving",
        "callbacks",
        text="Saves models, weights and checkpoints only once; later calls return the paths as if they saved.",
        limits="A program that loads what it has saved later fails.",
        lasting="how often and what the job saves, and to which disk",
        keeps=True,
        on=KERAS,
    ),
    made(
        "gain",
        "batch",
        "call",
        "input-wait",
        "callbacks",
        "framework",
        "other-python",
        argument="factor",
        text="Makes batches of so many times as many examples (batch:1/2: half): batch_size of fit, batch and "
        "padded_batch of tf.data.",
        limits="A batch size elsewhere in the program is not reached, or makes it fail. The learning rate stays; "
        "compare examples per second, not steps.",
        lasting="batch_size, or the argument of .batch(), times ARGUMENT; tune the learning rate with it",
        on=TENSORFLOW | TF_DATA,
    ),
    made(
        "gain",
        "steps-per-execution",
        "framework",
        "callbacks",
        "call",
        argument="number of steps",
        text="Runs so many steps of fit in one call.",
        limits="Batch callbacks run once a call; a record of a step then covers so many batches.",
        lasting="model.compile(..., steps_per_execution=ARGUMENT)",
        keeps=True,
        on=KERAS,
    ),
    made(
        "gain",
        "xla-on",
        "call",
        text="Compiles the step of fit, and the program's own tf.functions, by XLA.",
        limits="Ops that XLA does not know make the job fail; a program whose shapes change compiles again and again.",
        lasting="model.compile(..., jit_compile=True), or @tf.function(jit_compile=True)",
        keeps=True,
    ),
    made(
        "gain",
        "xla-off",
        "call",
        "tracing",
        text="Turns jit_compile off wherever the program turns it on.",
        limits="XLA that TF_XLA_FLAGS or tf.config.optimizer.set_jit turns on stays.",
        lasting="leave jit_compile=True out",
        keeps=True,
    ),
    made(
        "gain",
        "reduce-retracing",
        "tracing",
        text="The program's tf.functions take several shapes with one trace.",
        limits="Not for new Python numbers or objects, or functions that are made again for each call.",
        lasting="@tf.function(reduce_retracing=True), or an input_signature with None for what changes",
        keeps=True,
    ),
    made(
        "ceiling",
        "functions-reused",
        "tracing",
        text="A tf.function that the program makes again from the same code is the one that it made before.",
        limits="What the new one would have bound (another model, another list) is that of the first one.",
        lasting="where the tf.function is made: once, outside of the loop",
    ),
    made(
        "gain",
        "mixed-bfloat16",
        "call",
        text="Layers of Keras compute in bfloat16 and keep their variables in float32.",
        limits="Layers of Keras only; without hardware for it, it is slower. Losses written for float32 may fail.",
        lasting='keras.mixed_precision.set_global_policy("mixed_bfloat16")',
    ),
    made(
        "gain",
        "float32",
        "call",
        text="Keras stays in single precision where the program sets another type for all of it (set_floatx, policy).",
        limits="Not types of single layers, or of tensors that the program makes itself: both types together may fail.",
        lasting="leave set_floatx, or set_dtype_policy, out",
    ),
    made(
        "gain",
        "graph",
        "call",
        "framework",
        "other-python",
        text="Runs in graphs what run_eagerly=True and run_functions_eagerly run eagerly.",
        limits="A loop that calls no tf.function stays eager; Python in the model runs only while it is traced.",
        lasting="leave run_eagerly=True and tf.config.run_functions_eagerly(True) out",
        keeps=True,
    ),
    made(
        "gain",
        "graph-function",
        "other-python",
        "call",
        argument="qualified name of a function, or FILE:LINE",
        text="Makes a Python function of the program a tf.function.",
        limits="Python in it runs only while it is traced; NumPy values in it make it fail; a new trace for each new "
        "Python number it is given.",
        lasting="@tf.function above the function",
        keeps=True,
    ),
    *OF_INPUT,
    made(
        "gain",
        "checks-off",
        "call",
        "input-wait",
        text="Number checks, debugger dumps and tf.data's debug mode stay off, even if the program turns them on.",
        limits="A run that goes wrong is no longer found out by them.",
        lasting="leave tf.debugging.enable_check_numerics() and the like out",
        keeps=True,
    ),
    made(
        "gain",
        "determinism-off",
        "call",
        "input-wait",
        text="Ops and tf.data need not give the same numbers in each run.",
        limits="Results differ from run to run by rounding and order.",
        lasting="leave tf.config.experimental.enable_op_determinism() and TF_DETERMINISTIC_OPS out",
    ),
    made(
        "gain",
        "threads",
        "call",
        argument="number of threads",
        text="Ops use so many threads, whatever the program sets.",
        limits="Not libraries with threads of their own (NumPy, OpenCV).",
        lasting="tf.config.threading.set_intra_op_parallelism_threads(ARGUMENT)",
        keeps=True,
    ),
    made(
        "gain",
        "threads-default",
        "call",
        text="Ops use as many threads as TensorFlow chooses: what the program or its environment sets has no effect.",
        limits="Changes nothing in a program that sets no threads.",
        lasting="leave tf.config.threading.set_*_parallelism_threads and TF_NUM_*_THREADS out",
        keeps=True,
    ),
    made(
        "ceiling",
        "stub",
        "other-python",
        "input-wait",
        "callbacks",
        argument="qualified name of a function, or FILE:LINE",
        text="A Python function of the program returns its last result after 5 real calls; a generator gives its first "
        "8 items again and again.",
        limits="Not coroutines, or what TensorFlow traces; functions made again for each call are missed. A function "
        "whose state is needed makes the program fail. A generator ends after 1,000 items.",
        lasting="the function itself",
        on=ANY,
    ),
    made(
        "ceiling",
        "gc-off",
        "gc",
        text="Python collects no garbage once the steps are steady, not even if the program asks for it.",
        limits="Memory may grow until the trial ends.",
        lasting="gc.freeze() after building, gc.collect() out of the loop, objects in cycles",
        keeps=True,
        on=ANY,
    ),
    made(
        "gain",
        "gc-calls-off",
        "gc",
        text="Python collects garbage by itself only, not where the program calls gc.collect().",
        limits="Memory that only a collection frees stays longer. Changes nothing in a program that never calls it.",
        lasting="leave gc.collect() out of the loop",
        keeps=True,
        on=ANY,
    ),
    made(
        "gain",
        "feeds-kept",
        "call",
        "other-python",
        text="A NumPy array of 64 KiB or more that a compiled function is given again is converted once, and kept.",
        limits="An array that the program changes in place stays as it was; not what sessions are fed, or eager ops.",
        lasting="tf.constant(array) once, before the loop; a tf.Variable for what changes seldom",
    ),
    *OF_COMPUTE,
    made(
        "look",
        "slopes",
        "other-python",
        "input-wait",
        "callbacks",
        argument="qualified name of a function, or FILE:LINE; none: what a first run names",
        text="Calls of a Python function of the program take a little longer in every second block of steps: which "
        "part of its time do the steps pay? 1: all; 0: others hide it; above 1: it holds others up. Its cost is then "
        "measured.",
        limits="Not coroutines, what a framework traces or compiles, functions made again for each call, or workers "
        "that are spawned. Says nothing where the interval is wider than 0.4, where more is buffered than a block can "
        "hold, or tf.data changed its buffers or gives elements in no fixed order. The function's calls are held once, "
        "for up to 3 s.",
        lasting="the function itself",
        keeps=True,
        on=ANY,
    ),
)
"""All interventions, those that split the step first."""


def is_switched(trial: str) -> bool:
    """Whether a trial can be switched on and off while the job runs."""
    return trials.split(trial)[0] in SWITCHED


_BY_NAME = {intervention.name: intervention for intervention in ALL}


def by_name(name: str) -> Intervention:
    """The intervention of that name.

    Raises:
        UsageError: there is none.
    """
    found = _BY_NAME.get(name)
    if found is None:
        raise UsageError(f"no intervention {name!r}; expected one of {', '.join(map(_form, ALL))}")
    return found


def reaches(trial: str, parts: Collection[str]) -> bool:
    """Whether a trial can change a job of these parts; where they are not known, each can."""
    found = _BY_NAME.get(trials.split(trial)[0])
    return not parts or found is None or not found.on or not found.on.isdisjoint(parts)


def parse(text: str) -> tuple[Intervention, str]:
    """The intervention and the argument of ``NAME[:ARGUMENT]``.

    Raises:
        UsageError: no such intervention, or an argument is missing, not wanted, or no number where one is.
    """
    name, argument = trials.split(text)
    found = by_name(name)
    if bool(argument) != bool(found.argument) and not (name in OPTIONAL and not argument):
        what = f"takes {found.argument}" if found.argument else "takes no argument"
        raise UsageError(f"intervention {text!r}: {name} {what}; expected {_form(found)}")
    number = argument.removeprefix("1/") if name in PARTS else argument
    if name in NUMBERED and not (number.isdecimal() and int(number) >= 1):
        raise UsageError(f"intervention {text!r}: expected a number of at least 1 after {name}:")
    return found, argument


def _form(intervention: Intervention) -> str:
    """The intervention as it is typed."""
    name = intervention.name
    return f"{name}:{_FORMS.get(name, 'N')}" if intervention.argument else name


_FORMS = {
    "stub": "FUNCTION",
    "slopes": "FUNCTION",
    "graph-function": "FUNCTION",
    "without-callback": "NAME",
    "without-stage": "STAGE",
    "without-lines": "FILE:FIRST-LAST",
    "batch": "K",
}
