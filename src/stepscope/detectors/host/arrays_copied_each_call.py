"""Each call of a tf.function copies its NumPy arguments into tensors.

## What it detects
Calls of tf.functions in the steady steps that spend at least a seventh of the time, and at least a millisecond of each
step, on converting NumPy arguments to tensors before the function starts to run.

## Why it matters
Each call copies the array on the calling thread and, on a GPU, sends it to the device, even if it never changes, such
as a matrix of embeddings: a hundred megabytes each time.

## Evidence
`copy_ratio`: share of the stack samples of the steady steps that fall on the conversion of an argument inside the call;
`samples`: the number of all samples. `call_ratio`: share of the steady wall time in the calls. `needless_ratio`: share
of the bytes of the arguments that the function's graph leaves out at once, because it casts them to a smaller type.

## Known limits
Which argument is large is not determined. Small arrays in short steps are not reported: the fixed cost of making a
tensor remains, even where it is a fifth of the step. Arrays that change with each step must be copied once; tf.data
does so while the step runs. Conversions in user code (`tf.constant` in the loop) are reported as Python of the loop.

## Remedy
Give what the step computes with: float32 instead of NumPy's float64, or the type that was read (uint8), cast and scaled
in the step. Convert what does not change to a tensor (`tf.constant`) or a `tf.Variable` once, before the loop; take
what changes from a `tf.data.Dataset` with `prefetch`.

## References
TensorFlow guide on tf.function, "Controlling retracing": pass tensors; FSE'22 study, inefficient data transmission.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.graph import wide_inputs
from stepscope.derive.numeric import proportion
from stepscope.derive.python import stack_samples
from stepscope.derive.python.eager import FUNCTION_CALLS
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of, step_ns
from stepscope.model.log.program import InputSeen
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.python.stack_samples import Sample
    from stepscope.derive.steps_view import StepsView

CONVERSION = ("/framework/constant_op.py", "convert_to_eager_tensor")
"""File and function that convert an array to a tensor. Source: TensorFlow 2.15 to 2.21."""


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.15)
    """Share of the samples. Small batches of arrays take a few percent (clean programs of bench/cases)."""
    min_copy_ns: int = 1_000_000
    """Per step. Making a tensor of an array takes up to 0.1 ms whatever its size; a replay batch of five arrays took
    0.4 ms, and none of them could be converted once and kept."""
    min_needless_ratio: Ratio = Ratio(0.25)
    """Of the bytes of the arguments, for their type to be a remedy."""
    min_samples: int = 20
    """Fewer are too few to conclude from."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    anatomy, taken = view.anatomy, view.samples
    mine = [sample for sample in taken if _converts(sample)]
    whole = stack_samples.weight_of(taken)
    if len(taken) < params.min_samples or not whole:
        return
    ratio = stack_samples.weight_of(mine) / whole
    if ratio >= params.min_ratio and ratio * step_ns(view) >= params.min_copy_ns:
        yield _finding(view, mine, ratio, anatomy.ratio("call"), params)


def _converts(sample: Sample) -> bool:
    """Whether a sample lies in the conversion of an argument below the call of a tf.function."""
    if sample.component != "call":
        return False
    below = sample.below_user()
    called = next((i for i, frame in enumerate(below) if FUNCTION_CALLS in frame.file), len(below))
    return any(frame.file.endswith(CONVERSION[0]) and frame.function == CONVERSION[1] for frame in below[called:])


def _finding(view: StepsView, mine: list[Sample], ratio: float, calls: float, params: Params) -> Seen:
    low, high = proportion.interval(ratio, len(view.samples))
    wide = wide_inputs.build(view.graphs, view.worker.all(InputSeen)) if view.graphs is not None else None
    if wide is not None and wide.needless_ratio < params.min_needless_ratio:
        wide = None
    what = f"; they are {wide.seen.dtype}, which it casts to {wide.used} at once" if wide is not None else ""
    return Seen(
        title=f"each call copies NumPy arrays into tensors before its function runs, "
        f"{format_ns(ratio * step_ns(view))} a step: {format_ratio(ratio)} of the time{what}",
        confidence=0.9,
        where=tuple(view.place(file, first, last, name) for file, name, first, last in stack_samples.lines_of(mine)),
        evidence=(
            Evidence(metric="copy_ratio", value=ratio, unit="ratio", threshold=params.min_ratio),
            Evidence(metric="call_ratio", value=calls, unit="ratio"),
            Evidence(metric="samples", value=len(view.samples), unit="samples", threshold=params.min_samples),
            *([Evidence(metric="needless_ratio", value=wide.needless_ratio, unit="ratio")] if wide is not None else []),
        ),
        cost=cost_of(view, ratio, low=low * (wide.needless_ratio if wide is not None else 1), high=high),
        remedies=(
            *([_NARROWER] if wide is not None else []),
            Remedy(
                id="convert-once",
                text="convert arrays that do not change to tensors once, before the loop (tf.constant, or a "
                "tf.Variable that the function reads)",
            ),
            Remedy(id="feed-by-dataset", text="take arrays that change from a tf.data.Dataset with prefetch"),
        ),
        explanation="These stacks lead from the call of the tf.function into the conversion of its arguments. A "
        "tensor is passed without a copy.",
    )


_NARROWER = Remedy(
    id="narrower-arrays",
    text="give the arrays in the type that the step computes with (float32), or in which they were read (uint8), and "
    "cast and scale them in the step: NumPy makes float64 of x / 255.0",
)


DETECTOR = Detector(
    code="HST013",
    name="arrays-copied-each-call",
    cause="Data: inefficient data transmission",
    introduced_stage="data preparation",
    pipeline_stage="host-to-device",
    needs=frozenset({Signal.STEPS, Signal.SAMPLES}),
    frameworks=frozenset({"tensorflow"}),
    params=Params(),
    detect=detect,
)
