"""Which arrays of integers are padded sequences, and how much of them is used."""

from __future__ import annotations

import numpy as np
import pytest

from stepscope.agent.padding import lengths

RNG = np.random.default_rng(7)


def sequences(lengths_: list[int], columns: int = 200, *, first: bool = False, pad: int = 0) -> np.ndarray:
    """Sequences of ids from 1 on, padded behind or before them."""
    made = np.full((len(lengths_), columns), pad, "int32")
    for row, length in zip(made, lengths_, strict=True):
        ids = RNG.integers(1, 5_000, length)
        row[columns - length if first else 0 : None if first else length] = ids
    return made


@pytest.mark.parametrize("first", [False, True], ids=["behind", "before"])
@pytest.mark.parametrize("pad", [0, -1])
def test_lengths_of_padded_sequences(*, first: bool, pad: int) -> None:
    """The mean, and what one in twenty exceeds, wherever the padding stands and whatever it is."""
    found = lengths(sequences([20] * 90 + [60] * 10, first=first, pad=pad))
    assert found == {"mean": pytest.approx(24.0), "p95": pytest.approx(60.0), "first": first}


def test_a_few_rows_of_many_are_looked_at() -> None:
    """What is found of a large array does not depend on all of its rows."""
    found = lengths(sequences([30] * 10_000))
    assert found is not None
    assert found["p95"] == 30


@pytest.mark.parametrize(
    "array",
    [
        RNG.integers(1, 5_000, (400, 64)),
        np.eye(64, dtype="int32")[RNG.integers(0, 64, 400)],
        (RNG.random((400, 300)) < 0.05).astype("int32") * RNG.integers(1, 9, (400, 300)),
        RNG.integers(0, 3, (400, 64)),
    ],
    ids=["no-padding", "one-hot-rows", "counts-of-words", "codes"],
)
def test_what_is_no_padded_sequence(array: np.ndarray) -> None:
    """Rows without padding, or whose most common value stands among the others too."""
    assert lengths(array.astype("int64")) is None
