"""The names of the signals in a session, by what was recorded, for its manifest.

Signals are defined, with their hints, in ``detectors.base``: detectors decide whether there is enough of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.wire.kinds import Kind, Trait, kinds_with

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

BY_KIND = {
    "steps": (*kinds_with(Trait.STEP), *kinds_with(Trait.MAKER), *kinds_with(Trait.DETACHED)),
    "samples": (Kind.SAMPLE,),
    "stacks": (Kind.SAMPLE,),
    "traces": kinds_with(Trait.GRAPH_MADE),
}
BY_LINE = {"input-wait": "itermodel"}
BY_TABLE = {"host": "host", "resources": "links", "memory": "process", "gpu": "gpu"}
"""Source of each signal: kinds of records, types of log lines, tables of samples."""


def present(session: Path, kinds: Collection[int], types: Collection[str]) -> tuple[str, ...]:
    """Names of the signals, as in ``detectors.base.Signal``, in lower case with hyphens."""
    tables = {path.name.partition("-")[0] for path in (session / "tables").glob("*.parquet")}
    found = {name for name, of in BY_KIND.items() if any(int(kind) in kinds for kind in of)}
    found |= {name for name, of in BY_LINE.items() if of in types}
    found |= {name for name, of in BY_TABLE.items() if of in tables}
    return tuple(sorted(found))
