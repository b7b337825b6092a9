"""Where a cache can stand over what is the same in each pass, and what has to come after it.

What shuffles or repeats before the place has to come after the cache: else each pass would come in the order of the
first, or no pass would ever end and fill it. So the calls from there to the place move before it, in their order. They
do not where that would change the elements: a shuffle of single elements is none of batches, and one of files is none
of their records. A shuffle of files may stay where another one stands after the cache.

Serves the report's input bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.input import cut_caches, random_input
from stepscope.causes.input.source_change import SourceChange, family_of, method, own
from stepscope.derive.input import bound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.causes.input.input_work import InputWork
    from stepscope.derive.input.stages import Stage
    from stepscope.derive.steps_view import StepsView
    from stepscope.model.log.events import DatasetMade

MAKING = frozenset({"Map", "MapAndBatch", "Filter", "Interleave", "FlatMap", "Generator", "Csv"})
"""Stages worth a cache, with readers of files."""
REPEATS = "Repeat"
SHUFFLES = "Shuffle"
CACHES = "Cache"
OTHERS = frozenset(
    {
        *("Interleave", "FlatMap", "Unbatch", "Zip", "Concatenate", "Batch", "PaddedBatch", "MapAndBatch", "Window"),
        *("Take", "Skip", "Shard"),
    }
)
"""Stages whose elements are others than those that they are given (files and records, rows and batches), or that choose
by the order."""


class CachePlace(Struct, frozen=True, kw_only=True):
    """A cache that can be filled, and is worth it."""

    place: int
    """Stage after which it stands."""
    at: frozenset[int]
    """Stages that are spared or changed."""
    made: DatasetMade
    changes: tuple[SourceChange, ...]
    text: str
    note: str
    bytes: float
    """Memory of a pass; 0: unknown."""
    read: float
    """Elements that are read from it for a batch."""
    batch_bytes: float
    """See ``bound.cached``."""
    shuffled: float
    """Elements that are shuffled after it, and were before it."""
    moves: bool
    """Whether other calls move for it."""


def build(view: StepsView, work: InputWork) -> CachePlace | None:
    """The place nearest to the consumer; None if there is none, or a cache stands there that is filled."""
    if _is_cached(work):
        return None
    whole = not any(SHUFFLES in d.cls for d in view.pipeline.datasets)
    places = (at for at in range(len(work.stages)) if _is_place(view, work, at, whole=whole))
    return next((found for at in places if (found := _planned(view, work, at, whole=whole)) is not None), None)


def _planned(view: StepsView, work: InputWork, place: int, *, whole: bool) -> CachePlace | None:
    stages = work.stages
    stage, inside = stages[place], bound.below(work.layout.stages, place)
    whole = whole and "Batch" in stage.name and not _repeats_below(work, place)
    made = next((d for d in stage.datasets if d.file and whole == ("Batch" in d.cls)), None)
    later = _later(stages, place, inside)
    if made is None or not stage.elements or later is None:
        return None
    mixed = sum(stages[i].elements for i in later if SHUFFLES in stages[i].family)
    again = any(REPEATS in stages[i].family for i in later)
    words = [*(["shuffle"] if mixed else []), *(["repeat"] if again else [])]
    word = "from_generator" if any(s.family == "Generator" and made in s.datasets for s in stages) else method(made)
    size = _cardinality(stages, place) * stage.bytes / stage.elements
    stays = any(SHUFFLES in stages[i].family for i in inside if i not in later)
    return CachePlace(
        place=place,
        at=frozenset({place, *inside}),
        made=made,
        changes=(
            *_moves(stages, later, place),
            *_without(view, stages),
            SourceChange(kind="insert", made=made, text="cache()"),
        ),
        text=f"cache() after {word}" + (f", {' and '.join(words)} after it" if words else ""),
        note="if it gives the same in each pass"
        + (", in any order of its files" if stays else "")
        + ("" if size else ", and a pass fits into memory"),
        bytes=size,
        read=1.0 if whole else stage.elements,
        batch_bytes=stage.bytes if stage.family == "MapAndBatch" and not whole else 0.0,
        shuffled=mixed,
        moves=bool(words),
    )


def _is_place(view: StepsView, work: InputWork, at: int, *, whole: bool) -> bool:
    """Whether a cache over a stage spares work, and what it gives is the same in each pass.

    ``whole``: or over the batches, because nothing is shuffled.
    """
    stage = work.stages[at]
    batches = whole and "Batch" in stage.family and not _repeats_below(work, at)
    if not (stage.family in MAKING or stage.reads or batches):
        return False
    below = [work.stages[i] for i in (at, *bound.below(work.layout.stages, at))]
    return not any("Random" in s.name or random_input.of_datasets(view, s.datasets) is not None for s in below)


def _is_cached(work: InputWork) -> bool:
    """Whether a cache that can be full stands over the last stage that makes something."""
    stages = work.stages
    making = next((at for at, s in enumerate(stages) if s.family in MAKING or s.reads), len(stages))
    return any(stages[at].family == CACHES and not _repeats_below(work, at) for at in range(making))


def _repeats_below(work: InputWork, at: int) -> bool:
    return any(REPEATS in work.stages[i].family for i in bound.below(work.layout.stages, at))


def _later(stages: Sequence[Stage], place: int, inside: range) -> list[int] | None:
    """Stages inside that have to come after the cache, the nearest to the place first; None: one cannot."""
    found: list[int] = []
    apart = stages[place].family in OTHERS - {"MapAndBatch"}
    for i in inside:
        stage = stages[i]
        if REPEATS in stage.family or SHUFFLES in stage.family:
            if not apart and own(stage) is not None:
                found.append(i)
            elif not apart or REPEATS in stage.family or not _shuffled(stages, place, found):
                return None
        apart = apart or stage.family in OTHERS
    return found


def _shuffled(stages: Sequence[Stage], place: int, later: Sequence[int]) -> bool:
    """Whether elements are shuffled after the cache."""
    return any(SHUFFLES in stages[i].family for i in (*range(place), *later))


def _moves(stages: Sequence[Stage], later: Sequence[int], place: int) -> list[SourceChange]:
    """The calls between the deepest that comes later and the place, each before that one, the deepest first."""
    if not later:
        return []
    deepest = min((made for made in stages[later[-1]].datasets if made.file), key=lambda made: made.id)
    between = [stages[i] for i in range(later[-1] - 1, place - 1, -1) if i not in later]
    calls = [made for stage in between if (made := own(stage)) is not None and family_of(made) != CACHES]
    return [SourceChange(kind="move", made=made, other=deepest) for made in calls]


def _without(view: StepsView, stages: Sequence[Stage]) -> list[SourceChange]:
    """Caches that are there: they hold less, or are never full."""
    shown = [d for s in stages if s.family == CACHES for d in s.datasets if d.file]
    known = {d.id: d for d in (*shown, *(d for d in view.pipeline.datasets if d.cls == cut_caches.CACHES and d.file))}
    return [SourceChange(kind="remove", made=made) for made in known.values()]


def _cardinality(stages: Sequence[Stage], at: int) -> float:
    """Elements of a pass that a stage gives: by its construction, or by the nearest stage that knows.

    Sources first; else what follows, up to a repeat.
    """
    ratio = stages[at].elements
    above = []
    for stage in reversed(stages[:at]):
        if REPEATS in stage.family:
            break
        above.append(stage)
    for stage in (*stages[at:], *above):
        known = max((d.cardinality for d in stage.datasets if "Batch" not in d.cls), default=-2)
        if known > 0 and stage.elements:
            return known * ratio / stage.elements
    return 0.0
