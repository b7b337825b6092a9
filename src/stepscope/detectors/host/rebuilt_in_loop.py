"""A model, a SavedModel, a graph or a session is built or loaded again and again inside the loop.

## What it detects
Lines that load or clone a Keras model, load a SavedModel, import a graph, make a session (ONNX Runtime's too) or
restore its variables, or that build and compile a Keras model, or compile the same one again, and that run many
times in the steady steps: per request, per batch, per file, per epoch.

## Why it matters
A load reads files, creates variables and builds layers, and the result is traced and optimised again before its first
run: hundreds of milliseconds, where the model itself takes a few.

## Evidence
`rebuild_ratio`: share of the steady wall time of all builds but the first: the calls, timed one by one; layers made in
user code around them, by samples; first traces of the framework's functions and first runs of new sessions. `builds`,
`build_ns`: their number and the time of each; `steps_between`: steady steps per build.

## Known limits
A new model for each fold or trial is intended: if something is trained in these steps and models are only built, not
loaded, nothing is reported below a quarter of the time, and up to half of it, or if the models differ in size, it is
information. Models that are neither loaded nor compiled are not seen. A
user's tf.function that is created again with the model is reported by GRF001.

## Remedy
Load or build once, before the loop (when the service starts), and keep the model, the function or the session. For
folds and trials: keep the initial weights (`get_weights`) and set them again. What changes from epoch to epoch, such as
a learning rate or the weight of a loss, belongs into a variable: compiling a model again throws its functions away.

## References
FSE'22 study, confusion with computation model (models loaded repeatedly); TensorFlow guide on SavedModel; Keras
documentation of `clear_session`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.host import rebuilt_in_loop
from stepscope.causes.host.rebuilt_in_loop import COMPILED, RECOMPILED
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.tables.findings import Evidence, Remedy, Stage
from stepscope.tables.place import Place
from stepscope.tables.units import Ratio, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.host.rebuilt_in_loop import Builder, Rebuilds
    from stepscope.derive.steps_view import StepsView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.05)
    """Of steady wall time: reloading a model now and then, for a new version, is wanted."""
    min_fold_ratio: Ratio = Ratio(0.25)
    """If models are built to be trained: below it they are folds or trials of some length."""
    min_avoidable_ratio: Ratio = Ratio(0.5)
    """The same, for models of one structure: the job then builds more than it trains, and one model would do."""
    min_builds: int = 5
    """Builds on one line, besides the first, within the steady steps: fewer are not a loop. Compiling counts from the
    start."""
    min_compiles: int = 2
    """Of these within the steady steps: a fit that compiles and traces for seconds has few, and they begin late."""


MOST = 1.2
"""Times the known time that a build costs at most: first runs of what it made, memory that is freed and taken again.
Source: two pairs of strangers' programs (docs/benchmarks/strangers.md, batch 4, 01 and 16): 1.2 and 1.1."""
WORDS = {
    "model": ("the model is loaded or cloned", "load the model once, before the loop, and keep it"),
    "saved_model": (
        "the SavedModel is loaded",
        "load the SavedModel once, before the loop, and keep what load returns",
    ),
    "graph": ("the graph is imported", "import the graph once, before the loop"),
    "session": ("the session is made", "make the session once, before the loop, and keep it until the end"),
    "variables": ("the variables are restored", "restore once, in one session that is kept"),
    COMPILED: (
        "the model is built and compiled",
        "build and compile once; set its initial weights again (set_weights)",
    ),
    RECOMPILED: (
        "the same model is compiled",
        (
            "compile once, before the loop: each compile throws the traced functions away; change what changes through "
            "a variable or the optimizer (optimizer.learning_rate.assign, a tf.Variable in the loss)"
        ),
    ),
}


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding: everything built in one loop has one root."""
    steps, found = view.steps, rebuilt_in_loop.build(view, params.min_builds, params.min_compiles)
    if found is None:
        return
    ratio = found.total_ns / steps.steady_ns
    least = params.min_fold_ratio if found.trials else params.min_ratio
    if ratio >= least:
        trials = found.trials and not (found.alike and ratio >= params.min_avoidable_ratio)
        yield _finding(view, found, ratio, least, trials=trials)


def _finding(view: StepsView, found: Rebuilds, ratio: float, least: float, *, trials: bool) -> Seen:
    steps = view.steps
    count = steps.steady_count
    steady = steps.steady_ns
    top = found.builders[0]
    what, advice = WORDS[top.role]
    each = found.total_ns / found.builds
    stage: Stage = "training" if found.trains else "prediction"
    title = (
        f"{found.builds:,} further models are built and trained in {count:,} steps, as for folds or trials: building "
        f"and tracing them takes {format_ns(each)} each, {format_ratio(ratio)} of the time"
        if trials
        else f"{what} again and again, {found.builds} times in {count:,} steps ({top.text}), {format_ns(each)} each "
        f"including tracing: {format_ratio(ratio)} of the time"
    )
    return Seen(
        title=title,
        confidence=0.9,
        severity="info" if trials else None,
        introduced_stage="model building" if found.trains else stage,
        exposed_stage=stage,
        where=_places(view, found),
        evidence=(
            Evidence(metric="rebuild_ratio", value=ratio, unit="ratio", threshold=least, refs=("component:building",)),
            Evidence(metric="builds", value=found.builds, unit="builds"),
            Evidence(metric="build_ns", value=each, unit="ns"),
            Evidence(metric="steps_between", value=count / found.builds, unit="steps"),
        ),
        cost=cost_of(view, ratio, low=(found.build_ns + found.around_ns) / steady, high=min(1.0, MOST * ratio)),
        remedies=(Remedy(id="build-once", text=advice),),
        explanation="Only the job's first build was needed. Each further one also has its functions traced again "
        "before "
        "they run.",
    )


def _places(view: StepsView, found: Rebuilds) -> tuple[Place, ...]:
    """The lines that build, then the user's code that makes the layers."""
    called: list[Builder] = [b for b in found.builders if b.file]
    places = [view.place(b.file, b.line, function=b.function) for b in called[:3]]
    places += [view.place(file, first, last, name) for file, name, first, last in found.lines]
    return tuple(dict.fromkeys(places))


DETECTOR = Detector(
    code="HST007",
    name="rebuilt-in-loop",
    cause="Model: confusion with computation model",
    needs=frozenset({Signal.STEPS}),
    frameworks=frozenset({"keras", "onnxruntime", "tensorflow"}),
    params=Params(),
    detect=detect,
)
