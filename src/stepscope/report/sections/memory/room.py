"""The job's distance to the limit of its memory, and the batch that would still fit: see ``MemoryRoom``."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from stepscope.causes.system import gpu, memory_leak, memory_owners, out_of_memory, step_need
from stepscope.derive import steps_view
from stepscope.derive.machine import memory_use
from stepscope.derive.machine.memory_use import Limit
from stepscope.model.report.machine.memory_room import MemoryRoom

if TYPE_CHECKING:
    from stepscope.derive.machine.memory_use import MemoryUse
    from stepscope.derive.view import SessionView
    from stepscope.model.session.session import Worker

DEVICE_USABLE = 0.9
"""Of a device's memory: the rest is CUDA's context, fragmentation and work space of libraries."""
SCALES = (0.7, 3.0)
"""Ratio of measured to modelled memory of a step beyond which something else was measured."""
_NOTHING: tuple[int, int, float, float, float | None] = 0, 0, 0.0, 0.0, None
MIN_PROVED = 1.1
"""Factor from which a larger batch is worth a trial."""


def build(view: SessionView) -> MemoryRoom | None:
    """None where no limit or no memory is known."""
    worker = view.worker or max(view.workers, key=lambda w: memory_use.build(view.session, w).peak(), default=None)
    if worker is None:
        return None
    use = memory_use.build(view.session, worker)
    device = _device(view)
    limit = device or use.limit
    if limit is None or limit.bytes <= 0:
        return None
    death = view.get(out_of_memory.build)
    dead = death is not None and death.sure  # MEM004 says what would have fitted
    rate = 0.0 if dead else _rate(view)
    batch, fits, sample, fixed, scale = (
        _NOTHING if dead else _batch(view, worker, use if device is None else None, limit)
    )
    factor = fits / batch if batch else 0.0
    return MemoryRoom(
        limit="device" if device is not None else limit.kind,
        limit_bytes=limit.bytes,
        used_bytes=int(limit.used),
        peak_bytes=int(limit.peak),
        bytes_per_second=rate,
        seconds_left=limit.left / rate if rate > 0 and device is None else None,
        batch=batch,
        batch_fits=fits,
        sample_bytes=int(sample),
        fixed_bytes=int(fixed),
        scale=scale,
        what_if=_proof(view, factor),
    )


def _rate(view: SessionView) -> float:
    steps = steps_view.of(view)
    growth = steps.get(memory_leak.build) if steps is not None else None
    if growth is None or not growth.goes_on or growth.reserved_ratio < memory_leak.MIN_RESERVED_RATIO:
        return 0.0
    return max(0.0, growth.per_second)


def _device(view: SessionView) -> Limit | None:
    """The fullest GPU of which the framework's live bytes are known."""
    steps = steps_view.of(view)
    known = [one for one in steps.get(gpu.build) if one.live_bytes > 0 < one.total_bytes] if steps is not None else []
    one = max(known, key=lambda g: g.live_bytes / g.total_bytes, default=None)
    if one is None:
        return None
    return Limit(kind="host", bytes=one.total_bytes, used=float(one.live_bytes), peak=float(one.live_bytes))


def _batch(
    view: SessionView, worker: Worker, use: MemoryUse | None, limit: Limit
) -> tuple[int, int, float, float, float | None]:
    """(batch, the largest that fits, bytes of a sample, fixed bytes, scale); zeros where not known.

    ``use``: memory by which the step's shapes are scaled; None on a device, whose memory the host's does not show.
    """
    if view.steps is None or (need := step_need.step(view, worker)) is None:
        return _NOTHING
    memory = need.memory
    if memory.per_sample <= 0:
        return _NOTHING
    scale = _scale(use, need.traced_ns, memory.total) if use is not None else None
    used = scale if scale is not None else memory_owners.WORK_SPACE
    usable = memory_owners.USABLE[limit.kind] if use is not None else DEVICE_USABLE
    room = usable * limit.bytes - limit.peak
    more = max(0.0, room) / (memory.per_sample * used)
    fits = memory.samples + int(more)
    return memory.samples, fits, memory.per_sample * used, memory.fixed * used, scale


def _scale(use: MemoryUse, traced_ns: int, modelled: float) -> float | None:
    before, peak = use.before(traced_ns), use.peak(traced_ns)
    if before is None or peak <= before or modelled <= 0:
        return None
    ratio = (peak - before) / modelled
    low, high = SCALES
    return ratio if low <= ratio <= high else None


def _proof(view: SessionView, factor: float) -> str | None:
    manifest = view.session.manifest
    if factor < MIN_PROVED or not manifest.command or manifest.mode != "run":
        return None
    times = int(factor)
    if times <= 1:  # the trial multiplies by whole numbers
        return None
    return f"stepscope whatif --try batch:{min(times, 1 << 10)} -- {shlex.join(manifest.command)}"
