"""The step runs op by op in Python instead of as a compiled function.

## What it detects
Training or inference that calls TensorFlow from Python one op at a time, outside any tf.function, where Python's part,
not the ops, takes a large share of the steady wall time.

## Why it matters
Each eager op costs tens of microseconds of Python and dispatch before its kernel starts; steps of many small ops run
several times slower than as a graph.

## Evidence
`eager_ratio`: share of the samples of the steady steps whose stack goes from user code into TensorFlow outside any
compiled function. `python_ratio`: those of them whose innermost frame is Python rather than the call that runs an op.
`compiled_ratio`: share of the steps in compiled functions that they also call, which are named; `function_ratio`: share
in tf.functions that run eagerly because of a setting, which is named. `loop_ratio`, `loop_turns`, `ops_per_turn`: of a
Python loop over elements below which most of the eager time is, if no turn needs the result of another.

## Known limits
Large ops hide the dispatch: Python's share is then small and nothing is reported. The saving is modelled as Python's
share plus runtime dispatch. Dispatch is taken as 2 times Python's share (measured on steps of small ops), and at most
the share of the op calls, of which each takes what ops that compute nothing take here; the upper bound adds the user's
own Python around the ops and, of a loop over elements, all that its ops compute; what is computed again from the same
inputs (HST015) is left out. A step that would be compiled but for a setting is GRF003.

## Remedy
Put the step into one `@tf.function`; if it already calls one, move the rest into it too. Where it reads values
(`.numpy()`), which no graph can, take the reading out first. A loop over elements is
better computed at once: compiled, it becomes thousands of ops, or a loop of the graph.

## References
TensorFlow guide "Better performance with tf.function"; FSE'22 study, confusion with computation model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.host import eager_looks, eager_time, element_loop
from stepscope.derive.python import doing, stack_samples, value_reads
from stepscope.derive.python.eager_looks import NOTHING_NEW_RATIO
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.detectors.remedies import Fact
from stepscope.detectors.shared import loop_python
from stepscope.model.log.program import Setting
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.place import Place
from stepscope.tables.units import Ratio, format_ratio
from stepscope.wire.kinds import Trait, kinds_with

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.host.element_loop import ElementLoop
    from stepscope.derive.python.eager import EagerTime
    from stepscope.derive.steps_view import StepsView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_eager_ratio: Ratio = Ratio(0.25)
    """Of the steady samples: less cannot save much."""
    min_python_ratio: Ratio = Ratio(0.15)
    """Of the steady samples in eager Python itself."""
    min_samples: int = 20
    """Fewer are too few to conclude from."""


MOST = 0.5
"""Share of the sampled time that a function must have to be named."""


VECTORISE = Remedy(
    id="vectorise-loop",
    text="compute all elements at once, vectorised, instead of one by one in a Python loop: no turn needs the result "
    "of another (broadcasting, gather and scatter, one draw of random numbers)",
)


ADAPT = Remedy(
    id="batch-for-adapt",
    text="give adapt larger batches: dataset.batch(1024), or the array of all elements",
)


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    eager = view.get(eager_time.build)
    if eager is None or eager.samples < params.min_samples or view.get(eager_time.setting) is not None:
        return
    if eager.eager_ratio < params.min_eager_ratio or eager.python_ratio < params.min_python_ratio:
        return
    left = 1.0 - _known(view)
    python = _python_around(view, eager)
    ratio, low, high = left * eager.saved_ratio, left * eager.interval[0], eager.interval[1] + python
    reads = _reads(view, eager)
    beside, loop = _beside(view, eager, reads), view.get(element_loop.build)
    if loop is not None and loop.ratio < MOST * eager.eager_ratio:
        loop = None
    if loop is not None:
        ratio, high = max(ratio, left * loop.ratio * (1.0 - 1.0 / loop.turns)), eager.most_ratio + python
    adapts = _adapts(view, eager)
    yield Seen(
        title=f"{'adapt' if adapts else 'the step'} runs eagerly, op by op from Python "
        f"({'once for each batch that it is given' if adapts else beside.text}): "
        f"{format_ratio(eager.eager_ratio)} of the time, {format_ratio(eager.python_ratio)} of it in Python itself"
        f"{_mostly(view) if loop is None else _in_loop(loop)}",
        confidence=0.8,
        where=tuple(
            dict.fromkeys(
                [
                    *((view.place(loop.file, loop.first, loop.last, loop.function),) if loop is not None else ()),
                    *(view.place(file, first, last, name) for file, name, first, last in eager.lines),
                    *beside.where,
                ]
            )
        ),
        evidence=(
            Evidence(metric="eager_ratio", value=eager.eager_ratio, unit="ratio", threshold=params.min_eager_ratio),
            Evidence(metric="python_ratio", value=eager.python_ratio, unit="ratio", threshold=params.min_python_ratio),
            Evidence(metric="samples", value=eager.samples, unit="samples", threshold=params.min_samples),
            *(_of_loop(loop) if loop is not None else ()),
            *beside.evidence,
        ),
        cost=cost_of(view, ratio, low=low, high=high, basis="modelled"),
        remedies=(ADAPT,) if adapts else (*((VECTORISE,) if loop is not None else ()), *beside.remedies),
        about=frozenset({Fact.READS_VALUES}) if reads is not None else frozenset(),
        explanation="Stacks go from user code through TensorFlow's Python layers for each op; no compiled function "
        "encloses them.",
    )


def _adapts(view: StepsView, eager: EagerTime) -> bool:
    """Whether most of the eager time is in the ``adapt`` of Keras' layers, which the user's code only calls."""
    mine = [
        one
        for one in view.samples
        if any(f.function.rpartition(".")[2] == "adapt" and "keras" in f.file for f in one.below_user())
    ]
    return stack_samples.weight_of(mine) >= MOST * eager.eager_ratio * stack_samples.weight_of(view.samples)


def _reads(view: StepsView, eager: EagerTime) -> tuple[str, int] | None:
    """A call in the eager code that reads a tensor's value, with its line."""
    for file, _, first, _ in eager.lines:
        source = view.source_of(file)
        found = value_reads.of_function(source, first) if source is not None else None
        if found is not None:
            return found
    return None


