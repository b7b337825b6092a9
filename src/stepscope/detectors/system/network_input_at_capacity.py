"""The network delivers as much as it can, and the steps wait for more.

## What it detects
Steps wait for their input, the input comes over the network, and data arrives without a pause while they wait: the
link, a limit on the path or the sender gives no more.

## Why it matters
No pipeline setting helps: more threads share the same link. Fewer bytes per sample, a copy of the data nearby, or a
faster link do; this detector reports how many samples a second the link allows.

## Evidence
`network_in`: bytes received a second; `bytes_per_sample` and `samples_per_s_allowed`: what a sample costs on the
network and the rate that the network then allows. `wire_busy_ratio`: share of the waiting time in which data arrived,
sampled 50 times a second in short bursts. `unread_ratio`: share of the looks at the process's connections that found
unread data: if it is high, the reader (decoding, Python) is the limit, not the network. `own_ratio`: share of the
arriving bytes that belong to this process. If the driver states a link speed, the share of that counts too.

## Known limits
A limit set by a queueing discipline, a switch or the server cannot be read. The observed plateau is taken as the limit;
its source stays unknown. Connections that open and close within three seconds, UDP, kernel clients (NFS) and other
network namespaces have no visible owner: the result is then undecided. A faster network saves at most the wait; how
much time the rest of the pipeline then needs shows only afterwards.

## Remedy
Send fewer bytes: compressed or smaller records, only the columns that are used, uint8 instead of float32. Copy the data
to a local disk or cache it in the first epoch. Read from several servers, or run the job near its data.

## References
Mohan and others, "Analyzing and Mitigating Data Stalls in DNN Training", VLDB 2021 (fetch stalls); tcp(7),
sock_diag(7).
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

    from stepscope.causes.system.network import Network
    from stepscope.derive.steps_view import StepsView

MB = 1e6


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_wait_ratio: Ratio = Ratio(0.15)
    """Of steady wall time, as for a slow stage (INP001)."""
    min_steadiness: float = 0.5
    """Lowest over typical rate of the seconds: high for a plateau."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    link, cause = view.get(network.build), view.get(input_cause.build)
    if link is None or link.steadiness < params.min_steadiness:
        return
    if view.get(hidden_wait.build):
        yield Undecided(missing=Signal.INPUT_WAIT, hint="the network is busy; whether steps wait for it is unknown")
        return
    if cause is None or cause.wait_ratio < params.min_wait_ratio:
        return
    if link.is_full is None:
        yield Undecided(missing=Signal.RESOURCES, hint=_why_unknown(link))
    elif link.is_full and not link.is_choppy:
        yield _finding(view, link, cause.wait_ratio, 2 * cause.error_ratio, params)


def _why_unknown(network: Network) -> str:
    if network.job_ratio is None:
        return "the kernel does not say which process receives the bytes on the network"
    return "the run was too short to sample the network closely (at least 4 s)"


def _finding(view: StepsView, network: Network, wait: float, error: float, params: Params) -> Seen:
    samples = input_source.samples_per_s(view)
    per_sample = network.mean_in / samples if samples > 0 else 0.0
    rate = f"{format_rate(network.busy_in / MB)} MB/s"
    allowed = f" and lets {format_rate(network.busy_in / per_sample)} samples/s through" if per_sample > 0 else ""
    per = f" ({format_rate(per_sample / 1e3)} kB a sample)" if per_sample > 0 else ""
    evidence = [
        Evidence(metric="network_in", value=network.mean_in / MB, unit="MB/s"),
        Evidence(
            metric="input_wait_ratio",
            value=wait,
            unit="ratio",
            threshold=params.min_wait_ratio,
            refs=("component:input-wait",),
        ),
    ]
    if per_sample > 0:
        evidence += [
            Evidence(metric="bytes_per_sample", value=per_sample, unit="bytes"),
            Evidence(metric="samples_per_s_allowed", value=network.busy_in / per_sample, unit="samples/s"),
        ]
    optional = (
        ("wire_busy_ratio", network.on_ratio),
        ("unread_ratio", network.unread_ratio),
        ("own_ratio", network.job_ratio),
        ("link_ratio", network.mean_in / network.link if network.link > 0 else None),
    )
    evidence += [Evidence(metric=name, value=value, unit="ratio") for name, value in optional if value is not None]
    return Seen(
        title=f"the network is at its limit: it delivers {rate}{per}{allowed}; steps wait for input "
        f"{format_ratio(wait)} of the time",
        confidence=0.85,
        where=input_source.places(view),
        evidence=tuple(evidence),
        cost=cost_of(view, wait, low=wait - max(error, 0.3 * wait), high=wait + error),
        remedies=(
            Remedy(
                id="fewer-bytes",
                text="send fewer bytes a sample: compressed or smaller records, uint8, no unused columns",
            ),
            Remedy(
                id="local-copy",
                text="copy the data to a local disk before training, or keep it in memory as it was read, "
                "before anything random",
            ),
            Remedy(id="nearer-data", text="read from several servers, run the job near its data, or use a faster link"),
        ),
        explanation="While the steps waited, data arrived without a pause and was read at once, so the job is not "
        "the bottleneck: the link, a rate limit on the path or the sender is.",
    )


DETECTOR = Detector(
    code="NET002",
    name="network-input-at-capacity",
    cause="System: network",
    introduced_stage="data preparation",
    exposed_stage="training",
    pipeline_stage="raw-input",
    needs=frozenset({Signal.STEPS, Signal.RESOURCES}),
    params=Params(),
    detect=detect,
)
