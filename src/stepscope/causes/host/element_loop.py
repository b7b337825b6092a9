"""The loop over elements that runs most ops of an eager step.

Some loop of the user's code runs ops for one element after the other, and no turn needs the result of another: the
same ops could work on whole tensors. A look at eager code says how often a step goes round it.

Serves eager_step.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.host import eager_looks
from stepscope.derive.python import eager, element_loops, stack_samples

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.derive.python.eager_looks import EagerLooks
    from stepscope.derive.python.element_loops import LoopLines
    from stepscope.derive.python.stack_samples import Sample, Spot
    from stepscope.derive.view import SessionView
    from stepscope.model.log.eager import EagerOp

MIN_TURNS = 30
"""Turns a step from which a loop is one over elements; loops over layers, heads and parts of a batch have fewer."""
MAX_OPS = 40
"""Ops of a turn; a turn of more works on something larger than an element."""
TAPE = "/eager/backprop.py"
"""TensorFlow code that computes gradients."""
UPDATES = frozenset({"apply", "apply_gradients", "minimize"})
"""Methods of optimizers: a loop that changes the weights in each turn goes over batches, not over elements."""
MAX_PER_TURN = 4
"""Ops of one type in each turn: the rarest type of those within this factor says how many turns there are."""


_Key = tuple[str, str, int, int]
"""File, function, first and last line of a loop."""
_Known = dict[tuple[str, str, int], tuple[_Key, ...] | None]


class ElementLoop(Struct, frozen=True, kw_only=True):
    """A loop over elements."""

    file: str
    function: str
    first: int
    last: int
    """Its first and last line."""
    ratio: float
    """Share of the steady samples that are eager and below it, with its part of the gradients, by the number of ops."""
    turns: float
    """In a step."""
    ops: float
    """In a turn."""


def build(view: SessionView) -> ElementLoop | None:
    """The loop below which most eager time is; None if none has enough turns, or no look says so."""
    looks, steps = view.get(eager_looks.build), view.steps
    if looks is None or steps is None or not steps.steady_count:
        return None
    whole = stack_samples.weight_of(view.samples)
    weights: Counter[_Key] = Counter()
    below: defaultdict[_Key, set[tuple[str, str]]] = defaultdict(set)
    known: _Known = {}
    over_steps = {key for s in view.samples if _updates(s) for key in _loops(view, s, known)}
    tape = [s for s in view.samples if eager.is_eager(s) and any(f.file.endswith(TAPE) for f in s.below_user())]
    tapes = {(spot.file, spot.line) for s in tape if (spot := s.culprit) is not None}
    for sample in view.samples:
        if eager.is_eager(sample):
            for key in set(_loops(view, sample, known)) - over_steps:
                weights[key] += sample.weight_ns
                below[key] |= _callees(sample, key)
    step_ns = steps.steady_ns / steps.steady_count
    forward = sum(_counts(looks, lambda row: (row.file, row.line) not in tapes))
    found = []
    for key, weight in weights.items():
        counts = _counts(looks, partial(_below, key=key, below=below[key]))
        turns = min((count for count in counts if 0 < count * MAX_PER_TURN >= max(counts)), default=0.0)
        if turns:
            gradients = stack_samples.weight_of(tape) * min(1.0, sum(counts) / forward) if forward else 0.0
            found.append(
                ElementLoop(
                    file=key[0],
                    function=key[1],
                    first=key[2],
                    last=key[3],
                    ratio=(weight + gradients) / whole,
                    turns=turns * step_ns / looks.ns,
                    ops=sum(counts) / turns,
                )
            )
    large = [loop for loop in found if loop.turns >= MIN_TURNS and loop.ops <= MAX_OPS]
    return max(large, key=lambda loop: (loop.ratio, loop.last - loop.first), default=None)


def _updates(sample: Sample) -> bool:
    return any(
        frame.function.rpartition(".")[2] in UPDATES and "optimizer" in frame.file for frame in sample.below_user()
    )


def _loops(view: SessionView, sample: Sample, known: _Known) -> tuple[_Key, ...]:
    """The loops around the innermost frame on a stack that stands in one, but those that make the steps.

    ``known``: what was found at other frames; it is extended.
    """
    for frame in reversed(sample.frames):
        if not frame.own:
            continue
        at = frame.file, frame.function, frame.line
        if at not in known:
            known[at] = _loops_at(view, frame)
        found = known[at]
        if found is not None:
            return found
        if (frame.file, frame.function) == view.loop:
            return ()  # what calls the function that makes the step makes steps
    return ()


def _loops_at(view: SessionView, frame: Spot) -> tuple[_Key, ...] | None:
    """None if the frame stands in no loop of independent turns."""
    source = view.source_of(frame.file)
    loops = element_loops.around(source, frame.line) if source is not None else ()
    mine = tuple(
        (frame.file, frame.function, loop.first, loop.last)
        for loop in loops
        if not _makes_steps(view, frame, loop, source or "")
    )
    return mine if loops else None


def _makes_steps(view: SessionView, frame: Spot, loop: LoopLines, source: str) -> bool:
    """Whether the step's call stands in a loop: where it was first called from, or by the name of what is called."""
    call = view.steps.call if view.steps is not None else None
    if call is None:
        return False
    if call.call_file:
        return call.call_file == frame.file and loop.first <= call.call_line <= loop.last
    return element_loops.calls(source, loop, call.text.rpartition(".")[2])


def _callees(sample: Sample, key: _Key) -> set[tuple[str, str]]:
    """The user's functions below a loop on a stack."""
    own = [f for f in sample.frames if f.own]
    depth = next((i for i, f in enumerate(own) if (f.file, f.function) == key[:2]), len(own))
    return {(f.file, f.function) for f in own[depth + 1 :]}


def _below(row: EagerOp, key: _Key, below: set[tuple[str, str]]) -> bool:
    """Whether ops ran in a loop, or in a function that it calls."""
    return (row.file == key[0] and key[2] <= row.line <= key[3]) or (row.file, row.function) in below


def _counts(looks: EagerLooks, wanted: Callable[[EagerOp], bool]) -> list[float]:
    """How many ops of each type are wanted, in all looks. Those that have a line stand for all of their type."""
    by_type: defaultdict[str, list[EagerOp]] = defaultdict(list)
    for row in looks.rows:
        by_type[row.op].append(row)
    found = []
    for rows in by_type.values():
        known = sum(row.count for row in rows if row.line)
        mine = sum(row.count for row in rows if row.line and wanted(row))
        found.append(sum(row.count for row in rows) * mine / known if known else 0.0)
    return found