def _python_around(view: StepsView, eager: EagerTime) -> float:
    """Share of the steps in the user's own Python around its ops: a graph, or ops on whole tensors, need none of it."""
    if view.anatomy is None:
        return 0.0
    compiled = sum(row.total_ns for row in view.named_times(*kinds_with(Trait.COMPILED))) / view.steps.steady_ns
    steps = view.anatomy.ratio("call") + view.anatomy.ratio("other-python")
    return max(0.0, steps - compiled - eager.eager_ratio)


def _known(view: StepsView) -> float:
    """Share of the steps in ops whose results are known, which HST015 tells: they need no graph, but to go."""
    looks = view.get(eager_looks.build)
    return looks.again_ratio if looks is not None and looks.fresh_ratio >= NOTHING_NEW_RATIO else 0.0


class _Beside(Struct, frozen=True, kw_only=True):
    """The part of the steps that is a tf.function, and why the rest is not."""

    text: str
    remedies: tuple[Remedy, ...]
    where: tuple[Place, ...] = ()
    evidence: tuple[Evidence, ...] = ()


def _reads_first(what: str, reads: tuple[str, int] | None) -> tuple[Remedy, ...]:
    """The remedy of code that a graph cannot hold as it is."""
    if reads is None:
        return ()
    call, line = reads
    text = (
        f"put {what} into a @tf.function without {call} (line {line}), which no graph can run: return the tensor, and "
    )
    return (Remedy(id="reads-out-first", text=f"{text}read it outside, once in many steps"),)


def _beside(view: StepsView, eager: EagerTime, reads: tuple[str, int] | None) -> _Beside:
    """The function that the steps call, or the setting that makes it run eagerly too."""
    rows = view.named_times(*kinds_with(Trait.COMPILED))
    if not rows:
        text = "decorate the step with @tf.function, so that it runs as one graph"
        remedies = (Remedy(id="use-tf-function", text=text), *_reads_first("the step", reads))
        return _Beside(text="no tf.function around it", remedies=remedies)
    name = rows[0].name
    called = f"Keras' compiled {name.role} step" if name.role else f"its tf.function {name.text}"
    share = sum(row.total_ns for row in rows) / view.steps.steady_ns
    setting = _setting(view) if eager.function_ratio > 0 else None
    if setting is not None:
        place = view.place(setting.file, setting.line, function=setting.function)
        text = "remove tf.config.run_functions_eagerly(True), and decorate the whole step with @tf.function"
        return _Beside(
            text=f"{called} too, because of tf.config.run_functions_eagerly at {place.file}:{place.line}",
            remedies=(Remedy(id="remove-run-functions-eagerly", text=text),),
            where=(place,),
            evidence=(Evidence(metric="function_ratio", value=eager.function_ratio, unit="ratio"),),
        )
    text = f"put the code outside {called} into a @tf.function too: preferably the whole step into one"
    return _Beside(
        text=f"outside {called}, which takes {format_ratio(share)}",
        remedies=(Remedy(id="use-tf-function", text=text), *_reads_first(f"the code outside {called}", reads)),
        where=(view.place(name.file, name.line, function=name.text),) if name.file else (),
        evidence=(Evidence(metric="compiled_ratio", value=share, unit="ratio"),),
    )


def _mostly(view: StepsView) -> str:
    """``, most of it in soft_update (get_weights)``: the function with most of the time; "" if there is none."""
    spot = next(iter(view.hot_spots("other-python", "call")), None)
    if spot is None or spot.ratio < MOST:
        return ""
    what = doing.of_spot(spot, view.source_of)
    return f", most of it in {loop_python.who(view, spot.culprit, spot.lines[:3])}" + (f" ({what})" if what else "")


def _in_loop(loop: ElementLoop) -> str:
    """``, most of it in a Python loop over elements in f: 512 turns a step, 6.0 ops each``."""
    name = loop.function.replace(".<locals>", "").replace(".<listcomp>", "").replace(".<genexpr>", "")
    turns = f"{loop.turns:,.0f} turns a step, {loop.ops:.1f} ops each"
    return f", most of it in a Python loop over elements in {name}: {turns}"


def _of_loop(loop: ElementLoop) -> tuple[Evidence, ...]:
    return (
        Evidence(metric="loop_ratio", value=loop.ratio, unit="ratio"),
        Evidence(metric="loop_turns", value=loop.turns, unit="per step", threshold=element_loop.MIN_TURNS),
        Evidence(metric="ops_per_turn", value=loop.ops, unit="ops"),
    )


def _setting(view: StepsView) -> Setting | None:
    """The call that set functions to run eagerly, if that still holds."""
    made = view.worker.all(Setting)
    last = next((s for s in reversed(made) if s.name == "run_functions_eagerly"), None)
    return last if last is not None and last.value and last.file else None


DETECTOR = Detector(
    code="HST002",
    name="eager-step",
    cause="Model: confusion with computation model",
    introduced_stage="training",
    exposed_stage="training",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS, Signal.SAMPLES}),
    frameworks=frozenset({"tensorflow"}),
    params=Params(),
    detect=detect,
)
