"""The machine's roofs as ``stepscope doctor --calibrate`` measured them, and what translating addresses costs on it.

Both are kept in the user's state folder.

They hold for a model of CPU, a number of CPUs and a quota: elsewhere they are measured again. They explain how near an
op comes to what the machine can do, and decide nothing.
"""

from __future__ import annotations

import hashlib
import math
import os
import platform
from pathlib import Path

import msgspec

from stepscope.model.session.replays import Roofs
from stepscope.native.cgroups import cgroup
from stepscope.store import page_walks
from stepscope.tables import layout
from stepscope.tables.page_walks import PageWalks
from stepscope.wire import sessions_folder

MAX_BYTES = 64 << 10


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """What the roofs depend on."""

    cpu: str
    """Model of the CPU."""
    cpus: int
    """CPUs that this process may use."""
    quota_milli: int
    """CPU quota of its control group in thousandths of a CPU, -1 for none."""


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """A file of the state folder."""

    machine: Machine
    roofs: Roofs


def machine() -> Machine:
    """This machine, as this process may use it."""
    quotas = [quota for folder in cgroup.folders("self", "cpu") if (quota := cgroup.quota_milli(folder)) > 0]
    return Machine(cpu=_model(), cpus=len(os.sched_getaffinity(0)), quota_milli=min(quotas, default=-1))


def path_of(known: Machine) -> Path:
    """The file that holds a machine's roofs."""
    digest = hashlib.sha256(msgspec.json.encode(known)).hexdigest()[:16]
    return Path(sessions_folder.default()).parent / "roofs" / f"{digest}.json"


def load() -> Roofs | None:
    """The roofs of this machine; None if they were not measured, or their file is damaged."""
    here = machine()
    try:
        data = path_of(here).read_bytes()[: MAX_BYTES + 1]
        found = msgspec.json.decode(data, type=Calibration)
    except (OSError, msgspec.DecodeError):
        return None
    roofs = found.roofs
    rates = [roofs.flops_per_s, roofs.memory_bytes_per_s, roofs.fixed_ns, *(rate for _, rate in roofs.copies)]
    return roofs if found.machine == here and all(math.isfinite(rate) and rate > 0 for rate in rates) else None


def save(roofs: Roofs) -> Path:
    """Keep the roofs of this machine; returns the file.

    Raises:
        OSError: the state folder cannot be written.
    """
    here = machine()
    path = path_of(here)
    path.parent.mkdir(parents=True, exist_ok=True)
    layout.write_atomic(path, msgspec.json.encode(Calibration(machine=here, roofs=roofs)))
    return path


def load_page_walks() -> PageWalks | None:
    """What translating addresses costs on this machine; None if that was not measured, or its file is damaged."""
    try:
        found = page_walks.decode(_walks_path(machine()).read_bytes()[: page_walks.MAX_BYTES + 1])
    except (OSError, ValueError):
        return None
    return found if found.points else None


def save_page_walks(walks: PageWalks) -> Path:
    """Keep what was measured on this machine; returns the file.

    Raises:
        OSError: the state folder cannot be written.
    """
    path = _walks_path(machine())
    path.parent.mkdir(parents=True, exist_ok=True)
    layout.write_atomic(path, msgspec.json.encode(walks))
    return path


def _walks_path(known: Machine) -> Path:
    return path_of(known).parent.parent / "page-walks" / f"{path_of(known).stem}-{platform.release()}.json"


def _model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
