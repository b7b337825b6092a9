"""The remedy of programs that are compiled again for shapes that change."""

from __future__ import annotations

from stepscope.tables.findings import Remedy

CONSTANT = Remedy(
    id="constant-shapes",
    text="keep the shapes constant: drop or pad the last partial batch, pad sequences to a few lengths",
)
