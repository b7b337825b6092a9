"""The host waits for a result of each step before it does its own work.

## What it detects
`.numpy()`, `float()`, `int()`, `bool()` or `numpy.asarray()` of a tensor that waits for the device in every step of a
loop whose host has work that could have run meanwhile: Python, callbacks, input.

## Why it matters
Calls return before the device is done, so that the host can prepare the next step while this one runs. A wait in every
step makes host and device take turns; the step then takes the sum of both instead of the longer one.

## Evidence
`sync_ratio`: share of the steady wall time in such waits; each wait of 20 us or more is timed. `host_ratio`: share of
the host's work outside calls and waits. `lost_ratio`: the smaller of the two, which is the most that overlapping them
can save. `syncs_per_step`.

## Known limits
On CPUs a call returns when its result is there: a wait after it takes a microsecond and loses nothing; a longer one is
a copy. So the detector does not apply on hosts without a GPU (TensorFlow's asynchronous executor of CPU ops is not
recognised). If the host has nothing else to do, nothing is lost either. Waits inside callbacks count as the callbacks'.
If another finding names the host's work in the same loop, only that one is reported. Whether the next step needs the
value (a condition on the loss) is not known.

## Remedy
Keep the value as a tensor (add it to a `tf.keras.metrics.Mean`) and read it every N steps, or read the value of the
previous step, which is already there.

## References
TensorFlow guide "Better performance with tf.function"; training-pipeline analysis (Rand 2020), stage device-to-host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.model.report.components import Trait, components_with
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ns, format_ratio
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.steps.named_times import NamedTime
    from stepscope.derive.steps_view import StepsView
    from stepscope.derive.view import SessionView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.05)
    """Share of the steady wall time that overlapping could save."""
    min_per_step: float = 0.5
    """Waits per step: logging needs one every few steps."""


HOST = components_with(Trait.HOST)
"""The host's work in the step besides calls and waits, which could run while the device computes."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    steps, anatomy = view.steps, view.anatomy
    rows = [r for r in view.named_times(Kind.SYNC) if r.name.call_file]
    calls = sum(r.calls for r in rows)
    waited, host = anatomy.ratio("host-sync"), sum(anatomy.ratio(part) for part in HOST)
    ratio = min(waited, host)
    if ratio >= params.min_ratio and calls >= params.min_per_step * steps.steady_count:
        yield _finding(view, rows, calls, waited, host, params)


def _finding(view: StepsView, rows: list[NamedTime], calls: int, waited: float, host: float, params: Params) -> Seen:
    steps = view.steps
    count = steps.steady_count
    ratio = min(waited, host)
    each = format_ns(sum(r.total_ns for r in rows) / calls)
    top = rows[0].name
    return Seen(
        title=f"the host waits for the device in every step ({top.text}(), {calls / count:.2g}x a step, {each} "
        f"each), and only then continues in Python: overlapping the two saves up to {format_ratio(ratio)} of the time",
        confidence=0.7,
        where=tuple(
            dict.fromkeys(
                view.place(r.name.call_file, r.name.call_line, function=r.name.call_function) for r in rows[:3]
            )
        ),
        evidence=(
            Evidence(metric="sync_ratio", value=waited, unit="ratio", refs=("component:host-sync",)),
            Evidence(metric="host_ratio", value=host, unit="ratio"),
            Evidence(metric="lost_ratio", value=ratio, unit="ratio", threshold=params.min_ratio),
            Evidence(metric="syncs_per_step", value=calls / count, unit="calls", threshold=params.min_per_step),
        ),
        cost=cost_of(view, ratio, low=0.0, high=1.05 * ratio, basis="modelled"),
        remedies=(
            Remedy(
                id="read-less-often",
                text="keep the value as a tensor (a tf.keras.metrics.Mean) and read it every N steps",
            ),
            Remedy(id="read-a-step-later", text="or read the value of the previous step, which is already there"),
        ),
        explanation="The device is idle while the host works, and the host is idle while the device computes, "
        "because of the wait between them.",
    )


def _works_beside(view: SessionView) -> bool:
    return view.steps is None or view.session.manifest.host.gpus > 0


DETECTOR = Detector(
    code="HST008",
    name="host-sync-each-step",
    cause="Data: inefficient data transmission",
    introduced_stage="training",
    exposed_stage="training",
    pipeline_stage="device-to-host",
    needs=frozenset({Signal.STEPS}),
    frameworks=frozenset({"tensorflow"}),
    params=Params(),
    detect=detect,
    applies=lambda view: "" if _works_beside(view) else "the host has no GPU: calls return with their results",
    yields_to=frozenset({"HST001", "HST004", "INP001", "INP002", "INP003", "INP004"}),
)
