"""What the input could reach, and the edits that reach it, each with the rate after it.

The model is ``derive.input.bound``; what a stage does now is ``input_work``. Edits are tried on the model, the one that
gains most first, until none gains. An edit is proposed only where the program's constructions allow it: a cache only
over what is the same in each pass, below any repeat, if an epoch of it fits into memory; a stage in parallel only if it
runs no user Python; a filter before a map only with the note that it must not need the map's output.

Not proposed, because counters do not say what they would bring: other functions, other formats of files, more shards.

Serves the report's input bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from stepscope.causes.input import cut_caches, input_work, random_input
from stepscope.derive.input import bound
from stepscope.derive.steps import epochs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stepscope.causes.input.input_work import InputWork
    from stepscope.derive.input.bound import Layout, Pace
    from stepscope.derive.input.stages import Stage
    from stepscope.derive.steps_view import StepsView
    from stepscope.model.log.events import DatasetMade

EditKind = Literal["parallel", "prefetch", "earlier", "batch-first", "cache", "take-first"]

MAX_MEMORY = 0.5
"""Share of the host's memory that a cache may take: the job needs the rest."""
MAX_LEFT = 0.9
"""A stage that leaves more of its elements gains nothing before another."""
THROWING = frozenset({"Filter", "Shard", "Skip", "Take"})
CALLS_RATIO = 2.0
"""A function takes mostly the time of its call if it takes at most this times as long."""
MAKING = frozenset({"Map", "MapAndBatch", "Filter", "Interleave", "FlatMap", "Generator", "Csv"})
"""Stages worth a cache, with readers of files."""
REPEATS = "Repeat"
SHUFFLES = "Shuffle"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceChange:
    """A change of the program's chain of transformations.

    insert: ``text`` as a call after ``made``. move: the call of ``made`` before that of ``other``. keyword: ``text`` as
    a further argument of ``made``. remove: the call of ``made``.
    """

    kind: Literal["insert", "move", "keyword", "remove"]
    made: DatasetMade
    other: DatasetMade | None = None
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One edit, and the pace after it and all before it."""

    kind: EditKind
    text: str
    made: DatasetMade | None
    """Where."""
    changes: tuple[SourceChange, ...]
    after: Pace
    note: str = ""
    """What must be true, or "": nothing."""
    bytes: float = 0.0
    """Memory that it takes."""
    trial: str = ""
    """The intervention of ``whatif`` that tries it; "": none does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputBound:
    """The pipeline as it is and at best. Paces in ns of one batch."""

    work: InputWork
    now_ns: float
    samples: float
    """Of one batch; 0: unknown."""
    edits: tuple[Edit, ...]
    """Without more memory, the first to make first; then the cache, if it fits."""
    best: Pace
    """After all of them."""
    layout: Layout
    """After all of them."""
    factor: float
    """How much slower the job is than its model, as in the paces."""
    without_cache: Pace
    too_large: float = 0.0
    """Bytes of a cache that would help and does not fit; 0: none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    kind: EditKind
    at: frozenset[int]
    """Places of the stages that it changes or spares."""
    text: str
    made: DatasetMade | None
    changes: tuple[SourceChange, ...]
    change: Callable[[Layout], Layout]
    note: str = ""
    bytes: float = 0.0
    trial: str = ""


def build(view: StepsView) -> InputBound | None:
    """None if tf.data's model was not read, or if the workers of a service make the batches: their CPUs are others."""
    work = view.get(input_work.build)
    if work is None or any(stage.served for stage in view.pipeline.stages):
        return None
    without = tuple(_candidates(view, work))
    layout, edits = climb(work.layout, without)
    plain = bound.pace(layout)
    cache, too_large = _cache(view, work)
    if cache is not None:
        layout, edits = climb(work.layout, (*without, cache))
    best = bound.pace(layout)
    factor = _factor(work)
    steps = view.steps
    known = steps.samples[steps.steady & (steps.samples > 0)]
    return InputBound(
        work=work,
        now_ns=work.wall_ns,
        samples=float(known.mean()) / view.pipeline.batches_per_step if len(known) else 0.0,
        edits=tuple(replace(edit, after=_pace(edit.after, factor)) for edit in edits),
        best=_pace(best, factor),
        layout=layout,
        factor=factor,
        without_cache=_pace(plain, factor),
        too_large=too_large,
    )


