"""The file ``captures/experiment.json``: what an experiment on this run has shown. A file from elsewhere is hostile."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from stepscope.model.session.experiment import MAX_RESULTS, SCHEMA, Experiment
from stepscope.tables import layout

if TYPE_CHECKING:
    from pathlib import Path

MAX_BYTES = 4 << 20


def write(session: Path, experiment: Experiment) -> None:
    """Store what was shown, in place of what an earlier report of the experiment said.

    Raises:
        OSError: no space, or no rights.
    """
    path = session / layout.EXPERIMENT
    path.parent.mkdir(parents=True, exist_ok=True)
    layout.write_atomic(path, msgspec.json.encode(experiment))


def decode(data: bytes) -> Experiment:
    """What a file holds.

    Raises:
        ValueError: it is damaged, or not such a file.
    """
    found = msgspec.json.decode(data, type=Experiment)
    if found.schema != SCHEMA:
        raise ValueError(f"schema {found.schema[:40]!r}; expected {SCHEMA}")
    if max(len(found.results), len(found.claims)) > MAX_RESULTS:
        raise ValueError(f"more than {MAX_RESULTS} trials or claims")
    times = [(one.ratio, one.low, one.high) for one in found.results]
    times += [(one.time_ratio, one.time_low, one.time_high) for one in found.claims]
    shares = [one.ratio for one in found.claims] + [place.ratio for one in found.claims for place in one.places]
    figures = [*shares, *(figure for time in times for figure in time)]
    if not all(math.isfinite(figure) and figure >= 0 for figure in figures):
        raise ValueError("a share or a time is negative or not finite")
    if not all(low <= ratio <= high for ratio, low, high in times if high):
        raise ValueError("an interval does not hold its ratio")
    return found
