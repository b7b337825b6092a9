"""Nodes of a step that work in a given precision.

Serves half_precision_on_cpu and double_precision_in_step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.model.log.graph import specs

if TYPE_CHECKING:
    from collections.abc import Container

    from stepscope.derive.graph.index import GraphIndex


def working_in(index: GraphIndex, types: Container[str]) -> list[int]:
    """Rows of the nodes of steps that make or read a tensor of one of some types."""
    table = index.table
    texts = [i for i, text in enumerate(table.strings) if any(spec.dtype in types for spec in specs(text))]
    makes = np.isin(table.outputs, texts)
    users = np.repeat(np.arange(len(table)), np.diff(table.first_input))
    reads = users[(table.producers >= 0) & makes[np.maximum(table.producers, 0)]]
    found = np.union1d(np.flatnonzero(makes), reads).tolist()
    return [row for row in found if not index.of_data(int(table.graph[row]))]