def climb(layout: Layout, candidates: Sequence[_Candidate]) -> tuple[Layout, list[Edit]]:
    """Make the edit that gains most, again and again; edits that gain only together are tried in pairs."""
    left = list(candidates)
    edits: list[Edit] = []
    while left:
        now = bound.pace(layout).ns
        single = min(left, key=lambda c: bound.pace(c.change(layout)).ns)
        chosen = [single]
        if bound.pace(single.change(layout)).ns * bound.MIN_GAIN > now:
            pairs = [(a, b) for a in left for b in left if a is not b and not _clash(a, b)]
            chosen = list(min(pairs, key=lambda p: bound.pace(p[1].change(p[0].change(layout))).ns, default=()))
            if not chosen or bound.pace(chosen[1].change(chosen[0].change(layout))).ns * bound.MIN_GAIN > now:
                break
        for one in chosen:
            layout = one.change(layout)
            left = [c for c in left if c is not one and not _clash(c, one)]
            edits.append(
                Edit(
                    kind=one.kind,
                    text=one.text,
                    made=one.made,
                    changes=one.changes,
                    after=bound.pace(layout),
                    note=one.note,
                    bytes=one.bytes,
                    trial=one.trial,
                )
            )
    return layout, edits


def _clash(one: _Candidate, other: _Candidate) -> bool:
    """Whether two edits cannot both be made: what a cache spares gains nothing by other edits."""
    return "cache" in {one.kind, other.kind} and bool(one.at & other.at)


def _factor(work: InputWork) -> float:
    """How much slower the job is than the model of it as it is: what others take of the CPUs, and what no stage shows.

    It stays: a bound is what this machine would reach under the same circumstances.
    """
    modelled = bound.pace(work.layout)
    alone = modelled.ns
    return max(1.0, work.wall_ns / alone) if modelled.binds in {"cores", "step"} and alone > 0 else 1.0


def _pace(pace: Pace, factor: float) -> Pace:
    return replace(pace, ns=pace.ns * factor)


def _candidates(view: StepsView, work: InputWork) -> Iterator[_Candidate]:
    """Edits that need no memory."""
    stages = work.stages
    if not work.layout.consumer.overlaps:
        made = next((d for s in stages[:1] for d in s.datasets if d.file), None)
        yield _Candidate(
            kind="prefetch",
            at=frozenset(),
            text="prefetch(tf.data.AUTOTUNE) at the end",
            made=made,
            changes=(SourceChange(kind="insert", made=made, text="prefetch(tf.data.AUTOTUNE)"),) if made else (),
            change=bound.prefetched,
            trial="prefetch",
        )
    for at, stage in enumerate(stages):
        yield from _parallel(work, at, stage)
        yield from _earlier(stages, at)
        yield from _batch_first(view, work, at)
    cut = cut_caches.build(view.pipeline.datasets)
    if cut is not None and _again(view):
        kept = next((i for i, s in enumerate(stages) if s.family == "Cache"), None)
        if kept is not None:
            yield _Candidate(
                kind="take-first",
                at=frozenset({kept}),
                text="take() before cache(): as it is, no pass fills the cache",
                made=cut.take,
                changes=(SourceChange(kind="move", made=cut.take, other=cut.cache),),
                change=lambda layout: bound.cached(layout, kept, read=stages[kept].elements),
            )


