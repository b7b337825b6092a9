"""A model runs on one row at a time, from a loop over rows that are all there.

## What it detects
Runs of an ONNX Runtime session on the CPU with one row or a few, whose model leaves the number of rows open, from a
loop none of whose turns needs the result of another. Such a run must take no longer than being called and reading each
weight of the model once: then more rows cost hardly more.

## Why it matters
Each run has the call, a visit to every node, and the weights to read, whatever the number of rows. By CPU time a row
takes 2.9 to 14 times less in runs of 32 rows, for products of 1,024 by 1,024 down to 64 by 64
(docs/benchmarks/onnx-rows.md).

## Evidence
`run_ratio`: share of the steps in these runs. `rows`, `runs`: rows of a run, and their number. `run_ns`: time of one.
`ns_per_weight`: that time for each weight of the model's file, if the file was seen.

## Known limits
What more rows save is modelled, by the measurements above. Models that convolve, or that work on sequences of many
tokens, use each weight many times in a run of one row: they are left out by their time. Batches gain nothing there:
an image takes 0.97 to 1.03 times less in runs of 32. Whether turns of the loop depend on each other is read from the
source of the function that holds it. A loop that waits for its rows (a socket, a queue) is a service whose requests
come one by one: nothing is said.

## Remedy
Stack rows and run the session on some hundreds at once: `session.run(None, {name: numpy.stack(rows)})`.

## References
ONNX Runtime: performance, batching; FSE'22 study, inefficient API usage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.general import waits
from stepscope.causes.host import rows_one_by_one
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.host.rows_one_by_one import FewRows
    from stepscope.derive.steps_view import StepsView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    max_rows: int = 4
    """Of a run."""
    min_runs: int = 50
    """In the steady steps: fewer rows are soon done."""
    min_ratio: Ratio = Ratio(0.1)
    """Of the steady wall time in these runs."""
    max_waits: Ratio = Ratio(0.1)
    """Of the steady wall time for which the loop waits for something that has a name: a request, a message."""


SAVED = (0.4, 0.75, 0.95)
"""Part of the runs' time that larger runs save: at least, usually, at most. Measured: 0.66 to 0.93 (onnx-rows.md)."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    found = rows_one_by_one.build(view, params.max_rows)
    if found is None or found.runs < params.min_runs or found.ratio < params.min_ratio:
        return
    if sum(wait.ratio for wait in waits.known(view)) < params.max_waits:
        yield _finding(view, found, params)


def _finding(view: StepsView, found: FewRows, params: Params) -> Seen:
    rows = "one row" if found.rows <= 1 else f"{found.rows:.0f} rows"
    least, usual, most = (part * found.ratio for part in SAVED)
    evidence = [
        Evidence(
            metric="run_ratio",
            value=found.ratio,
            unit="ratio",
            threshold=params.min_ratio,
            refs=(f"name:{found.name.id}",),
        ),
        Evidence(metric="rows", value=found.rows, unit="rows", threshold=params.max_rows),
        Evidence(metric="runs", value=found.runs, unit="runs", threshold=params.min_runs),
        Evidence(metric="run_ns", value=found.run_ns, unit="ns"),
    ]
    if found.weights:
        evidence.append(Evidence(metric="ns_per_weight", value=found.run_ns / found.weights, unit="ns"))
    return Seen(
        title=f"the session runs on {rows} at a time, in a loop over rows: "
        f"{format_ns(found.run_ns)} a run, {format_ratio(found.ratio)} of the time",
        confidence=0.8,
        where=(
            view.place(found.name.call_file, found.name.call_line, function=found.name.call_function),
            view.place(found.file, found.line, function=found.function),
        ),
        evidence=tuple(evidence),
        cost=cost_of(view, usual, low=least, high=most, basis="modelled"),
        remedies=(
            Remedy(
                id="run-many-rows",
                text="stack rows and run the session on some hundreds at once, session.run(None, {name: "
                "numpy.stack(rows)}): the model leaves their number open",
            ),
        ),
        explanation="A run is called, visits each node and reads all weights, for one row as for a hundred; it takes "
        "no longer than that.",
    )


DETECTOR = Detector(
    code="HST018",
    name="rows-one-by-one",
    cause="API: inefficient API usage",
    introduced_stage="prediction",
    exposed_stage="prediction",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS}),
    frameworks=frozenset({"onnxruntime"}),
    params=Params(),
    detect=detect,
)
