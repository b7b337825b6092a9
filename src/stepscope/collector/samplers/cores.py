"""Samples each CPU that the job may use.

Source: /proc/stat (proc(5)), as read by the host sampler.
"""

from __future__ import annotations

from stepscope.collector.samplers.base import TICK_NS, Rows
from stepscope.tables.records import CoreTable

_EACH_LOOK = 64
"""Number of CPUs above which they are sampled less often: a row costs about 3 us."""


class CoreSampler:
    """Follows the CPUs."""

    def __init__(self, origin_ns: int) -> None:
        """Times in rows count from ``origin_ns``."""
        self.rows = Rows(CoreTable)
        self._origin_ns = origin_ns
        self._looks = 0

    def sample(self, now_ns: int, text: bytes, cpus: frozenset[int]) -> None:
        """A row for each of ``cpus``; ``text`` is /proc/stat."""
        self._looks += 1
        if self._looks % -(-max(1, len(cpus)) // _EACH_LOOK):
            return
        end = text.find(b"\nintr")
        for line in text[: end if end >= 0 else None].split(b"\n")[1:]:
            number, _, rest = line.partition(b" ")
            if not number.startswith(b"cpu") or int(number[3:]) not in cpus:
                continue
            v = [int(word) * TICK_NS for word in rest.split()[:8]]
            v += [0] * (8 - len(v))
            busy = v[0] + v[1] + v[2] + v[5] + v[6]
            self.rows.add(now_ns - self._origin_ns, int(number[3:]), busy, v[3], v[4], v[7])
