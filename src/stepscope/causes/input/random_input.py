"""Whether what the input makes of an element is drawn anew each time: what is kept then is no augmentation any more.

By the user's sources, and by the graphs of tf.data's functions. None is no promise that nothing is drawn.

Serves INP001 to INP004, INP010, GRF003 and GEN001.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from stepscope.derive.input import pipeline_python
from stepscope.derive.python import random_draws
from stepscope.derive.python.random_draws import Draw
from stepscope.model.log.events import Traced

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepscope.derive.graph.index import GraphIndex
    from stepscope.derive.input.pipeline_python import PythonFunction
    from stepscope.derive.python.stack_samples import Sample, Spot
    from stepscope.derive.view import SessionView
    from stepscope.model.log.events import DatasetMade

_OPS = (
    *("Random", "Multinomial", "StatefulUniform", "StatefulStandardNormal", "StatefulTruncatedNormal"),
    *("TruncatedNormal", "SampleDistorted", "StatelessMultinomial", "RngReadAndSkip"),
)
"""Parts of the types of ops that draw. Source: TensorFlow's op registry."""
_NO_DRAW = ("RandomDataset", "StatelessRandomGet")


LEAST = 0.1
"""Share of a function's samples that are work before what it draws, from which that is worth keeping."""
MIN_SAMPLES = 20
"""Fewer do not say that there is none: the source does then."""


def of_function(view: SessionView, function: PythonFunction) -> Draw | None:
    """Of user Python that the pipeline runs. Where it was sampled, samples say whether it works before."""
    name, wraps = function.name, function.wraps
    file, line = (name.file, name.line) if wraps is None else (wraps.file, wraps.lines[0])
    draw = _in_source(view, file, line)
    if draw is None or view.steps is None:
        return draw
    sides = [side for sample in pipeline_python.samples(view.steps, function) if (side := _side(draw, file, sample))]
    if len(sides) < MIN_SAMPLES:
        return draw
    return replace(draw, after_work=sides.count("before") >= LEAST * len(sides))


def _side(draw: Draw, file: str, sample: Sample) -> str:
    """Whether a sample lies ``before`` what is drawn, or ``after`` its beginning; "" outside of these functions."""
    for turn in draw.path:
        lines = [f.line for f in sample.frames if f.file == file and turn.first <= f.line <= turn.last]
        if lines:
            return "before" if lines[-1] < turn.line else "after"
    return ""


def at(view: SessionView, spot: Spot) -> Draw | None:
    """Of the function around a line."""
    return _in_source(view, spot.file, spot.line)


def of_datasets(view: SessionView, made: Iterable[DatasetMade]) -> Draw | None:
    """Of the functions that tf.data's transformations were given."""
    for dataset in made:
        if not dataset.fn_file:
            continue
        draw = _in_source(view, dataset.fn_file, dataset.fn_line)
        if draw is not None:
            return draw
        if (op := _in_graphs(view, dataset)) is not None:
            source = view.source_of(dataset.fn_file) or ""
            return replace(op, after_work=random_draws.works_before(source, dataset.fn_line, op.line))
    return None


def _in_source(view: SessionView, file: str, line: int) -> Draw | None:
    source = view.source_of(file) if file else None
    return random_draws.of_function(source, line) if source is not None else None


def _in_graphs(view: SessionView, dataset: DatasetMade) -> Draw | None:
    """An op that draws in a graph of this very function, by where it is defined."""
    index, worker = view.graphs, view.worker
    if index is None or worker is None:
        return None
    mine = {t.id for t in worker.all(Traced) if (t.file, t.line) == (dataset.fn_file, dataset.fn_line)}
    for graph in index.graphs.values():
        if graph.of in mine and index.of_data(graph.id):
            draw = next((draw for row in index.inside(graph.id) if (draw := _op(index, row)) is not None), None)
            if draw is not None:
                return draw
    return None


def draws(kind: str) -> bool:
    """Whether ops of a type draw."""
    return any(part in kind for part in _OPS) and not kind.startswith(_NO_DRAW)


def _op(index: GraphIndex, row: int) -> Draw | None:
    kind = index.table.type_of(row)
    return Draw(kind, int(index.table.line[row])) if draws(kind) else None
