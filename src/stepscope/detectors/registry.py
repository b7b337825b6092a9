"""All detectors, by hand, sorted by code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stepscope.detectors import (
    blocking_save,
    eager_step,
    evaluation_in_callback,
    input_stage,
    predict_in_loop,
    python_generator,
    python_in_pipeline,
    python_input_in_loop,
    retracing,
    slow_callback,
    slow_python,
    starved_cpu,
    unrolled_loop,
)

if TYPE_CHECKING:
    from stepscope.detectors.base import Detector

ALL: tuple[Detector[Any], ...] = (
    starved_cpu.DETECTOR,
    retracing.DETECTOR,
    unrolled_loop.DETECTOR,
    slow_python.DETECTOR,
    eager_step.DETECTOR,
    predict_in_loop.DETECTOR,
    slow_callback.DETECTOR,
    evaluation_in_callback.DETECTOR,
    blocking_save.DETECTOR,
    input_stage.DETECTOR,
    python_in_pipeline.DETECTOR,
    python_generator.DETECTOR,
    python_input_in_loop.DETECTOR,
)