def _parallel(work: InputWork, at: int, stage: Stage) -> Iterator[_Candidate]:
    made = next((d for d in stage.datasets if d.file and stage.family.startswith(_family(d))), None)
    blocked = work.layout.stages[at].blocked_ns > 0
    if stage.family not in input_work.ANY or work.layout.stages[at].most > 1 or (work.python and not blocked):
        return
    if stage.family not in {"Map", "MapAndBatch", "Interleave", "Batch"} or made is None:
        return
    yield _Candidate(
        kind="parallel",
        at=frozenset({at}),
        text=f"{method(made)} with num_parallel_calls=tf.data.AUTOTUNE",
        made=made,
        changes=(SourceChange(kind="keyword", made=made, text="num_parallel_calls=tf.data.AUTOTUNE"),),
        change=lambda layout: bound.parallel(layout, at),
        trial="parallel-map" if "Map" in stage.family else "",
    )


def _earlier(stages: Sequence[Stage], at: int) -> Iterator[_Candidate]:
    """A later stage discards much of what a map gives."""
    stage = stages[at]
    if not stage.elements or "Map" not in stage.name or stage.name.startswith("Flat"):
        return
    above = at - 1
    while above >= 0 and stages[above].family in {SHUFFLES, "Prefetch", "Map"} and stages[above].elements:
        above -= 1
    thrower = stages[above] if above >= 0 else None
    if thrower is None or thrower.family not in THROWING:
        return
    left = thrower.elements / stage.elements
    mine, its = _own(stage), _own(thrower)
    if left > MAX_LEFT or mine is None or its is None:
        return
    word = method(its)
    yield _Candidate(
        kind="earlier",
        at=frozenset({at}),
        text=f"{word} before {method(mine)}",
        made=its,
        changes=(SourceChange(kind="move", made=its, other=mine),),
        change=lambda layout: bound.fewer(layout, at, left),
        note=f"if {word} does not need what {method(mine)} makes" if word == "filter" else "",
    )


def _batch_first(view: StepsView, work: InputWork, at: int) -> Iterator[_Candidate]:
    """A function whose time is mostly that of its calls, with one call for a whole batch."""
    stage, mine = work.stages[at], work.layout.stages[at]
    if stage.family not in {"Map", "MapAndBatch"} or stage.elements <= 1 or work.python:
        return
    if mine.cpu_ns > CALLS_RATIO * mine.calls_ns:
        return
    mapped = next((d for d in stage.datasets if _family(d) == "Map"), None)
    batch = next((d for s in reversed(work.stages[: at + 1]) for d in s.datasets if _family(d) == "Batch"), None)
    between = [s for s in work.stages[:at] if s.family in {"Filter", "Unbatch", "FlatMap"}]
    if mapped is None or batch is None or between or random_input.of_datasets(view, stage.datasets) is not None:
        return
    yield _Candidate(
        kind="batch-first",
        at=frozenset({at}),
        text="batch before map",
        made=mapped,
        changes=(SourceChange(kind="move", made=batch, other=mapped),),
        change=lambda layout: bound.batched(layout, at),
        note="if the function can work on a whole batch",
    )


