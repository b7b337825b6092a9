"""A setting makes compiled steps run op by op: `run_eagerly=True`, or `tf.config.run_functions_eagerly(True)`.

## What it detects
Steps of Keras, or calls of a tf.function, that are compiled by default but run from Python one op at a time, if Python
and dispatch, not the ops' computation, take a large share of the steady wall time.

## Why it matters
These settings are for debugging. Each op then costs tens of microseconds of Python and dispatch before its kernel
starts; steps of many small ops run ten to forty times slower than compiled.

## Evidence
`eager_ratio`: share of the samples of the steady steps that run ops from Python. `python_ratio`: those of them whose
innermost frame is Python rather than the call that runs an op. Keras' own step, or a stack that passes through the call
of a tf.function, shows that a setting is the reason: both are compiled otherwise.

## Known limits
With large ops, whose computation takes the time, Python's share is small and nothing is reported: compiling such a step
saves next to nothing. The saving is modelled as Python's share plus runtime dispatch. Dispatch is taken as 2 times
Python's share (measured on steps of small ops), and at most the share of the op calls. `model.run_eagerly = True` after
compile is placed at the call of fit. An eager step that was never compiled is HST002.

## Remedy
Leave `run_eagerly` off except for debugging, remove `tf.config.run_functions_eagerly(True)`; to debug one step, use
`tf.print` or call the Python function itself.

## References
Keras documentation of Model.compile, argument run_eagerly; TensorFlow guide "Better performance with tf.function",
section "Debugging"; FSE'22 study, confusion with computation model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.host import eager_time
from stepscope.causes.job import purpose
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.model.log.events import ModelBuilt
from stepscope.model.log.program import Setting
from stepscope.tables.findings import Evidence, Remedy, Stage
from stepscope.tables.place import Place
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.view import SessionView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_eager_ratio: Ratio = Ratio(0.25)
    """Of the steady samples: less cannot save much."""
    min_python_ratio: Ratio = Ratio(0.10)
    """Of the steady samples in eager Python itself. Measured: 0.07 for products of 1500 x 2500, 0.4 for small ops."""
    min_samples: int = 20
    """Fewer are too few to conclude from."""


def detect(view: SessionView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    eager, setting = view.get(eager_time.build), view.get(eager_time.setting)
    if eager is None or setting is None or eager.samples < params.min_samples:
        return
    if eager.eager_ratio < params.min_eager_ratio or eager.python_ratio < params.min_python_ratio:
        return
    ratio, (low, high) = eager.saved_ratio, eager.interval
    what = "run_eagerly is on" if setting == "run_eagerly" else "tf.config.run_functions_eagerly is on"
    stage: Stage = "prediction" if view.get(purpose.predicts) else "training"
    yield Seen(
        title=f"{what}: the step runs op by op from Python instead of compiled, {format_ratio(eager.eager_ratio)} of "
        f"the time, {format_ratio(eager.python_ratio)} in Python itself",
        confidence=0.95,
        introduced_stage="model building" if setting == "run_eagerly" else stage,
        exposed_stage=stage,
        where=_places(view, setting),
        evidence=(
            Evidence(metric="eager_ratio", value=eager.eager_ratio, unit="ratio", threshold=params.min_eager_ratio),
            Evidence(metric="python_ratio", value=eager.python_ratio, unit="ratio", threshold=params.min_python_ratio),
            Evidence(metric="samples", value=eager.samples, unit="samples", threshold=params.min_samples),
        ),
        cost=cost_of(view, ratio, low=low, high=high, basis="modelled"),
        remedies=(
            Remedy(id="remove-run-eagerly", text="remove run_eagerly=True, so that Keras compiles the step")
            if setting == "run_eagerly"
            else Remedy(
                id="remove-run-functions-eagerly",
                text="remove tf.config.run_functions_eagerly(True), so that tf.functions run as graphs",
            ),
        ),
        explanation="The stacks of the step go from Keras or from the call of a tf.function through TensorFlow's "
        "Python layers for each op; without the setting the same code runs as one graph.",
    )


def _places(view: SessionView, setting: str) -> tuple[Place, ...]:
    """The line of the setting if known, else the call of fit; then the user's code that calls the ops."""
    worker, places = view.worker, []
    if worker is not None and setting == "run_eagerly":
        places = [view.place(m.file, m.line) for m in worker.all(ModelBuilt) if m.run_eagerly and m.file][-1:]
    elif worker is not None:
        on = [s for s in worker.all(Setting) if s.name == "run_functions_eagerly" and s.value and s.file]
        places = [view.place(s.file, s.line, function=s.function) for s in on[-1:]]
    fit = view.fit_place()
    if not places and fit is not None:
        places.append(fit)
    eager = view.get(eager_time.build)
    if eager is not None:
        places += [view.place(file, first, last, name) for file, name, first, last in eager.lines]
    return tuple(dict.fromkeys(places))


DETECTOR = Detector(
    code="GRF003",
    name="run-eagerly",
    cause="Model: confusion with computation model",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS, Signal.SAMPLES}),
    frameworks=frozenset({"tensorflow"}),
    params=Params(),
    detect=detect,
)
