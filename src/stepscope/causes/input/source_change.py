"""A change of the program's chain of transformations, and what its text calls a transformation.

Serves the report's input bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.derive.input.stages import Stage
    from stepscope.model.log.events import DatasetMade

_METHODS = {
    "FlatMap": "flat_map",
    "PaddedBatch": "padded_batch",
    "Generator": "from_generator",
    "TensorSlice": "from_tensor_slices",
    "Tensor": "from_tensors",
}
"""Methods that are not their family in small letters."""
ALIKE = {"flat_map": ("flat_map", "from_generator")}
"""Methods that make datasets of one class."""


class SourceChange(Struct, frozen=True, kw_only=True):
    """A change of the program's chain of transformations.

    insert: ``text`` as a call after ``made``. move: the call of ``made`` before that of ``other``. keyword: ``text`` as
    a further argument of ``made``. remove: the call of ``made``.
    """

    kind: Literal["insert", "move", "keyword", "remove"]
    made: DatasetMade
    other: DatasetMade | None = None
    text: str = ""


def own(stage: Stage) -> DatasetMade | None:
    """The construction of a stage that the user's text has, but for a batch that is fused with it."""
    return next((d for d in stage.datasets if d.file and family_of(d) != "Batch"), None)


def family_of(made: DatasetMade) -> str:
    """Class of a construction without version and parallel prefix: Map, Batch."""
    name = made.cls.removesuffix("Dataset").removesuffix("V2")
    for part in ("Parallel", "_"):
        name = name.removeprefix(part)
    return name.removesuffix("Dataset")


def method(made: DatasetMade) -> str:
    """The method that makes a dataset."""
    family = family_of(made)
    return _METHODS.get(family, family.lower())


def changes_arguments(stage: Stage, datasets: Sequence[DatasetMade]) -> bool:
    """Whether a function that takes what a stage makes cannot take what the stage gets: it has more or fewer parts."""
    made = own(stage)
    if made is None or not made.parts:
        return False
    by_id = {dataset.id: dataset for dataset in datasets}
    sources = [by_id[i] for i in made.inputs if i in by_id]
    return any(source.parts not in {0, made.parts} for source in sources)


def methods(made: DatasetMade) -> tuple[str, ...]:
    """The methods that make datasets of its class."""
    word = method(made)
    return ALIKE.get(word, (word,))
