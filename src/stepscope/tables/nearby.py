"""What files near a job say of it, looked at once, when its report was written: parts of ``manifest.json``.

A session is read on other machines and later: what its places are called there must not depend on files.
"""

from __future__ import annotations

import msgspec


class NotebookCell(msgspec.Struct, frozen=True, kw_only=True):
    """A cell of a notebook, as a kernel compiles it."""

    hash: str
    """Number that ipykernel gives the cell's text, as in its path."""
    name: str
    """The notebook, relative to the job's working directory, and the cell's number as ``check`` counts: "train.ipynb
    cell 3"."""
    above: int = 0
    """Lines of the cell before the first that was compiled."""


class NodeWeights(msgspec.Struct, frozen=True, kw_only=True):
    """Weights of one node of a model that are denormal."""

    node: str
    op: str
    floats: int
    denormal: int


class ModelWeights(msgspec.Struct, frozen=True, kw_only=True):
    """A model's file with denormal weights."""

    model: str
    """As ``InferenceSession.model``."""
    floats: int
    denormal: int
    nodes: tuple[NodeWeights, ...] = ()
    """Those with the most denormal weights first, at most 8."""
