"""The eight pipeline stages of the report: each with its share of the mean step, or why it was not measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from stepscope.causes.host import statement_role
from stepscope.causes.job import hidden_wait
from stepscope.derive import job_framework, unmeasured
from stepscope.derive.input import stages
from stepscope.derive.optrace import loop_python
from stepscope.derive.optrace.host import traced_stages
from stepscope.derive.optrace.steps import step_parts
from stepscope.model.report.components import Trait, components_of, components_with
from stepscope.model.report.report import StageShare
from stepscope.report.sections import part_basis
from stepscope.tables.findings import PipelineStage
from stepscope.tables.units import format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.derive.input.stages import Stage
    from stepscope.derive.optrace.trace_view import OpView
    from stepscope.derive.steps.anatomy import Anatomy
    from stepscope.derive.steps.sampled_parts import SampledParts
    from stepscope.derive.view import SessionView

STAGES: tuple[PipelineStage, ...] = tuple(stage for stage in get_args(PipelineStage) if stage != "none")
NO_STEPS = "not measured: no steps were seen; stepscope.step() marks the steps of any loop"
NO_STEPS_IN_FILES = "not measured: what was imported has no steps"


OF_ARRAYS = "host waits of at least 20 us for an array: they hold the work of which the call returned before its end"
MIN_IDLE = 0.15
"""Share of the traced steps without an op from which it matters whether they wait for input; as in INP007."""
MIN_SAMPLES = 8
"""Minimum number of stack samples to decide what Python between the calls is for."""
MAX_SHOWN = 3
"""Stages of the input pipeline named in a basis, the slowest first."""
MIN_SHOWN_NS = 10_000


def build(view: SessionView) -> tuple[StageShare, ...]:
    """The eight stages, in the pipeline's order."""
    anatomy, trace = view.anatomy, view.traces.main
    if anatomy is None and trace is not None:
        return _of_trace(trace)
    if anatomy is None:
        why = NO_STEPS_IN_FILES if view.session.manifest.mode == "import" else NO_STEPS
        return tuple(StageShare(stage=stage, ratio=None, basis=why) for stage in STAGES)
    name = unmeasured.framework(view) if trace is None else ""
    if name and anatomy.sampled is not None and not part_basis.uses_device(view):
        return _of_torch(view, anatomy, anatomy.sampled)
    if name:
        why = f"not measured: stepscope does not measure {name}'s calls"
        waits = _of_stage(anatomy, "device-to-host")
        return tuple(
            StageShare(stage=stage, ratio=waits, basis=OF_ARRAYS)
            if stage == "device-to-host" and waits
            else StageShare(stage=stage, ratio=None, basis=why)
            for stage in STAGES
        )
    feeding, computing = _between_ratios(view)
    after = _of_stage(anatomy, "output-processing") - feeding - computing
    untraced = _untraced(view)
    exchange, how = _exchange(trace, untraced)
    beside = exchange if exchange and trace is not None and trace.device < 0 else 0.0
    call = max(0.0, _of_stage(anatomy, "forward-backward") + computing - beside)
    inside = ", including the input wait inside them" if view.get(hidden_wait.build) else ""
    inside += ", plus model ops between them, from stack samples" if computing else ""
    less = ", minus the communication in the traced steps" if beside else ""
    less += ", without tracing" if anatomy.ratio("tracing") else ""
    rows: list[tuple[PipelineStage, float | None, str]] = [
        *_input(view, anatomy, feeding),
        ("host-to-device", *_on_device(trace, step_parts.TO_DEVICE, "copies from host to device", untraced)),
        ("forward-backward", call, f"calls of the compiled step, timed on the host{inside}{less}"),
        ("gradient-sharing", exchange, how),
        ("device-to-host", *_fetching(anatomy, trace)),
        ("output-processing", after, "callbacks and hooks, Keras' own loop, Python between the calls"),
        ("storage", _of_stage(anatomy, "storage"), "checkpoints, models and summaries written on the step's thread"),
    ]
    return tuple(StageShare(stage=stage, ratio=ratio, basis=basis) for stage, ratio, basis in rows)


