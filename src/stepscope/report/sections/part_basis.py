"""How a part of a step of PyTorch, or of Keras on it, was measured, and which parts it could not separate, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.causes.system import gpu
from stepscope.derive import steps_view
from stepscope.derive.python import keras_parts
from stepscope.derive.steps.sampled_parts import MIN_SAMPLES
from stepscope.model.report.components import REST, Trait, components_with
from stepscope.tables.units import format_ratio
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.derive.python.keras_parts import KerasParts
    from stepscope.derive.steps.sampled_parts import SampledParts
    from stepscope.derive.steps_view import StepsView
    from stepscope.derive.view import SessionView
    from stepscope.model.report.components import ComponentName

ON_HOST = "time on the host, to queue work for the device or to wait for it"


def of(view: SessionView, component: ComponentName) -> str:
    """What there is to say of a part; "" of steps that PyTorch makes no part of, and where its records say all."""
    steps, anatomy = steps_view.of(view), view.anatomy
    if anatomy is not None and component == "call":
        return _of_keras(keras_parts.build(anatomy))
    if steps is None or anatomy is None or anatomy.sampled is None:
        return ""
    if component == REST:
        return "; ".join(_missing(steps, anatomy.sampled))
    how = [f"from {anatomy.sampled.samples:,} stack samples"] if component == "forward" else []
    return "; ".join([*how, *([ON_HOST] if component in components_with(Trait.TORCH) and uses_device(view) else [])])


def _of_keras(parts: KerasParts | None) -> str:
    """What Keras' step function does where it is Python, on PyTorch."""
    if parts is None:
        return ""
    told = [f"of it {format_ratio(parts.backward_ratio)} in the backward pass"]
    if parts.forward_ratio is None or parts.optimizer_ratio is None:
        return f"{told[0]}; {parts.samples:,} stack samples are too few for more, {MIN_SAMPLES} are needed"
    rest = max(0.0, 1.0 - parts.backward_ratio - parts.forward_ratio - parts.optimizer_ratio)
    told.append(
        f"{format_ratio(parts.forward_ratio)} in layers, {format_ratio(parts.optimizer_ratio)} in the optimizer"
    )
    told.append(f"{format_ratio(rest)} in the loss, metrics and Keras' own Python")
    line = f"; most of the last at train_step, keras/src/backend/torch/trainer.py:{parts.rest_line}"
    return f"{', '.join(told)} ({parts.samples:,} stack samples){line if parts.rest_line else ''}"


def _missing(view: StepsView, sampled: SampledParts) -> list[str]:
    """Parts that the rest of the step holds, or that the program lacks."""
    count = f"{sampled.samples:,} stack samples"
    found = []
    if sampled.forward_ratio is None:
        found.append(f"with the forward pass: {count} are too few to separate it, {MIN_SAMPLES} are needed")
    elif not sampled.forward_ratio:
        found.append(f"none of {count} is in a call of a Module: the program has no forward pass that is seen")
    if not len(view.calls(Kind.AUTOGRAD)):
        found.append("with the backward pass: no run of the autograd engine was recorded")
    return found


def uses_device(view: SessionView) -> bool:
    """Whether the job computes on a GPU: what its thread does is then to queue work, or to wait."""
    steps = steps_view.of(view)
    return steps is not None and any(one.job_reserved_bytes > 0 or one.busy_ratio > 0 for one in steps.get(gpu.build))
