"""What the input could reach, and the edits that reach it, each with the rate after it.

The model is ``derive.input.bound``; what a stage does now is ``input_work``. Edits are tried on the model, the one that
gains most first, until none gains. An edit is proposed only where the program's constructions allow it: a cache only
over what is the same in each pass, below any repeat, if an epoch of it fits into memory; a stage in parallel only if it
runs no user Python; a filter before a map only with the note that it must not need the map's output.

Nothing is said where all datasets are a library's (``own_calls``): there is no line to edit. Where the model does not
take as long for a batch as the run, it cannot say what the run could reach.

Not proposed, because counters do not say what they would bring: other functions, other formats of files, more shards.

Serves the report's input bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from stepscope.causes.input import cache_place, cut_caches, input_work, own_calls, random_input
from stepscope.causes.input.source_change import SourceChange, changes_arguments, family_of, method, own
from stepscope.derive.input import bound
from stepscope.derive.steps import epochs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stepscope.causes.input.input_work import InputWork
    from stepscope.derive.input.bound import BatchPace, ConsumedPipeline
    from stepscope.derive.input.stages import Stage
    from stepscope.derive.steps_view import StepsView
    from stepscope.model.log.events import DatasetMade

EditKind = Literal["parallel", "prefetch", "earlier", "batch-first", "cache", "take-first"]

MAX_MEMORY = 0.5
"""Share of the host's memory that a cache may take: the job needs the rest."""
MAX_LEFT = 0.9
"""A stage that leaves more of its elements gains nothing before another."""
THROWING = frozenset({"Filter", "Shard", "Skip", "Take"})
MAX_MISFIT = 0.2
"""Share by which the model's time of a batch may miss that of the run, to say anything of it: clocks and samples do not
agree better, as in ``input_work.MIN_BLOCKED``."""
CALLS_RATIO = 2.0
"""A function takes mostly the time of its call if it takes at most this times as long."""


class Edit(Struct, frozen=True, kw_only=True):
    """One edit, and the pace after it and all before it."""

    kind: EditKind
    text: str
    made: DatasetMade | None
    """Where."""
    changes: tuple[SourceChange, ...]
    after: BatchPace
    note: str = ""
    """What must be true, or "": nothing."""
    bytes: float = 0.0
    """Memory that it takes."""
    trial: str = ""
    """The intervention of ``whatif`` that tries it; "": none does."""


class InputBound(Struct, frozen=True, kw_only=True):
    """The pipeline as it is and at best. Paces in ns of one batch."""

    work: InputWork
    now_ns: float
    samples: float
    """Of one batch; 0: unknown."""
    edits: tuple[Edit, ...]
    """Without more memory, the first to make first; then the cache, if it fits."""
    best: BatchPace
    """After all of them."""
    as_it_is: ConsumedPipeline
    layout: ConsumedPipeline
    """After all of them."""
    factor: float
    """How much slower the job is than its model, as in the paces: what no stage shows stays."""
    modelled_ns: float
    """What a batch takes by the model, as it is."""
    fits: bool
    """Whether that is what it takes in the run; if not, there are no edits."""
    without_cache: BatchPace
    too_large: float = 0.0
    """Bytes of a cache that would help and does not fit; 0: none."""


class _Candidate(Struct, frozen=True, kw_only=True):
    kind: EditKind
    at: frozenset[int]
    """Places of the stages that it changes or spares."""
    text: str
    made: DatasetMade | None
    changes: tuple[SourceChange, ...]
    change: Callable[[ConsumedPipeline], ConsumedPipeline]
    note: str = ""
    bytes: float = 0.0
    trial: str = ""


