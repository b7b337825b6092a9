"""Uploads and the input share the network: while data goes out, less comes in, and the steps wait.

## What it detects
In the seconds in which the host sends much (checkpoints and summaries to remote storage, gradients, another program),
less input arrives and the steps wait longer for it than in the other seconds of the same run.

## Why it matters
The upload itself may run in the background and cost nothing; the cost is the input that it displaces, and that does not
show near the code that uploads.

## Evidence
`wait_while_uploading_ratio` and `wait_otherwise_ratio`: share of the time that steps waited for input in the seconds
with much and with little network-out; `input_while_uploading` and `input_otherwise`: network-in of these seconds;
`uploading_ratio`: share of the seconds. Acknowledgements of arriving data (at most 5 % of it) do not count as uploads.

## Known limits
Seconds are compared: uploads shorter than two seconds are blurred. An upload that never pauses leaves nothing to
compare it with. An upload that blocks the step's thread is a blocking save (HST006) instead: the steps then do not wait
for input. The sender is not known here, only that it is in this network namespace.

## Remedy
Upload between epochs or when the job has ended, limit the rate of the upload, compress it, or use another interface
for it.

## References
Training-pipeline analysis (Rand 2020), network-out against network-in; tc(8).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.system import uploads_squeeze_input
from stepscope.causes.system.uploads_squeeze_input import MAX_INPUT
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_rate, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.steps_view import StepsView

MB = 1e6


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds; causes/system/uploads_squeeze_input.py decides what counts as squeezing."""

    min_lost_ratio: Ratio = Ratio(0.03)
    """Of the time: the least that a report calls low."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    sent = view.get(uploads_squeeze_input.build)
    if sent is None or sent.input_beside > MAX_INPUT * sent.input_usual:
        return
    if sent.wait_beside is None or sent.wait_usual is None:
        yield Undecided(missing=Signal.INPUT_WAIT, hint="there are uploads; whether steps wait then is unknown")
        return
    cost = sent.lost_ratio
    if cost < params.min_lost_ratio:
        return
    waits, usually = format_ratio(sent.wait_beside), format_ratio(sent.wait_usual)
    yield Seen(
        title=f"uploads slow down the input: while {format_rate(sent.sent / MB)} MB/s go out, input falls from "
        f"{format_rate(sent.input_usual / MB)} to {format_rate(sent.input_beside / MB)} MB/s and steps wait "
        f"{waits} of the time instead of {usually}",
        confidence=0.75,
        evidence=(
            Evidence(metric="wait_while_uploading_ratio", value=sent.wait_beside, unit="ratio"),
            Evidence(metric="wait_otherwise_ratio", value=sent.wait_usual, unit="ratio"),
            Evidence(metric="input_while_uploading", value=sent.input_beside / MB, unit="MB/s"),
            Evidence(metric="input_otherwise", value=sent.input_usual / MB, unit="MB/s"),
            Evidence(metric="uploading_ratio", value=sent.share_ratio, unit="ratio"),
            Evidence(metric="network_out", value=sent.sent / MB, unit="MB/s"),
        ),
        cost=cost_of(view, cost, low=0.6 * cost, high=1.4 * cost),
        remedies=(
            Remedy(id="upload-later", text="upload between epochs or when the job has ended, or at a limited rate"),
            Remedy(id="upload-less", text="compress what is uploaded, or keep fewer checkpoints and summaries"),
        ),
        explanation="Seconds with and without uploads are compared within this run. The input arrives more slowly "
        "during an upload, and the steps wait for it.",
    )


DETECTOR = Detector(
    code="NET003",
    name="uploads-squeeze-input",
    cause="System: network",
    introduced_stage="training",
    exposed_stage="training",
    pipeline_stage="raw-input",
    needs=frozenset({Signal.STEPS, Signal.RESOURCES}),
    params=Params(),
    detect=detect,
)
