"""Which imported files are recordings of the ranks of one distributed job, and why others are none.

PyTorch's profiler writes the rank, the number of ranks and the backend. TensorFlow's and JAX's write no rank, but the
host's name: files of different hosts that were recorded at one time are of one job.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stepscope.tables.optrace import TraceSource

KINETO, XSPACE = "kineto", "xplane"
"""Formats of PyTorch's profiler, and of TensorFlow's and JAX's."""
CLOCKS_NS = 60_000_000_000
"""Time between two recordings from which they are not of the same steps: by how much clocks of hosts may differ."""
MOST_MINUTES = 120
"""Minutes from which a time is given in hours."""
MOST_NAMES = 8
"""Files, or missing ranks, that one sentence names."""


class RankFile(Struct, frozen=True, kw_only=True):
    """The recording of one rank."""

    name: str
    """``rank 1``; of a host ``host a``."""
    number: int
    """Rank; -1: known by its host's name alone."""
    trace: str
    """Name of the trace in the session."""
    source: TraceSource


class RankFiles(Struct, frozen=True, kw_only=True):
    """The recordings of one job, by rank; none unless there are two."""

    ranks: tuple[RankFile, ...] = ()
    tasks: int = 0
    """Number of ranks of the job, those without a file included."""
    launcher: str = ""
    """What made them a job, in words."""
    told: tuple[str, ...] = ()
    """A sentence for each file, or kind of file, that could be a rank's and is not compared."""

    @property
    def missing(self) -> tuple[str, ...]:
        """Ranks without a file."""
        there = {one.number for one in self.ranks}
        return () if -1 in there else tuple(f"rank {n}" for n in range(self.tasks) if n not in there)

    @property
    def missing_text(self) -> str:
        """``rank 1, rank 3 of the job's 4 ranks have no file here``; "" if all have one."""
        if not self.missing:
            return ""
        more = f" and {len(self.missing) - MOST_NAMES:,} more" if len(self.missing) > MOST_NAMES else ""
        verb = "has" if len(self.missing) == 1 else "have"
        return f"{', '.join(self.missing[:MOST_NAMES])}{more} of the job's {self.tasks:,} ranks {verb} no file here"


def of(sources: Iterable[tuple[str, TraceSource]]) -> RankFiles:
    """The ranks among some traces, each given with its name in the session."""
    every = list(sources)
    torch = [(name, source) for name, source in every if source.format == KINETO]
    ranked = [RankFile(name=f"rank {s.rank}", number=s.rank, trace=name, source=s) for name, s in torch if s.rank >= 0]
    unranked = [source for _, source in torch if source.rank < 0]
    if len({one.number for one in ranked}) <= 1:
        hosts = _hosts(every)
        return hosts if hosts.ranks else RankFiles(told=tuple(_without(unranked, alone=not ranked)))
    job, told = _of_one_job(ranked)
    told += _without(unranked, alone=False)
    if len(job) <= 1:
        return RankFiles(told=tuple(told))
    source = job[0].source
    return RankFiles(
        ranks=tuple(sorted(job, key=lambda one: one.number)),
        tasks=max(source.world_size, *(one.number + 1 for one in job)),
        launcher=f"torch.distributed, {source.backend}" if source.backend else "torch.distributed",
        told=tuple(told),
    )


def _of_one_job(ranked: Sequence[RankFile]) -> tuple[list[RankFile], list[str]]:
    """One file of each rank of the job that has the most, all of one time; and why the others are none of these."""
    jobs = Counter(_job(one) for one in ranked)
    most = max(jobs, key=lambda job: jobs[job])
    mine = [one for one in ranked if _job(one) == most]
    newest = max(mine, key=lambda one: (one.source.started_unix_ns, one.source.name))
    chosen: dict[int, RankFile] = {}
    for one in sorted(mine, key=lambda one: one.source.name):
        other = chosen.get(one.number)
        if other is None or _nearer(one, other, newest):
            chosen[one.number] = one
    told = [_of_another(one, newest) for one in ranked if _job(one) != most]
    told += [_twice(one, chosen[one.number]) for one in mine if one is not chosen[one.number]]
    late = [one for one in chosen.values() if _apart_ns(one.source, newest.source) > CLOCKS_NS]
    told += [_another_time(one, newest) for one in late]
    return [one for one in chosen.values() if one not in late], told


