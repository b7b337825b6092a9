"""The trials that measure a finding's remedy without a change of the code: detector -> interventions.

A trial is written as ``whatif --try`` takes it: NAME or NAME:ARGUMENT (``experiments.interventions``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.tables.place import is_cell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.tables.findings import Finding
    from stepscope.tables.place import Place

STUB, GRAPH_FUNCTION = "stub", "graph-function"
"""Interventions on the function at a finding's place: their argument is the place."""
LINES = "without-lines"
"""Intervention that leaves out what lines make in a compiled function: its argument is the finding's lines."""
INNER_LINE = "without-inner-line"
"""The same for the line of a finding that lies in a function which another of its places is all of."""
ONE_CALLBACK = "without-callback"
"""Intervention that leaves one callback out: its argument is the class."""
MAP = "parallel-map"
"""Intervention on sequential maps of the pipeline, and the remedy of findings that saw one: without it there may be
none."""
BATCH = "batch"
"""Intervention whose argument takes the finding's batch to the size that its gain is modelled for."""
WANTED_BATCH, MOST_TIMES = 128, 32
"""That size in samples, and the most times the batch. Source: detectors/config/small_batch.py."""
OF_CODE: dict[str, tuple[str, ...]] = {
    "CFG002": (BATCH, "steps-per-execution:10"),
    "CFG003": ("threads-default", "private-threads"),
    "CFG004": ("no-validation",),
    "CFG005": ("checks-off",),
    "GEN001": (LINES,),
    "GRF002": (LINES,),
    "GRF003": ("graph",),
    "GRF005": (LINES, "xla-on"),
    "GRF006": (STUB,),
    "GRF009": ("float32", LINES),
    "GRF010": ("xla-off",),
    "GRF024": ("xla-off",),
    "GRF011": (LINES,),
    "GRF012": (LINES,),
    "GRF013": (LINES,),
    "GRF014": (LINES,),
    "GRF015": ("float32",),
    "GRF016": (LINES,),
    "GRF017": (LINES,),
    "GRF018": ("no-metrics",),
    "GRF019": (LINES,),
    "GRF020": (LINES,),
    "GRF021": (LINES,),
    "GRF022": ("small-kernels",),
    "HST001": (STUB,),
    "HST002": (GRAPH_FUNCTION,),
    "HST004": (ONE_CALLBACK,),
    "HST005": (ONE_CALLBACK,),
    "HST006": ("no-checkpoints",),
    "HST010": ("no-summaries",),
    "HST013": ("feeds-kept",),
    "INP001": (MAP, "cache-input"),
    "INP002": (STUB, MAP),
    "INP003": (STUB, "compute-only"),
    "INP004": (STUB, "compute-only"),
    "INP006": (MAP,),
    "INP007": (MAP, "compute-only"),
    "INP012": (INNER_LINE, "compute-only", "cache-input"),
    "INP014": ("compute-only",),
    "NET001": ("prefetch", "compute-only"),
    "NET002": ("compute-only", "cache-input"),
    "TRD001": (STUB,),
    "GEN014": (STUB,),
    "GEN002": ("steps-per-execution:10", "batch:4"),
}
"""Detectors not listed have no trial."""
OF_REMEDY: dict[str, tuple[str, ...]] = {
    "look-at-native-stacks": (),
    "make-function-once": ("functions-reused",),
    "more-cores": ("cache-input", "compute-only"),
    "relax-shapes": ("reduce-retracing",),
    "summaries-less-often": ("no-summaries",),
    "vectorise-loop": (STUB,),
}
"""Remedies whose trial is another than that of their detector, or whose detector has none for all its causes; () if
nothing can be tried."""


def trials_of(finding: Finding) -> tuple[str, ...]:
    """The trials of a finding, the most telling first; () if there are none."""
    first = finding.remedies[0].id if finding.remedies else ""
    templates = OF_REMEDY[first] if first in OF_REMEDY else OF_CODE.get(finding.code, ())
    maps = any(remedy.id == MAP for remedy in finding.remedies)
    found = [filled(template, finding) for template in templates if template != MAP or maps]
    return tuple(trial for trial in found if trial)


def filled(template: str, finding: Finding) -> str:
    """A trial with the argument that a finding gives; "" if it gives none."""
    place = finding.where[0] if finding.where else None
    if template == LINES:
        return without(finding.where)
    if template == INNER_LINE:
        return without([one for one in finding.where if any(_inside(one, other) for other in finding.where)][:1])
    if template in {STUB, GRAPH_FUNCTION}:
        return at(template, place) if place is not None else ""
    if template == BATCH:
        size = next((one.value for one in finding.evidence if one.metric == BATCH), 0.0)
        return f"{BATCH}:{_times(size)}" if size else f"{BATCH}:4"
    if template == ONE_CALLBACK:
        owner = (place.function or "").rpartition(".")[0].rpartition(".")[2] if place is not None else ""
        return f"{ONE_CALLBACK}:{owner}" if owner else "no-callbacks"
    return template


def at(name: str, place: Place) -> str:
    """The trial of that name of the function at a place; "" if no trial finds it."""
    return f"{name}:{place.file}:{place.line}" if _in_file(place) else ""


def _in_file(place: Place) -> bool:
    """Whether a trial finds the place: not in a cell of a notebook, which is no file of another run."""
    return bool(place.file) and place.cell is None and not is_cell(place.file)


def _inside(place: Place, other: Place) -> bool:
    """Whether a place is a part of another one, which is longer."""
    last, end = place.end_line or place.line, other.end_line or other.line
    within = place.file == other.file and other.line <= place.line and last <= end
    return within and last - place.line < end - other.line


def _times(size: float) -> int:
    """Times a batch of so many samples for the wanted one, a power of two."""
    most = max(2.0, min(MOST_TIMES, WANTED_BATCH / size))
    return 1 << int(most).bit_length() - 1


def without(where: Sequence[Place]) -> str:
    """The trial that leaves out the first place, with the lines between it and others of its function; "" if none."""
    first = where[0] if where else None
    if first is None or not _in_file(first):
        return ""
    lines = [
        line
        for place in where
        if (place.file, place.function) == (first.file, first.function) and (place is first or first.function)
        for line in (place.line, place.end_line or place.line)
    ]
    low, high = min(lines), max(lines)
    return f"{LINES}:{first.file}:{low}{f'-{high}' if high > low else ''}"