def build(view: StepsView) -> InputBound | None:
    """None if tf.data's model was not read, if no dataset is made in the user's text, or if the workers of a service
    make the batches: their CPUs are others.
    """
    work = view.get(input_work.build)
    mine = view.get(own_calls.build)
    if work is None or not mine or any(stage.served for stage in view.pipeline.stages):
        return None
    as_it_is = _as_run(work)
    modelled = bound.pace(as_it_is).ns
    fits = abs(modelled - work.wall_ns) <= MAX_MISFIT * work.wall_ns
    without = tuple(one for one in _candidates(view, work) if fits and _can_be_made(one, mine))
    layout, edits = climb(as_it_is, without)
    plain = bound.pace(layout)
    cache, too_large = _cache(view, work) if fits else (None, 0.0)
    cache = cache if cache is not None and _can_be_made(cache, mine) else None
    if cache is not None:
        layout, edits = climb(as_it_is, (*without, cache))
    best = bound.pace(layout)
    factor = max(1.0, work.wall_ns / modelled) if modelled > 0 else 1.0
    steps = view.steps
    known = steps.samples[steps.steady & (steps.samples > 0)]
    return InputBound(
        work=work,
        now_ns=work.wall_ns,
        samples=float(known.mean()) / view.pipeline.batches_per_step if len(known) else 0.0,
        edits=tuple(replace(edit, after=_pace(edit.after, factor)) for edit in edits),
        best=_pace(best, factor),
        as_it_is=as_it_is,
        layout=layout,
        factor=factor,
        modelled_ns=modelled,
        fits=fits,
        without_cache=_pace(plain, factor),
        too_large=too_large,
    )


def climb(layout: ConsumedPipeline, candidates: Sequence[_Candidate]) -> tuple[ConsumedPipeline, list[Edit]]:
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


def _can_be_made(candidate: _Candidate, mine: frozenset[int]) -> bool:
    """Whether every call that it changes stands in the user's text."""
    calls = [call.id for change in candidate.changes for call in (change.made, change.other) if call is not None]
    return bool(calls) and mine.issuperset(calls)


def _as_run(work: InputWork) -> ConsumedPipeline:
    """The layout with the CPU times as threads that had to wait for CPUs need them.

    At most by how much the process got less than it wanted, and no more than the run took. It stays so after an edit:
    others take the same part of the CPUs.
    """
    layout, to = work.layout, work.layout.consumer
    input_ns = bound.pace(replace(layout, consumer=replace(to, step_ns=0.0))).ns
    room = work.wall_ns - (0.0 if to.overlaps else to.step_ns)
    times = min(work.crowding, max(1.0, room / input_ns)) if input_ns > 0 else 1.0
    return replace(
        layout,
        stages=tuple(
            replace(stage, cpu_ns=stage.cpu_ns * times, calls_ns=stage.calls_ns * times) for stage in layout.stages
        ),
        consumer=replace(to, step_cpu_ns=to.step_cpu_ns * times),
    )


def _pace(pace: BatchPace, factor: float) -> BatchPace:
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
        yield from _earlier(view, stages, at)
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
    made = next((d for d in stage.datasets if d.file and stage.family.startswith(family_of(d))), None)
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


def _earlier(view: StepsView, stages: Sequence[Stage], at: int) -> Iterator[_Candidate]:
    """A later stage discards much of what a map gives."""
    stage = stages[at]
    if not stage.elements or "Map" not in stage.name or stage.name.startswith("Flat"):
        return
    above = at - 1
    while above >= 0 and stages[above].family in {cache_place.SHUFFLES, "Prefetch", "Map"} and stages[above].elements:
        above -= 1
    thrower = stages[above] if above >= 0 else None
    if thrower is None or thrower.family not in THROWING:
        return
    left = thrower.elements / stage.elements
    mine, its = own(stage), own(thrower)
    if left > MAX_LEFT or mine is None or its is None:
        return
    word = method(its)
    if word == "filter" and changes_arguments(stage, view.pipeline.datasets):
        return
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
    mapped = next((d for d in stage.datasets if family_of(d) == "Map"), None)
    batch = next((d for s in reversed(work.stages[: at + 1]) for d in s.datasets if family_of(d) == "Batch"), None)
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
    found = cache_place.build(view, work) if _again(view) else None
    if found is None:
        return None, 0.0
    memory = float(view.session.manifest.host.memory_bytes)
    if memory > 0 and found.bytes > MAX_MEMORY * memory:
        return None, found.bytes
    return (
        _Candidate(
            kind="cache",
            at=found.at,
            text=found.text,
            made=found.made,
            changes=found.changes,
            change=lambda layout: bound.cached(
                layout, found.place, read=found.read, batch_bytes=found.batch_bytes, shuffled=found.shuffled
            ),
            note=found.note,
            bytes=found.bytes,
            trial="" if found.moves else "cache-input",
        ),
        0.0,
    )


def _again(view: StepsView) -> bool:
    """Whether there is more than one pass."""
    return any(cache_place.REPEATS in d.cls for d in view.pipeline.datasets) or epochs.ended(view.steps) > 0