def _of_torch(view: SessionView, anatomy: Anatomy, sampled: SampledParts) -> tuple[StageShare, ...]:
    """Shares by the parts of PyTorch's steps on a CPU. The rest of a step holds calls of several stages."""
    untraced, rest = _untraced(view), "not measured: other calls of PyTorch and Python are one part of the step"
    fed = unmeasured.input_seen(view)
    wait = anatomy.ratio("input-wait") if fed else None
    computing = sum(anatomy.ratio(name) for name in components_with(Trait.TORCH)) if sampled.forward_ratio else None
    forward = "of which the forward pass is known from stack samples"
    shares: dict[PipelineStage, tuple[float | None, str]] = {
        "raw-input": (None, "included in preprocessing: what a DataLoader reads is not seen apart" if fed else rest),
        "preprocessing": (wait, "waits for the next batch of a DataLoader" if fed else rest),
        "host-to-device": (None, untraced),
        "forward-backward": (
            computing,
            rest if computing is None else f"forward pass, backward pass and optimizer, {forward}",
        ),
        "gradient-sharing": (None, untraced),
        "device-to-host": (None, untraced),
        "output-processing": (None, rest),
        "storage": (None, rest),
    }
    return tuple(StageShare(stage=stage, ratio=shares[stage][0], basis=shares[stage][1]) for stage in STAGES)


def _untraced(view: SessionView) -> str:
    """Why what only an op trace shows was not measured, if there is none."""
    return f"not measured: {job_framework.untraced(view) or 'needs an op trace'}"


def _on_device(trace: OpView | None, parts: tuple[str, ...], what: str, untraced: str = "") -> tuple[float | None, str]:
    """A share that only the work of a device shows; ``untraced``: why it is not known without an op trace."""
    if trace is None:
        return None, untraced
    if trace.device < 0:
        return None, "not measured: the op trace contains no device work"
    return trace.breakdown.ratio(*parts), f"{what} while no kernel runs; {_traced(trace)}"


def _fetching(anatomy: Anatomy, trace: OpView | None) -> tuple[float, str]:
    """Waits of the host for a tensor, or the copies from a traced device if they are longer: inside a compiled call
    nothing in Python waits for them.
    """
    waits = _of_stage(anatomy, "device-to-host")
    copies, how = _on_device(trace, step_parts.FROM_DEVICE, "copies from device to host")
    if copies is not None and copies > waits:
        return copies, how
    return waits, "host waits of at least 20 us for a tensor"


def _exchange(trace: OpView | None, untraced: str = "") -> tuple[float | None, str]:
    """Communication between devices, or between hosts if they run the ops and the trace shows any."""
    ratio = trace.breakdown.ratio("collective") if trace is not None and trace.device < 0 else 0.0
    if trace is None or not ratio:
        return _on_device(trace, ("collective",), "communication between devices", untraced)
    return ratio, f"collectives and transfers between hosts while no op runs; {_traced(trace)}"


def _traced(trace: OpView) -> str:
    count = len(trace.periods)
    return f"from {count} traced step{'' if count == 1 else 's'}"


_COMPUTE = (
    "device-compute",
    "copy-on-device",
    "device-gap",
    "host-python",
    "host-compute",
    "device-wait",
    "launch",
    "runtime",
    "scheduling",
)
_AFTER = ("evaluation", *components_of("output-processing"))


def _of_trace(trace: OpView) -> tuple[StageShare, ...]:
    """Shares by the parts of the traced steps, the only measurement available."""
    split, whose = trace.breakdown, _traced(trace)
    made = stages.of_tree(traced_stages.as_model(trace.pipeline)) if trace.pipeline is not None else ()
    wait, (read, why) = split.ratio("input-wait"), _read_share(made)
    shares: dict[PipelineStage, tuple[float | None, str]] = {
        "raw-input": (None, f"included in preprocessing: {why}") if read is None else (wait * read, f"{why}, {whose}"),
        "preprocessing": (wait * (1.0 - (read or 0.0)), f"waits for the next batch, {whose}"),
        "host-to-device": _on_device(trace, step_parts.TO_DEVICE, "copies from host to device"),
        "forward-backward": (split.ratio(*_COMPUTE), f"device and host work for the step, {whose}"),
        "gradient-sharing": _exchange(trace),
        "device-to-host": _on_device(trace, step_parts.FROM_DEVICE, "copies from device to host"),
        "output-processing": (split.ratio(*_AFTER), f"Python between the framework's calls, {whose}"),
        "storage": (None, "not measured: in a trace, saving looks like other Python"),
    }
    idle = split.ratio(*components_with(Trait.PERHAPS_WAIT))
    if loop_python.hides_waits(trace) and idle >= MIN_IDLE:
        unknown = f"not measured: no op runs {format_ratio(idle)} of the time, and the trace does not show why"
        shares |= dict.fromkeys(("raw-input", "preprocessing", "output-processing"), (None, unknown))
    return tuple(StageShare(stage=stage, ratio=shares[stage][0], basis=shares[stage][1]) for stage in STAGES)


