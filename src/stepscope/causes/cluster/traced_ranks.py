"""The ranks of one job whose recordings were imported, and for whom they wait in the steps that all have in common.

What a rank does alone in a step is all of it but the exchanges during which none of its ops runs. The rank that the
others wait for has the shortest exchange: none leaves it before all have entered. So no clocks are compared. The same
steps are known by the program's numbers, or where there are none by when they end.

Serves DST001 and the report's part on the ranks.
"""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepscope.causes.cluster.members import COLLECTIVE
from stepscope.derive.cluster import blame as of_ranks
from stepscope.derive.cluster import rank_files, same_steps
from stepscope.derive.optrace.steps.step_parts import PARTS
from stepscope.derive.view import SessionView
from stepscope.tables.errors import SessionError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepscope.derive.cluster.blame import Blame, Share
    from stepscope.derive.cluster.rank_files import RankFile, RankFiles
    from stepscope.derive.optrace.trace_view import OpView
    from stepscope.tables.optrace import OpTrace
    from stepscope.tables.records import F64, I64

IMPORTED = "import"
"""Mode of a session of files."""
MIN_STEPS = 2
"""Fewest common steps of which it is said who is slow: files often hold three, the last of which is left out."""


class Rank(Struct, frozen=True, kw_only=True):
    """A rank with a file."""

    file: RankFile
    view: SessionView
    """A session of its file alone."""

    @property
    def name(self) -> str:
        """``rank 1``."""
        return self.file.name

    @property
    def trace(self) -> OpView | None:
        """Its recording, if that shows steps."""
        return self.view.traces.main


class ComparedRanks(Struct, frozen=True, kw_only=True):
    """The ranks that exchange, in the steps that all of them have in common."""

    ranks: tuple[Rank, ...]
    by_number: bool
    """Whether the steps were paired by the program's numbers; else by when they end."""
    own_ns: F64
    """What each did alone; of what one did longer, only what the others waited for: float64[step, rank]."""
    period_ns: F64
    """The step of the mean rank: float64[step]."""
    exchange_ns: float
    """The exchange itself, in the mean step: what compute does not hide of that of the rank that waits least."""
    blame: Blame
    parts: tuple[Mapping[str, float], ...]
    """Of each rank, the mean of each part of these steps, exchanges left out, ns."""

    def parts_beyond(self, rank: int) -> list[tuple[str, float]]:
        """By how much each part is longer than the median of the other ranks', longest first."""
        others = [parts for j, parts in enumerate(self.parts) if j != rank]
        more = [(part, ns - float(np.median([one[part] for one in others]))) for part, ns in self.parts[rank].items()]
        return sorted(more, key=lambda pair: -pair[1])

    def gain_of(self, group: Sequence[int]) -> Share:
        """By how much the step gets shorter if all of a group did only what the slowest of the others does."""
        others = [j for j in range(len(self.ranks)) if j not in group]
        gain = self.own_ns.max(axis=1) - self.own_ns[:, others].max(axis=1)
        return of_ranks.share_of(gain, self.period_ns)


class TracedRanks(Struct, frozen=True, kw_only=True):
    """The ranks with a file."""

    files: RankFiles
    ranks: tuple[Rank, ...]
    compared: ComparedRanks | None
    text: str = ""
    """Why they are not compared; "" if they are."""


def build(view: SessionView) -> TracedRanks | None:
    """The ranks; None unless files of two ranks of a job were imported."""
    session = view.session
    if session.manifest.mode != IMPORTED or len(session.op_traces) <= 1:
        return None
    files = rank_files.of((stored.name, stored.source) for stored in session.op_traces)
    if not files.ranks:
        return None
    manifest = msgspec.structs.replace(session.manifest, diagnostics=())
    stored = {one.name: one for one in session.op_traces}
    ranks = []
    for file in files.ranks:
        alone = replace(stored[file.trace], load=partial(_read, view, file.trace))
        ranks.append(Rank(file=file, view=SessionView(replace(session, manifest=manifest, op_traces=(alone,)))))
    compared, why = _compared(ranks)
    return TracedRanks(files=files, ranks=tuple(ranks), compared=compared, text=why)


def _read(view: SessionView, name: str) -> OpTrace:
    """A trace that the session's view has read."""
    found = next((one.trace for one in view.traces.views if one.name == name), None)
    if found is None:
        raise SessionError(f"{name}: cannot be read")
    return found


def _compared(ranks: Sequence[Rank]) -> tuple[ComparedRanks | None, str]:
    """The comparison, or why there is none."""
    with_steps = [(rank, trace) for rank in ranks if (trace := rank.trace) is not None]
    if len(with_steps) <= 1:
        return None, f"waits are not compared: {len(with_steps)} of the {len(ranks)} files show steps"
    talking = [(rank, trace) for rank, trace in with_steps if _exchanges(trace)]
    if len(talking) <= 1:
        return None, "waits are not compared: the files show no exchange between the ranks"
    traces = [trace for _, trace in talking]
    by_number = all(trace.periods.numbered for trace in traces)
    rows = _by_number(traces) if by_number else _by_end(traces)
    if not len(rows[0]):
        how = "no step's number is in all of the files" if by_number else "no step ends at one time in all of the files"
        return None, f"waits are not compared: {how}"
    whole = np.stack([t.periods.dur_ns[r] for t, r in zip(traces, rows, strict=True)], axis=1).astype(np.float64)
    exposed = np.stack([t.breakdown.exposed_ns[r] for t, r in zip(traces, rows, strict=True)], axis=1)
    hidden = np.stack([t.breakdown.hidden_ns[r] for t, r in zip(traces, rows, strict=True)], axis=1)
    alone, exchange, period = whole - exposed, exposed + hidden, whole.mean(axis=1)
    blame = of_ranks.of_steps(alone, exchange, period)
    return ComparedRanks(
        ranks=tuple(rank for rank, _ in talking),
        by_number=by_number,
        own_ns=of_ranks.waited_for(alone, exchange),
        period_ns=period,
        exchange_ns=max(0.0, float((exposed.mean(axis=0) - blame.waits_ns).min())),
        blame=blame,
        parts=tuple(_parts(trace, r) for trace, r in zip(traces, rows, strict=True)),
    ), ""


def _exchanges(trace: OpView) -> bool:
    """Whether its steps show an exchange, hidden by compute or not."""
    return bool(trace.breakdown.exposed_ns.any() or trace.breakdown.hidden_ns.any())


def _parts(trace: OpView, rows: I64) -> dict[str, float]:
    return {part: float(trace.breakdown.per_step_of(part)[rows].mean()) for part in PARTS if part != COLLECTIVE}


def _by_number(traces: Sequence[OpView]) -> list[I64]:
    """Of each trace, the positions of the steps whose numbers are in all."""
    common = reduce(np.intersect1d, [trace.periods.number for trace in traces])
    return [np.searchsorted(trace.periods.number, common) for trace in traces]


def _by_end(traces: Sequence[OpView]) -> list[I64]:
    """Of each trace, the positions of the steps that end at one time in all, by wall clocks; none if any has none."""
    none = [np.zeros(0, np.int64)] * len(traces)
    if not all(trace.trace.source.started_unix_ns for trace in traces):
        return none
    ends = {str(j): np.append(t.periods.start_ns[:1], t.periods.end_ns) for j, t in enumerate(traces)}
    same = same_steps.of(ends)
    if len(same.first) < len(traces):
        return none
    return [np.arange(same.count) + same.first[str(j)] for j in range(len(traces))]
