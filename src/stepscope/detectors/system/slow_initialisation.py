"""The job spends a large part of its time in its own code before the first steady step.

## What it detects
One function of the user's code - loading, parsing, converting data, usually in a loop over items, or making a session
of a model - that takes a quarter or more of the whole run before the first step, outside tracing, first calls and the
building of layers.

## Why it matters
Every start of the job pays it again: each trial of a search, each restart on a spot machine, each debugging run.

## Evidence
`initialisation_ratio`: time that the function takes before the first steady step, by stack samples, as a share of the
time from the end of the imports to the last step. The parts of the time before that step: `import_ns`, `own_code_ns`,
`model_building_ns`, `first_calls_ns` (tracing, graph compilation, warm-up), `first_batch_ns`. `making_ns`: within calls
that make a session or load a model, if that is most of it. `received_bytes`, `receiving_ns`: what arrived over the
network before the first step, and in how much of the time, if that is most of the function's.

## Known limits
A long first trace alone is not a finding (GRF002 says what makes it long), nor is what a module does while it is
imported (INI002). A short trial run makes every start look
long: the cost is that of a run of this length. Work of worker processes before the first step appears as waiting.
Waiting for other tasks of the cluster (a chief, a server) is not the job's own code: `cluster_wait_ns` says how long.

## Remedy
Vectorise the loop, or replace it with tf.data and `num_parallel_calls`, so that steps begin while it loads; or do it
once and keep the result (`np.save`, TFRecord, `Dataset.save`). A session of ONNX Runtime optimises the graph each time
it is made: keep the optimised model (`optimized_model_filepath`) and make sessions from that. Data that are downloaded
whole before the first step can be streamed instead.

## References
FSE'22 study, symptom "slow initialization time"; tf.data performance guide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.host import slow_initialisation
from stepscope.causes.system import start_download
from stepscope.derive.numeric import proportion
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.place import Place
from stepscope.tables.units import Ratio, format_bytes, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.host.slow_initialisation import Startup
    from stepscope.causes.system.start_download import StartDownload
    from stepscope.derive.steps_view import StepsView
    from stepscope.tables.findings import Cause


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.25)
    """Of the time from the end of the imports to the last step."""
    min_cpu_ns: int = 3_000_000_000
    """CPU time in the function, so that a busy machine does not make it look slow. Source: twelve clean programs,
    whose own code takes 0.6 s at most."""
    min_wait_ns: int = 15_000_000_000
    """Or total time, for files that are read one by one."""
    min_samples: int = 10
    min_receiving_ratio: Ratio = Ratio(0.5)
    """Time in which data arrive over the network, as a share of the function's, from which these are the cause."""
    min_making_ratio: Ratio = Ratio(0.5)
    """Share of the function's time in calls that make a session or load a model from which these are the cause."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    start, steps = view.get(slow_initialisation.build), view.steps
    if start is None or start.spot is None or start.span_ns <= 0:
        return
    if start.spot.function == "<module>" and start.caller is not None:
        return  # a module that is imported: slow_import
    ratio = start.spot_ns / start.span_ns
    long = start.spot_cpu_ns >= params.min_cpu_ns or start.spot_ns >= params.min_wait_ns
    if not long or ratio < params.min_ratio or start.samples < params.min_samples:
        return
    low, high = proportion.interval(start.spot_ns / max(1, start.own_ns), start.samples)
    own = start.own_ns / start.span_ns
    makes = start.making_ns >= params.min_making_ratio * start.spot_ns
    load = view.get(start_download.build)
    loads = load if load is not None and load.receiving_ns >= params.min_receiving_ratio * start.spot_ns else None
    by = f", most of it in {start.making}" if makes else ""
    by = by or (f", while {format_bytes(loads.bytes)} arrive over the network" if loads is not None else "")
    yield Seen(
        title=f"slow initialisation: {start.spot.function} takes {format_ns(start.spot_ns)} before the first step"
        f"{by}: {format_ratio(ratio)} of the run",
        confidence=0.85,
        cause="API: inefficient API usage" if makes else _of_data(loads),
        introduced_stage="model building" if makes else "data preparation",
        where=_places(view, start),
        evidence=(
            Evidence(metric="initialisation_ratio", value=ratio, unit="ratio", threshold=params.min_ratio),
            Evidence(metric="import_ns", value=start.import_ns, unit="ns"),
            Evidence(metric="own_code_ns", value=start.own_ns, unit="ns"),
            Evidence(metric="model_building_ns", value=start.building_ns, unit="ns"),
            Evidence(metric="first_calls_ns", value=start.calls_ns, unit="ns"),
            Evidence(metric="first_batch_ns", value=start.first_batch_ns, unit="ns"),
            Evidence(metric="samples_on_code", value=start.samples, unit="samples"),
            *((Evidence(metric="cluster_wait_ns", value=start.cluster_ns, unit="ns"),) if start.cluster_ns else ()),
            *((Evidence(metric="making_ns", value=start.making_ns, unit="ns"),) if makes else ()),
            *(_received(loads) if loads is not None else ()),
        ),
        cost=cost_of(
            view,
            ratio,
            low=min(ratio, own * low),
            high=max(ratio, own * high),
            ns_per_step=start.spot_ns // max(1, len(steps)),
        ),
        remedies=_STREAM if loads is not None and not makes else _remedies(start.spot.function, start.making * makes),
        explanation=f"Of the {format_ns(start.length_ns)} between the imports and the first steady step, tracing and "
        f"first calls take {format_ns(start.calls_ns)}.",
    )


def _of_data(loads: StartDownload | None) -> Cause:
    return "Data: inefficient data preprocessing" if loads is None else "Data: inefficient data transmission"


def _received(loads: StartDownload) -> tuple[Evidence, ...]:
    """What arrives, for how long, and how fast: a link's limit shows in the rate."""
    return (
        Evidence(metric="received_bytes", value=loads.bytes, unit="bytes"),
        Evidence(metric="receiving_ns", value=loads.receiving_ns, unit="ns"),
        Evidence(metric="received_bytes_per_s", value=loads.bytes_s, unit="bytes/s"),
    )


