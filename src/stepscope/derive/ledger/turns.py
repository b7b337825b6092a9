"""Turns: repetitions that hold many steps each, such as a fold, a trial, a prompt, or an epoch of the user's own loop.

Calls of a loop of Keras (``fit``, ``predict``) from one line are turns: one lasts from its call to the next. So are the
repetitions of a loop of the user's code around the loop that makes the steps: stack samples in the pauses between steps
lie within the outer loop and not in the inner one. Of several such loops the outermost that repeats is taken, since it
holds the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepscope.derive.ledger import own_steps, pauses
from stepscope.derive.numeric import intervals
from stepscope.derive.python import loop_source, stack_samples
from stepscope.derive.steps.steps import names_of
from stepscope.wire.kinds import Flag, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stepscope.derive.ledger.own_steps import OwnSteps
    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.derive.python.loop_source import SourceLoop
    from stepscope.derive.python.stack_samples import Sample, Spot
    from stepscope.derive.steps.steps import Steps
    from stepscope.model.log.events import Name
    from stepscope.tables.records import I64

    Source = Callable[[str], str | None]

MIN_TURNS = 3
"""Fewer are phases of a program (a warm-up and a fine-tuning), not a loop."""
SURELY_SEEN = 4
"""Looks, in gaps, of which one lies wholly in a pause of this length, though a busy machine delays them."""


class ThreadTurns(Struct, frozen=True, kw_only=True):
    """The turns of the steps' thread."""

    count: int
    """All that are known, the last one included."""
    exact: bool = True
    """Whether there are no more: in gaps a short pause between two turns is not always seen."""
    starts: I64
    """Marks, one in each turn: calls of Keras, or what follows the inner loop. From one to the next is a whole turn.
    Two at least."""
    file: str
    line: int
    """Of the call, or where the loop begins."""
    function: str
    makers: frozenset[tuple[str, str]]
    """(file, function) of the user's functions that make the steps: the loop's own one, and those known within it."""
    call: str = ""
    """The loop of Keras that each calls: fit, predict ...; "" for repetitions of a loop of the user's code."""

    @property
    def whole(self) -> int:
        """Number of whole turns between the marks."""
        return len(self.starts) - 1

    @property
    def window(self) -> Intervals:
        """From the first mark to the last."""
        return self.starts[:1], self.starts[-1:]


class _Around(Struct, frozen=True, kw_only=True):
    """A loop around the steps."""

    depth: int
    """Of its function among the user's frames on the stacks of the steps, from the root."""
    loop: SourceLoop


def find(steps: Steps, source: Source) -> ThreadTurns | None:
    """The turns; None where nothing around the steps is known to repeat."""
    own = own_steps.of(steps)
    if len(own_steps.holding_loops(steps)[0]):
        return _of_calls(steps)
    return _of_loops(own, source)


def _of_calls(steps: Steps) -> ThreadTurns | None:
    """Calls of a loop of Keras at one line."""
    records, names = steps.worker.records, names_of(steps.worker)
    loops = own_steps.holding_loops(steps)
    mine = (records.kind == Kind.LOOP) & (records.thread == steps.thread) & ((records.flags & Flag.NESTED) == 0)
    starts = records.start_ns[mine]
    held = intervals.overlapping(loops, starts, starts + 1)
    lines: dict[tuple[str, int, str, str], list[int]] = {}
    for at, number in zip(starts[held].tolist(), records.name[mine][held].tolist(), strict=True):
        name = names.get(number)
        if name is not None and name.call_file:
            key = name.call_file, name.call_line, name.call_function, name.role
            lines.setdefault(key, []).append(at)
    begun = max(lines.values(), key=len, default=[])
    if len(begun) < MIN_TURNS:
        return None
    file, line, function, role = next(key for key, starts in lines.items() if starts is begun)
    return ThreadTurns(
        count=len(begun),
        starts=np.array(begun),
        file=file,
        line=line,
        function=function,
        call=role,
        makers=frozenset({(file, function)}),
    )