def _cache(view: StepsView, work: InputWork) -> tuple[_Candidate | None, float]:
    """A cache over what is the same in each pass; and the bytes of one that does not fit."""
    stages = work.stages
    if not _again(view) or (any(d.cls == cut_caches.CACHES for d in view.pipeline.datasets) and _is_cached(stages)):
        return None, 0.0
    whole = not any(SHUFFLES in d.cls for d in view.pipeline.datasets)
    place = next(
        (at for at, s in enumerate(stages) if _is_making(s, whole=whole) and _is_same(view, stages, at, work)), None
    )
    if place is None:
        return None, 0.0
    stage = stages[place]
    whole = whole and "Batch" in stage.name
    made = next((d for d in stage.datasets if d.file and whole == ("Batch" in d.cls)), None)
    if made is None or not stage.elements:
        return None, 0.0
    passed = _cardinality(stages, place)
    size, memory = passed * stage.bytes / stage.elements, float(view.session.manifest.host.memory_bytes)
    if memory > 0 and size > MAX_MEMORY * memory:
        return None, size
    inside = bound.below(work.layout.stages, place)
    moved = [d for i in inside if stages[i].family in {SHUFFLES, "Cache"} for d in stages[i].datasets if d.file]
    mixed = sum(stages[i].elements for i in inside if stages[i].family == SHUFFLES)
    changes = [SourceChange(kind="move", made=made, other=d) for d in moved[-1:] if SHUFFLES in d.cls]
    gone = list(dict.fromkeys(d.id for d in moved if d.cls == cut_caches.CACHES))
    changes += [SourceChange(kind="remove", made=next(d for d in moved if d.id == one)) for one in gone]
    across = ", can work on whole batches" if mixed and any(stages[i].family == "Unbatch" for i in inside) else ""
    read = 1.0 if whole else stage.elements
    batch = stage.bytes if stage.family == "MapAndBatch" and not whole else 0.0
    word = "from_generator" if any(s.family == "Generator" and made in s.datasets for s in stages) else method(made)
    return (
        _Candidate(
            kind="cache",
            at=frozenset({place, *inside}),
            text=f"cache() after {word}{', shuffle after it' if mixed else ''}",
            made=made,
            changes=(*changes, SourceChange(kind="insert", made=made, text="cache()")),
            change=lambda layout: bound.cached(layout, place, read=read, batch_bytes=batch, shuffled=mixed),
            note="if it gives the same in each pass" + across + ("" if size else ", and a pass fits into memory"),
            bytes=size,
            trial="cache-input",
        ),
        0.0,
    )


def _is_making(stage: Stage, *, whole: bool = False) -> bool:
    """Whether a cache over it spares work. ``whole``: or over the batches, because nothing is shuffled."""
    return stage.family in MAKING or stage.reads or (whole and "Batch" in stage.family)


def _is_same(view: StepsView, stages: Sequence[Stage], at: int, work: InputWork) -> bool:
    """Whether a stage gives the same elements in each pass: nothing below it draws or repeats."""
    for i in (at, *bound.below(work.layout.stages, at)):
        stage = stages[i]
        if stage.family == REPEATS or "Random" in stage.name:
            return False
        if random_input.of_datasets(view, stage.datasets) is not None:
            return False
    return True


def _is_cached(stages: Sequence[Stage]) -> bool:
    """Whether a cache stands over the last stage that makes something."""
    making = next((at for at, s in enumerate(stages) if _is_making(s)), len(stages))
    return any(s.family == "Cache" for s in stages[:making])


def _again(view: StepsView) -> bool:
    """Whether there is more than one pass."""
    return any(REPEATS in d.cls for d in view.pipeline.datasets) or epochs.ended(view.steps) > 0


def _cardinality(stages: Sequence[Stage], at: int) -> float:
    """Elements of a pass that a stage gives: by its construction, or by the nearest stage that knows.

    Sources first; else what follows, up to a repeat.
    """
    ratio = stages[at].elements
    above = []
    for stage in reversed(stages[:at]):
        if stage.family == REPEATS:
            break
        above.append(stage)
    for stage in (*stages[at:], *above):
        known = max((d.cardinality for d in stage.datasets if "Batch" not in d.cls), default=-2)
        if known > 0 and stage.elements:
            return known * ratio / stage.elements
    return 0.0


def _own(stage: Stage) -> DatasetMade | None:
    return next((d for d in stage.datasets if d.file and _family(d) != "Batch"), None)


def _family(made: DatasetMade) -> str:
    name = made.cls.removesuffix("Dataset").removesuffix("V2")
    for part in ("Parallel", "_"):
        name = name.removeprefix(part)
    return name.removesuffix("Dataset")


_METHODS = {"FlatMap": "flat_map", "PaddedBatch": "padded_batch", "Generator": "from_generator"}
"""Methods that are not their family in small letters."""


def method(made: DatasetMade) -> str:
    """The method that makes a dataset."""
    family = _family(made)
    return _METHODS.get(family, family.lower())
