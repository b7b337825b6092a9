"""Where user code reads the input, and how many samples a second the steps take of it.

Serves detectors of network and disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.causes.input import input_cause

if TYPE_CHECKING:
    from stepscope.derive.steps_view import StepsView
    from stepscope.tables.place import Place


def samples_per_s(view: StepsView) -> float:
    """Throughput of the steady steps; 0 where samples are not known."""
    steps = view.steps
    if steps.steady_ns == 0:
        return 0.0
    return max(0.0, float(steps.samples[steps.steady].sum()) / (steps.steady_ns / 1e9))


def places(view: StepsView) -> tuple[Place, ...]:
    """The user's Python in the pipeline, and where the source of the dataset was made."""
    cause, pipe = view.get(input_cause.build), view.pipeline
    found: list[Place] = []
    if cause is not None and cause.function is not None and cause.function.name.file:
        name = cause.function.name
        found.append(view.place(name.file, name.line, name.end_line, name.text))
    made = [d for d in pipe.datasets if d.file]
    found += [p for d in made[-1:] if (p := view.dataset_place(d)) is not None]
    return tuple(dict.fromkeys(found))