def _of_loops(own: OwnSteps, source: Source) -> ThreadTurns | None:
    """Repetitions of the outermost loop around that of the steps, of which there are enough."""
    steps = own.steps
    sampled = stack_samples.thread_samples(steps.worker, [steps.thread], gaps=True)
    every = [sample for sample in sampled if sample.weight_ns and sample.at > steps.starts[0]]
    chain = _chain(every, own)
    inner, *outer = _loops_around(chain, source) or (None,)
    spans = pauses.of(own)
    if inner is None or not outer or len(spans[0]) < MIN_TURNS - 1:
        return None
    at = np.array([sample.at for sample in every], np.int64)
    paused = intervals.overlapping(spans, at - 1, at)
    rest = [sample for sample, hit in zip(every, paused.tolist(), strict=True) if hit]
    for around, below in reversed(list(zip(outer, (inner, *outer), strict=False))):
        marks = [s.at for s in rest if _within(s, chain, around) and not _repeats(s, chain, below)]
        numbers = np.unique(np.searchsorted(spans[0], np.array(marks, np.int64) - 1, side="right") - 1)
        if len(numbers) >= MIN_TURNS - 1:
            top = chain[around.depth]
            hidden = len(steps.worker.gaps) > 0
            usual = float(np.median((spans[1] - spans[0])[numbers]))
            return ThreadTurns(
                count=len(numbers) + 1,
                exact=not hidden or usual >= SURELY_SEEN * pauses.LOOK_NS,
                starts=spans[0][numbers],
                file=top.file,
                line=around.loop.first,
                function=top.function,
                makers=frozenset((spot.file, spot.function) for spot in chain[around.depth :]),
            )
    return None


def _chain(every: Sequence[Sample], own: OwnSteps) -> tuple[Spot, ...]:
    """The user's frames, root first, on most stacks of the steps' calls, else of the steps: down to the function that
    makes the step, as what it calls besides is no part of the way there.
    """
    steps = own.steps
    found: dict[tuple[Spot, ...], int] = {}
    for ends in (np.minimum(steps.call_ends, own.ends), own.ends):
        calls = intervals.merge(steps.starts[own.seen], ends[own.seen])
        at = np.array([sample.at for sample in every], np.int64)
        inside = intervals.overlapping(calls, at, at + 1)
        for sample, hit in zip(every, inside.tolist(), strict=True):
            if hit and (frames := _to_call(_users(sample), steps.call)):
                found[frames] = found.get(frames, 0) + 1
        if found:
            break
    return max(found, key=lambda frames: found[frames], default=())


def _to_call(frames: tuple[Spot, ...], call: Name | None) -> tuple[Spot, ...]:
    """The frames down to the one that makes a call, at the call's line; all, where it is not among them."""
    at = (call.call_file, call.call_function) if call is not None and call.call_line else None
    depth = max((n for n, frame in enumerate(frames) if (frame.file, frame.function) == at), default=-1)
    if call is None or depth < 0:
        return frames
    return (*frames[:depth], replace(frames[depth], line=call.call_line))


def _users(sample: Sample) -> tuple[Spot, ...]:
    return tuple(frame for frame in sample.frames if frame.own)


def _loops_around(chain: Sequence[Spot], source: Source) -> list[_Around]:
    """The loops that run while a step's call does, innermost first; that of the steps is the first."""
    found = []
    for depth in range(len(chain) - 1, -1, -1):
        text = source(chain[depth].file)
        loops = loop_source.loops_around(text, chain[depth].line) if text else ()
        found += [_Around(depth=depth, loop=loop) for loop in loops]
    return found


def _within(sample: Sample, chain: Sequence[Spot], around: _Around) -> bool:
    """Whether a sample was taken during a loop: its function was reached as from the steps."""
    frames, depth = _users(sample), around.depth
    if len(frames) <= depth or frames[:depth] != tuple(chain[:depth]):
        return False
    here, step = frames[depth], chain[depth]
    same = (here.file, here.function) == (step.file, step.function)
    return same and around.loop.first <= here.line <= around.loop.last


def _repeats(sample: Sample, chain: Sequence[Spot], around: _Around) -> bool:
    """Whether a sample was taken in the body of a loop, not in what it loops over, which is made once."""
    return _within(sample, chain, around) and _users(sample)[around.depth].line > around.loop.header
