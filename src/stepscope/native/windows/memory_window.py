"""A window that tells whose pages a process holds: page faults with their stacks, and looks at its page map.

As root, a program at perf's events chooses pages by their address, so that every fault of a chosen page is recorded:
who touched it last is then known, however often it went and came. Without these rights every k-th fault is recorded,
whatever its page, and memory that comes and goes quickly may be named by an earlier owner.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepscope.native.kernel import perf
from stepscope.native.memory import page_owners
from stepscope.native.memory.page_looks import PageLooks
from stepscope.native.memory.page_owners import Faults
from stepscope.native.windows.native_decode import FAULTS, event_of
from stepscope.native.windows.native_window import NativeWindow
from stepscope.tables.errors import CaptureError
from stepscope.tables.findings import Diagnostic
from stepscope.tables.made_frames import BEFORE, GROWTH, HIGHEST, OTHER, SOME
from stepscope.tables.records import MemoryEventTable
from stepscope.tables.stacks import UNKNOWN, StackProfile, StackTable

if TYPE_CHECKING:
    from pathlib import Path

    from stepscope.native.formats.perf_data import PerfRecording
    from stepscope.native.kernel.perf import Abilities, Rates
    from stepscope.native.memory.page_looks import PageLook
    from stepscope.native.memory.page_owners import FaultedBytes
    from stepscope.native.windows.native_window import WindowResult

SECONDS = 10.0
ROUGH = "DX152"
MAX_ONE_IN = 1 << 16


class Amounts(Struct, frozen=True, kw_only=True):
    """What the looks of a window show. Bytes of anonymous memory; times since session start."""

    first: int
    last: int
    came: int
    """Pages held at the end and not at the beginning."""
    went: int
    highest: int
    highest_at_ns: int
    missed: int
    """Highest memory that was read, if there was no time to look at it; else 0."""
    seconds: float


class MemoryWindow(NativeWindow):
    """One window."""

    follows_calls = False

    def __init__(self, pid: int, folder: Path, can: Abilities, rates: Rates, seconds: float) -> None:
        """Begin, as ``NativeWindow``."""
        wanted = max(1, round(rates.faults_per_s / perf.SAMPLES_PER_S))
        self.one_page_in = min(MAX_ONE_IN, 1 << (wanted - 1).bit_length())
        self.amounts: Amounts | None = None
        self._looks: PageLooks | None = None
        super().__init__(pid, folder, can, rates, seconds or SECONDS)
        self._looks = PageLooks(pid, lambda: self.began_ns, self._seconds)

    @property
    def _may_choose(self) -> bool:
        return True

    @property
    def exact(self) -> bool:
        """Whether every fault of a chosen page is recorded."""
        return self._every_cpu

    def _count(self) -> None:
        self._next_ns = time.monotonic_ns() + int(perf.COUNT_SECONDS * 1e9)

    def _command(self, rates: Rates, begin: list[str]) -> list[str]:
        del rates
        if not self._every_cpu:
            self._gate = None  # it would choose among those that are sampled
        return perf.fault_command(
            self._can,
            self.pid,
            str(self._file),
            self._seconds,
            period=1 if self._every_cpu else self.one_page_in,
            every_cpu=self._every_cpu,
            begin=begin,
        )

    def take(self, *, origin_ns: int, window: int) -> WindowResult:
        """The profiles of memory.

        Raises:
            CaptureError: perf recorded nothing, or the process's pages may not be seen.
        """
        began = time.process_time_ns()
        looks = self._looks
        if looks is not None:
            looks.stop()
        if looks is None or looks.base is None or looks.highest is None or looks.last is None or looks.problem:
            why = looks.problem if looks is not None and looks.problem else "it ended too early"
            raise CaptureError(f"the pages of process {self.pid} cannot be seen: {why}")
        recorded, profiles, diagnostics = self._decoded(origin_ns, window)
        if not self._every_cpu:
            text = "memory that is released and taken again at once may be named by an earlier owner: pages cannot be "
            text += "followed one by one; run as root"
            diagnostics = (*diagnostics, Diagnostic(code=ROUGH, text=text))
        base, highest, last = looks.base, looks.highest, looks.last
        self.amounts = _amounts(looks, base, highest, last, origin_ns)
        profile = next((one for one in profiles if one.event == FAULTS), None)
        profile = profile or StackProfile(event=FAULTS, unit="bytes", name=f"window {window}")
        faults = self._faults(recorded)
        made = tuple(
            _owned(profile, event, owned, (base.at_ns - origin_ns, at.at_ns - origin_ns))
            for event, owned, at in (
                (GROWTH, page_owners.grown(faults, base, last), last),
                (HIGHEST, page_owners.held(faults, base, highest), highest),
            )
        )
        return self._taken(began, origin_ns, made, MemoryEventTable.empty(), diagnostics)

    def _faults(self, recorded: PerfRecording) -> Faults:
        """The faults that have stacks, as they stand in the profile."""
        events = recorded.events
        of_faults = {i for i, e in enumerate(events) if e.registers and event_of(e.name)[0] == FAULTS}
        kept = [sample for sample in recorded.samples if sample.pid == self.pid and sample.event in of_faults]
        stands = self.one_page_in if self._every_cpu else 1
        return Faults(
            at_ns=np.array([sample.at_ns for sample in kept], np.int64),
            address=np.array([min(sample.address, 2**63 - 1) for sample in kept], np.int64),
            pages=np.array([sample.period * stands for sample in kept], np.float64),
        )

    def close(self) -> None:
        """Release everything; the caller deletes the folder."""
        if self._looks is not None:
            self._looks.stop()
        super().close()


def _amounts(looks: PageLooks, base: PageLook, highest: PageLook, last: PageLook, origin_ns: int) -> Amounts:
    both = last.shared_bytes(base)
    most = looks.most_bytes
    return Amounts(
        first=base.bytes,
        last=last.bytes,
        came=last.bytes - both,
        went=base.bytes - both,
        highest=highest.bytes,
        highest_at_ns=highest.at_ns - origin_ns,
        missed=most if most > SOME * highest.bytes else 0,
        seconds=(last.at_ns - base.at_ns) / 1e9,
    )


def _owned(profile: StackProfile, event: str, owned: FaultedBytes, span: tuple[int, int]) -> StackProfile:
    """The profile with bytes as weights, and a stack each for what was there before and for what no fault brought."""
    extra = [(frame, size) for frame, size in ((BEFORE, owned.before), (OTHER, owned.other)) if size >= 1]
    known = profile.samples.take(owned.faults)
    samples = replace(known, weight=owned.bytes)
    count = len(extra)
    rest = type(samples)(
        at_ns=np.full(count, UNKNOWN, np.int64),
        thread=np.full(count, UNKNOWN, np.int64),
        stack=np.arange(len(profile.stacks), len(profile.stacks) + count, dtype=np.int64),
        weight=np.array([size for _, size in extra], np.float64),
        count=np.ones(count, np.int64),
        flags=np.zeros(count, np.int64),
        op_thread=np.zeros(count, np.int64),
    )
    places = np.arange(len(profile.frames), len(profile.frames) + count, dtype=np.int64)
    return replace(
        profile,
        event=event,
        unit="bytes",
        frames=(*profile.frames, *(frame for frame, _ in extra)),
        stacks=StackTable(
            parent=np.concatenate((profile.stacks.parent, np.full(count, UNKNOWN, np.int64))),
            frame=np.concatenate((profile.stacks.frame, places)),
        ),
        samples=type(samples).concat((samples, rest)),
        begin_ns=span[0],
        end_ns=span[1],
    )
