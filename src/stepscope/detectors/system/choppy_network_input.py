"""The input arrives over the network in bursts that the steps wait for; the network idles while they compute.

## What it detects
Downloading and computing take turns: data arrives while the steps wait, and nothing arrives while they work. A file is
downloaded completely before its first record is used, and the next one is requested after its last record.

## Why it matters
The step takes the sum of both times instead of the longer one. Charts of bytes a second look choppy; the network itself
may be half idle.

## Evidence
`wire_while_waiting_ratio` and `wire_while_working_ratio`: share of the waiting time, and of the remaining time, in
which data arrived. They differ only if the steps wait for exactly this data. `overlap_ratio`: the smaller of waiting
for the network and computing while the network idles, which is what fetching ahead saves. From samples once a second,
or from bursts of 50 looks a second if the turns are shorter.

## Known limits
Turns shorter than 40 ms look steady. Bursts that no step waits for (a buffer filled in the background) cost nothing and
are not reported. Only waits for tf.data and its iterators are examined.

## Remedy
Fetch ahead: `prefetch` after the stage that downloads, `interleave` over the files with
`num_parallel_calls=tf.data.AUTOTUNE`, or a thread that keeps the next files ready; stream records instead of whole
files.

## References
tf.data performance guide, sections prefetching and parallelizing data extraction; training-pipeline
analysis (Rand 2020), choppy network-in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.input import input_cause, input_source
from stepscope.causes.job import hidden_wait
from stepscope.causes.system import network
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_rate, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.system.network import Network, Rhythm
    from stepscope.derive.steps_view import StepsView

MB = 1e6


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds; causes/system/network.py defines a rhythm."""

    min_wait_ratio: Ratio = Ratio(0.15)
    """Of steady wall time, as for a slow stage (INP001)."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    link, cause = view.get(network.build), view.get(input_cause.build)
    if link is None or cause is None or view.get(hidden_wait.build) or cause.wait_ratio < params.min_wait_ratio:
        return
    if link.rhythm is not None and link.is_choppy:
        yield _finding(view, link, link.rhythm, cause.wait_ratio, params)


def _finding(view: StepsView, network: Network, rhythm: Rhythm, wait: float, params: Params) -> Seen:
    ratio = min(wait, rhythm.overlap_ratio)
    return Seen(
        title=f"the input arrives in bursts: steps wait for it {format_ratio(wait)} of the time, although the network "
        f"is idle {format_ratio(rhythm.gap_ratio)} of the time",
        confidence=0.8,
        where=input_source.places(view),
        evidence=(
            Evidence(metric="overlap_ratio", value=rhythm.overlap_ratio, unit="ratio", threshold=0.1),
            Evidence(
                metric="input_wait_ratio",
                value=wait,
                unit="ratio",
                threshold=params.min_wait_ratio,
                refs=("component:input-wait",),
            ),
            Evidence(metric="wire_while_waiting_ratio", value=rhythm.on_waiting_ratio, unit="ratio"),
            Evidence(metric="wire_while_working_ratio", value=rhythm.on_working_ratio, unit="ratio"),
            Evidence(metric="network_in", value=network.mean_in / MB, unit="MB/s"),
        ),
        cost=cost_of(view, ratio, low=0.6 * ratio, high=min(wait, 1.3 * ratio)),
        remedies=(
            Remedy(
                id="fetch-ahead",
                text="fetch ahead, so that the next file arrives while the steps compute",
            ),
            Remedy(
                id="parallel-files",
                text="read several files at once: interleave(..., num_parallel_calls=tf.data.AUTOTUNE)",
            ),
            Remedy(id="several-readers", text="read several files at once, by more workers or threads"),
        ),
        explanation=f"Data arrived in {format_ratio(rhythm.on_waiting_ratio)} of the time in which the steps waited "
        f"and in {format_ratio(rhythm.on_working_ratio)} of the time in which they worked, at "
        f"{format_rate(network.busy_in / MB)} MB/s. If the two overlap, the step takes as long as the longer one.",
    )


DETECTOR = Detector(
    code="NET001",
    name="choppy-network-input",
    cause="Data: inefficient data transmission",
    introduced_stage="data preparation",
    exposed_stage="training",
    pipeline_stage="raw-input",
    needs=frozenset({Signal.STEPS, Signal.RESOURCES}),
    params=Params(),
    detect=detect,
)
