"""The end of recording before the end of the job: the collector gave its memory back, or measuring was switched off.

The collector is not started again, so the job's processes get a command to stop recording. What they have recorded
stays in the run directory until the job has ended, and is stored then. Light on purpose: the launcher imports it.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from stepscope.launcher import rundir
from stepscope.native import process_stat
from stepscope.native.cgroups import room
from stepscope.wire import commands
from stepscope.wire.env import GAVE_WAY_NAME, PROCS_NAME

if TYPE_CHECKING:
    from pathlib import Path

EXIT_CODE = 75
"""Of a collector that gave way (EX_TEMPFAIL of sysexits.h)."""
CODE = "DX102"
_MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class GaveWay:
    """When and why; ``at_ns`` is CLOCK_MONOTONIC. ``own_bytes`` is 0 where the kernel killed the collector."""

    at_ns: int
    limit_bytes: int = 0
    left_bytes: int = 0
    own_bytes: int = 0
    deaf: int = 0
    """Processes without a thread of ours, which takes commands: they go on writing into their rings."""
    off: str = ""
    """Why measuring was switched off; "": memory was short."""

    def text(self, origin_ns: int) -> str:
        """One line for the report."""
        if self.off:
            return f"nothing was recorded from {(self.at_ns - origin_ns) / 1e9:.1f} s on: {self.off}"
        what = f"little (of {self.deaf} processes without a thread of ours)" if self.deaf else "nothing"
        when = f"{what} was recorded from {(self.at_ns - origin_ns) / 1e9:.1f} s on"
        group = f"the job's control group ({self.limit_bytes // _MIB} MiB)" if self.limit_bytes else "this host"
        if not self.own_bytes:
            return f"{when}: the kernel killed the collector because memory ran out in {group}"
        held = f"less than the {self.own_bytes // _MIB} MiB that stepscope held there and gave back to the job"
        return f"{when}: {self.left_bytes // _MIB} MiB were left in {group}, {held}"


def announce(run: Path, why: GaveWay) -> list[Path]:
    """Leave the mark, and tell every measured process to stop; return the commands, which vanish when they are taken.

    Without space for the mark or a command, the collector leaves all the same.
    """
    folders = [folder / commands.COMMANDS_NAME for folder in (run / PROCS_NAME).glob("*") if _runs(folder.name)]
    listening = [folder for folder in folders if folder.is_dir()]
    sent = []
    with suppress(OSError):
        rundir.write_json(run / GAVE_WAY_NAME, asdict(replace(why, deaf=len(folders) - len(listening))))
        for folder in listening:
            identity = commands.send(str(folder), {"kind": commands.LEAVE})
            sent.append(folder / f"{identity}.json")
    return sent


def _runs(key: str) -> bool:
    pid, start, *_ = [*key.split("-"), ""]
    return pid.isdigit() and start.isdigit() and process_stat.alive(int(pid), int(start))


def killed(run: Path) -> None:
    """The kernel killed the collector for lack of memory: leave the same mark."""
    tight = room.tightest()
    limit, left = (tight.limit_bytes, tight.left_bytes) if tight is not None else (0, 0)
    announce(run, GaveWay(at_ns=time.monotonic_ns(), limit_bytes=limit, left_bytes=left))


def read(run: Path) -> GaveWay | None:
    """The mark; None if there is none, or it is damaged."""
    data = rundir.read_json(run / GAVE_WAY_NAME) or {}
    numbers = {name: data.get(name) for name in GaveWay.__slots__ if name != "off"}
    known = {name: number for name, number in numbers.items() if isinstance(number, int)}
    return GaveWay(off=str(data.get("off", "")), **known) if len(known) == len(numbers) else None