def _job(one: RankFile) -> tuple[int, str]:
    """What all ranks of a job have in common."""
    return one.source.world_size, one.source.backend


def _nearer(one: RankFile, other: RankFile, newest: RankFile) -> bool:
    """Whether the recording of a rank is nearer in time than another one of it to the newest of all ranks."""
    near, far = ((_apart_ns(x.source, newest.source), -_overlap_ns(x.source, newest.source)) for x in (one, other))
    return near <= far


def _overlap_ns(one: TraceSource, other: TraceSource) -> int:
    """How long two recordings ran at the same time, by wall clocks; negative: the time between them."""
    begin = max(one.started_unix_ns, other.started_unix_ns)
    return min(one.started_unix_ns + one.dur_ns, other.started_unix_ns + other.dur_ns) - begin


def _apart_ns(one: TraceSource, other: TraceSource) -> int:
    """Time between two recordings; 0 if they overlap, or one has no wall clock."""
    known = one.started_unix_ns and other.started_unix_ns
    return max(0, -_overlap_ns(one, other)) if known else 0


def _described(one: RankFile) -> str:
    """``rank 1 of 4, gloo``."""
    size = f" of {one.source.world_size:,}" if one.source.world_size else ""
    return f"{one.name}{size}{f', {one.source.backend}' if one.source.backend else ''}"


def _of_another(one: RankFile, newest: RankFile) -> str:
    return (
        f"{one.source.name} ({_described(one)}) is of another job than {newest.source.name} ({_described(newest)}): it "
        "is not compared"
    )


def _twice(one: RankFile, chosen: RankFile) -> str:
    both = f"{one.source.name} and {chosen.source.name} are both {one.name}"
    if _apart_ns(one.source, chosen.source):
        return f"{both}, at different times: {chosen.source.name} is compared"
    return f"{both}, at the same time (of two jobs, or one file twice): {chosen.source.name} is compared"


def _another_time(one: RankFile, newest: RankFile) -> str:
    minutes = round(_apart_ns(one.source, newest.source) / 60e9)
    apart = f"{minutes} min" if minutes < MOST_MINUTES else f"{minutes / 60:,.0f} h"
    return (
        f"{one.source.name} ({_described(one)}) was recorded {apart} apart from {newest.source.name}: of another run "
        "or other steps, it is not compared"
    )


def _without(unranked: Sequence[TraceSource], *, alone: bool) -> list[str]:
    """What is said of files without a rank: where others have one, or where several were recorded at one time."""
    together = any(
        one.started_unix_ns and other.started_unix_ns and _overlap_ns(one, other) > 0
        for n, one in enumerate(unranked)
        for other in unranked[n + 1 :]
    )
    if not unranked or (alone and not together):
        return []
    names = [source.name for source in unranked]
    more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    verb = "says" if len(names) == 1 else "say"
    why = "torch.distributed was not initialised when the profiler started; not compared with other ranks"
    return [f"{', '.join(names[:MOST_NAMES])}{more} {verb} no rank (distributedInfo): {why}"]


def _hosts(every: Sequence[tuple[str, TraceSource]]) -> RankFiles:
    """Hosts of one job, if all were recorded at one time."""
    mine = [(", ".join(source.hostnames), name, source) for name, source in every if source.format == XSPACE]
    hosts = {host for host, _, _ in mine if host}
    same_time = all(
        one.started_unix_ns and other.started_unix_ns and _overlap_ns(one, other) > 0
        for n, (_, _, one) in enumerate(mine)
        for _, _, other in mine[n + 1 :]
    )
    if len(mine) <= 1 or len(hosts) < len(mine) or not same_time:
        return RankFiles()
    ranks = [
        RankFile(name=f"host {host}", number=-1, trace=name, source=source)
        for host, name, source in sorted(mine, key=lambda one: one[0])
    ]
    return RankFiles(ranks=tuple(ranks), tasks=len(ranks), launcher="hosts recorded at one time")
