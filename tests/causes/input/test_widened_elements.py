"""The map of an input that makes its elements larger."""

from __future__ import annotations

from stepscope.causes.input import widened_elements
from stepscope.model.log.events import DatasetMade


def chain(*sizes: int, cls: str = "MapDataset") -> list[DatasetMade]:
    """A source and maps, at lines 1, 2 ..., by the sizes of their elements."""
    return [
        DatasetMade(
            id=at,
            cls=cls if at > 1 else "TensorSliceDataset",
            inputs=[at - 1] if at > 1 else [],
            file="/train.py",
            line=at,
            element_bytes=size,
        )
        for at, size in enumerate(sizes, 1)
    ]


def test_the_largest_growth_is_told() -> None:
    """Of several maps, the one that grows most."""
    found = widened_elements.build(chain(100, 200, 1600))
    assert found is not None
    assert (found.made.line, found.ratio) == (3, 8.0)


def test_what_says_nothing() -> None:
    """Elements that stay, shrink, or have no known size; several elements of one; no map."""
    assert widened_elements.build(chain(100, 150)) is None
    assert widened_elements.build(chain(100, 25)) is None
    assert widened_elements.build(chain(0, 1600)) is None
    assert widened_elements.build(chain(100, 0)) is None
    assert widened_elements.build(chain(100, 1600, cls="FlatMapDataset")) is None
    assert widened_elements.build(chain(100, 1600, cls="BatchDataset")) is None
