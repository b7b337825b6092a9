"""Code that runs op by op computes again what it computed before.

## What it detects
Ops run from Python that get the same inputs as before, with variables that have not changed since, and that have no
random part: an encoder that is run again on the same batch for each of many passes, a forward pass for the metrics
besides the one of the training.

## Why it matters
The result is known already. Keeping it costs memory for as long as it is needed, and no time.

## Evidence
`again_ratio`: share of the time of the looks at the ops (`looks`, some seconds each at most; their second halves) in
ops that gave what they gave before, with Python's time between two of them. `again`, `runs`: of the ops of the place
that is named, how many times they ran, and how many of these gave what was known. Nothing is compared but what the ops
were given: an op without state gives the same for the same inputs, and variables are followed by what writes them.

## Known limits
Whole calls of compiled functions count as ops if they change nothing and draw nothing; what is computed twice within
one is seen in its graph. A loop in which next to nothing is new is a benchmark, or waits for the look to last longer
than one of its turns: information. Ops on a GPU run while Python is at the next: their time here is that of the launch.
A NumPy array of more than 4 MB that is converted in each call is known by 256 parts of it: a change of a few
elements is missed. Backward passes that are run again for each variable are HST014's.

## Remedy
Compute it once, and keep the result: outside of the loop over passes, for as long as the input is the same.

## References
FSE'22 study, inefficient API usage; common subexpression elimination, which a graph gets and eager code does not.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.host import eager_looks, gradients_one_by_one
from stepscope.causes.job import purpose
from stepscope.derive.python.eager_looks import NOTHING_NEW_RATIO
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepscope.derive.python.eager_looks import EagerLooks
    from stepscope.derive.steps_view import StepsView
    from stepscope.model.log.eager import EagerOp


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.10)
    """Of the time of the looks: small tensors that each step makes again come to a few percent."""
    min_again: int = 8
    """Ops that gave what they gave before: fewer may be the end of one thing and the beginning of another."""


COVERS = 0.9
"""Share of the time again of the layers or scopes that are named."""
NAMED_RATIO = 0.05
"""Share of the time again from which an op is named."""
MOST_NAMED = 3
WHOLE = 0.7
"""Share of known ops of a layer or line, in that of its op that is known most often, from which all of it is known."""
OFTEN = 0.25
"""Share of the runs of a unit's most frequent op from which an op is compared: of rarer ones chance decides."""
COPIES = frozenset(("ReadVariableOp", "Identity", "Copy", "Cast", "Transpose", "ConcatV2", "Pack", "Tile"))
"""Ops that never count as known. Source: ``agent.core.op_look``."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    looks = view.get(eager_looks.build)
    if looks is None:
        return
    known = [row for row in looks.rows if row.again and row.file]
    rows = sorted(_whole(looks.rows), key=lambda row: -row.again_ns)
    if rows:
        passes = gradients_one_by_one.build(view.samples, view.session.sources)
        rows = [row for row in rows if passes is None or (row.file, row.line) != (passes.file, passes.line)]
    all_ns = sum(row.again_ns for row in known)
    ratio = looks.again_ratio * sum(row.again_ns for row in rows) / all_ns if all_ns else 0.0
    if ratio >= params.min_ratio and sum(row.again for row in rows) >= params.min_again:
        yield _finding(view, looks, rows, ratio, params)


def _finding(view: StepsView, looks: EagerLooks, rows: Sequence[EagerOp], ratio: float, params: Params) -> Seen:
    lines = [row for row in rows if row.file]
    name = _scope(lines)
    mine = [row for row in lines if row.scope.startswith(name)] or list(rows)
    again, runs = sum(row.again for row in mine), sum(row.count for row in mine)
    least = NAMED_RATIO * sum(row.again_ns for row in mine)
    ops = ", ".join(list(dict.fromkeys(row.op for row in mine if row.again_ns >= least))[:MOST_NAMED])
    what = f"{name.rpartition('/')[2]} ({ops})" if name else ops
    benchmark = looks.fresh_ratio < NOTHING_NEW_RATIO
    title = (
        f"the loop computes nothing new: {format_ratio(ratio)} of the time goes into ops whose results are known"
        if benchmark
        else f"results are computed again from the same inputs and weights: {what}; {again:,} of {runs:,} were "
        f"known, {format_ratio(ratio)} of the time"
    )
    return Seen(
        title=title,
        confidence=0.9,
        severity="info" if benchmark else None,
        introduced_stage="training" if view.get(purpose.trains) else "prediction",
        where=tuple(dict.fromkeys(view.place(row.file, row.line, function=row.function) for row in lines[:8])),
        evidence=(
            Evidence(metric="again_ratio", value=ratio, unit="ratio", threshold=params.min_ratio),
            Evidence(metric="again", value=again, unit="ops", threshold=params.min_again),
            Evidence(metric="runs", value=runs, unit="ops"),
            Evidence(metric="looks", value=looks.looks, unit="looks"),
        ),
        cost=cost_of(view, 0.0 if benchmark else ratio, low=0.0 if benchmark else 0.8 * ratio, high=1.15 * ratio),
        remedies=(
            Remedy(
                id="keep-the-result",
                text="compute it once and keep the result for as long as its input and the weights stay the same: "
                "outside of the loop over passes, or once for all that need it",
            ),
        ),
        explanation="These ops got the same tensors as before, no variable that they read was written since, and none "
        "of them draws random numbers.",
    )


def _whole(rows: Sequence[EagerOp]) -> list[EagerOp]:
    """Known ops of layers, lines and functions of which all is known as often: of a dropout layer, which scales its
    input before it draws, nothing can be kept.
    """
    units: dict[tuple[str, int, str, str], list[EagerOp]] = defaultdict(list)
    for row in rows:
        if row.file and row.op not in COPIES:
            units[row.file, row.line, row.scope, "" if row.op[:1].isupper() else row.op].append(row)
    found = []
    for unit in units.values():
        share = sum(row.again for row in unit) / sum(row.count for row in unit)
        most = max(row.count for row in unit)
        often = [row for row in unit if row.count >= OFTEN * most]
        if share and share >= WHOLE * max(row.again / row.count for row in often):
            found += [row for row in unit if row.again]
    return found


def _scope(rows: Sequence[EagerOp]) -> str:
    """The innermost layer or scope that holds most of the time of these rows; "" if none does."""
    whole = sum(row.again_ns for row in rows)
    name = ""
    while True:
        depth = name.count("/") + 1 if name else 0
        times: dict[str, int] = {}
        for row in rows:
            parts = row.scope.split("/") if row.scope else []
            if row.scope.startswith(name) and len(parts) > depth:
                inner = "/".join(parts[: depth + 1])
                times[inner] = times.get(inner, 0) + row.again_ns
        best = max(times, key=lambda each: times[each], default="")
        if not best or times[best] < COVERS * whole:
            return name
        name = best


DETECTOR = Detector(
    code="HST015",
    name="same-ops-again",
    cause="API: inefficient API usage",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS}),
    frameworks=frozenset({"tensorflow"}),
    params=Params(),
    detect=detect,
    applies=eager_looks.missing,
)