def _input(view: SessionView, anatomy: Anatomy, feeding: float) -> list[tuple[PipelineStage, float | None, str]]:
    """Raw input and preprocessing: the wait, split by the self times of the stages that set the pace."""
    if view.get(hidden_wait.build):
        unread = view.pipeline.why_unread(view.frameworks) if view.pipeline is not None else "no input was seen"
        why = f"not measured: {unread}; an op trace shows it"
        return [("raw-input", None, why), ("preprocessing", None, why)]
    made = view.pipeline.stages if view.pipeline else ()
    wait = anatomy.ratio("input-wait")
    how = "tf.data's live model" if anatomy.compiled_wait_ns else "time inside next()"
    loop = "Python in the loop that makes the batch, from stack samples"
    basis = f"{how}, and {loop}" if feeding else how
    read, why = _read_share(made)
    if read is None:
        return [("raw-input", None, f"included in preprocessing: {why}"), ("preprocessing", wait + feeding, basis)]
    rest = wait * (1.0 - read) + feeding
    return [
        ("raw-input", wait * read, f"{how}; {why}"),
        ("preprocessing", rest, f"{basis}; {_work(made, reads=False)}"),
    ]


def _read_share(made: Sequence[Stage]) -> tuple[float | None, str]:
    """Share of the files' reading in the time that the pipeline takes for a batch, and what says so.

    Stages of the limiting stretch run one after the other: their self times divide the wait. None: reading cannot be
    separated from what else a stage does.
    """
    if not made:
        return None, "there is no model of the pipeline"
    if not any(stage.reads for stage in made):
        if not any(stage.family in _WITH_CODE for stage in made):
            return 0.0, "no stage reads files: the data are in memory"
        return None, "no stage of the pipeline only reads files"
    limiting = stages.limiting(made)
    whole = sum(stage.latency_ns for stage in limiting)
    mine = sum(stage.latency_ns for stage in limiting if stage.reads)
    return mine / whole if whole > 0 else 0.0, _work(made, reads=True)


_WITH_CODE = frozenset({"Map", "MapAndBatch", "FlatMap", "Interleave", "Filter", "Generator"})
"""Stages that run functions, which may read files themselves."""


def _work(made: Sequence[Stage], *, reads: bool) -> str:
    """What the stages need for a batch: ``TFRecord 3.70 ms a batch``."""
    mine = sorted((s for s in made if s.reads is reads), key=lambda s: -s.latency_ns)
    times = [f"{s.name} {format_ns(s.latency_ns)}" for s in mine if s.latency_ns >= MIN_SHOWN_NS][:MAX_SHOWN]
    return f"{', '.join(times) or 'hardly any work'} a batch"


def _between_ratios(view: SessionView) -> tuple[float, float]:
    """Shares of the step that Python between the calls spends on making input and on model ops."""
    if view.anatomy is None:
        return 0.0, 0.0
    roles = [(spot, statement_role.build(view, spot)) for spot in view.hot_spots("other-python")]
    feeding = [(spot.samples, spot.ratio) for spot, role in roles if role == "feeds"]
    carried = [(spot.samples, spot.ratio * spot.tensorflow_ratio) for spot, role in roles if role == "carries"]
    shares = [
        min(1.0, sum(ratio for _, ratio in part)) if sum(count for count, _ in part) >= MIN_SAMPLES else 0.0
        for part in (feeding, carried)
    ]
    other = view.anatomy.ratio("other-python")
    return other * shares[0], other * shares[1]


def _of_stage(anatomy: Anatomy, stage: PipelineStage) -> float:
    return sum(anatomy.ratio(component) for component in components_of(stage))
