"""Which records of a process a session lacks, and when they were written.

A record's place in its process's stream is its ``seq``; a segment's name says which places it covers. A place that
has no record was lost: overwritten before it was read, claimed and never written, damaged in the ring or on the disk,
or dropped because the disk was full. Segments that the quota of a session has removed leave no name, and count as
nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.tables.records import Losses

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from stepscope.store.segments import Segment
    from stepscope.tables.records import RecordTable


def build(stored: RecordTable, segments: Sequence[Segment], lives: tuple[int, int], known: int = 0) -> Losses:
    """The losses among the records that ``segments`` name.

    Args:
        stored: the records that could be read, in any order.
        segments: the segments that count, in order, readable or not.
        lives: (begin, end) of the process, which bound losses before its first and after its last record.
        known: how many records the collector counted as lost. What no empty place shows were the last ones; or the
            first, if the segment with the first record is gone.

    Cost: O(n log n).
    """
    if not segments:
        return _rows([lives[0]], [lives[1]], [known]) if known else Losses.empty()
    order = np.argsort(stored.seq, kind="stable")
    ends = (stored.start_ns + stored.dur_ns)[order]
    seq = np.concatenate([[segments[0].first], stored.seq[order], [segments[-1].last + 2]])
    missing = np.maximum(np.diff(seq) - 1, 0)
    unplaced = max(0, known - int(missing.sum()))
    missing[0 if segments[0].first else -1] += unplaced
    begin, end = min(lives[0], *ends[:1].tolist(), lives[1]), max(lives[1], *ends[-1:].tolist(), lives[0])
    at = np.concatenate([[begin], ends, [end]])
    holes = np.flatnonzero(missing)
    return _rows(np.minimum(at[holes], at[holes + 1]), np.maximum(at[holes], at[holes + 1]), missing[holes])


def _rows(starts: ArrayLike, ends: ArrayLike, records: ArrayLike) -> Losses:
    start_ns, end_ns, count = (np.asarray(values, np.int64) for values in (starts, ends, records))
    return Losses(start_ns=start_ns, end_ns=end_ns, records=count)