_STREAM = (
    Remedy(
        id="stream-the-data",
        text="begin while the data arrive: read them from the store as the steps need them (gs://, s3://, SageMaker's "
        "fast file or pipe mode), or fetch the first files only and the others while the steps run",
    ),
    Remedy(id="keep-the-download", text="or keep what was downloaded on a disk that outlives the job"),
)


def _remedies(function: str, making: str) -> tuple[Remedy, ...]:
    if making == "InferenceSession":
        text = (
            "optimise the model once: save it with SessionOptions.optimized_model_filepath and make sessions from that "
            "file with graph_optimization_level = ORT_DISABLE_ALL; make one session, and keep it"
        )
        return (Remedy(id="keep-the-optimised-model", text=text),)
    if making:
        text = f"call {making} once, and keep what it returns; load no more than is used"
        return (Remedy(id="build-once", text=text),)
    return (
        Remedy(
            id="load-in-pipeline",
            text=f"do the work of {function} in tf.data (map with num_parallel_calls), or vectorise it",
        ),
        Remedy(id="vectorise-start", text=f"vectorise {function}, or do its work on several processes"),
        Remedy(
            id="keep-the-result",
            text="or, if the result is the same in every run, compute it once and keep it in a file (np.save)",
        ),
    )


def _places(view: StepsView, slow_initialisation: Startup) -> tuple[Place, ...]:
    spots = [s for s in (slow_initialisation.spot, slow_initialisation.caller) if s is not None]
    return tuple(dict.fromkeys(view.place(s.file, s.line, function=s.function) for s in spots))


DETECTOR = Detector(
    code="INI001",
    name="slow-initialisation",
    symptom="Time: slow initialization time",
    exposed_stage="initialization",
    needs=frozenset({Signal.STEPS, Signal.SAMPLES}),
    params=Params(),
    detect=detect,
)
