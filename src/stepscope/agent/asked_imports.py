"""Writes the imports that the program's own lines asked for before stacks were sampled (``agent.bootstrap``)."""

from __future__ import annotations

import _thread
import os
import sys
import time

from stepscope.agent.core import frames

ModuleType = type(sys)
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from stepscope.agent.state import AgentState

    class Hook(Protocol):
        """What is noted: see ``agent.bootstrap``."""

        main: int
        notes: bool
        asked: list[tuple[int, int, str, list[tuple[str, str, int]]]]


_LEAST_NS = 2_000_000
"""An import within this time of those around it has no line."""
_MOST_LINES = 64
_WAITED_NS = 500_000_000
"""Time without the CPU from which the file systems are looked up."""
_OVER_NETWORK = ("nfs", "cifs", "smb", "fuse.", "lustre", "ceph", "9p", "beegfs", "gluster", "afs", "gpfs", "virtiofs")
"""Begins of the types of file systems whose files lie on another machine, or behind a process."""


def write(state: AgentState, hook: Hook) -> None:
    """End the notes, and log them; the last line, without a name, says where the main thread is now."""
    hook.notes = False
    asked, hook.asked = hook.asked, []
    if not asked:
        return
    if _thread.get_ident() == hook.main:
        asked.append((state.now(), time.thread_time_ns(), "", frames.user_stack(_MOST_LINES)))
    before = 0
    for number, (at, used, name, lines) in enumerate(asked):
        lasts = asked[number + 1][0] - at if number + 1 < len(asked) else _LEAST_NS
        own = [(frames.absolute(file), function, line) for file, function, line in lines if frames.is_own(file)]
        if own and max(lasts, at - before) >= _LEAST_NS:
            said: dict[str, object] = {"t": "import", "at": at, "name": name, "cpu": used, "stack": own[:_MOST_LINES]}
            said.update({"file": _own_file(name)} if name else _machine(at - asked[0][0] - used, own[-1][0]))
            state.log(said)
            before = at


def _own_file(name: str) -> str:
    """The file of a module of the user's; "" for any other. A module that is loaded lazily stays so."""
    module = sys.modules.get(name)
    file = object.__getattribute__(module, "__dict__").get("__file__") if isinstance(module, ModuleType) else None
    return frames.absolute(file) if isinstance(file, str) and frames.is_own(file) else ""


def _machine(waited: int, script: str) -> dict[str, object]:
    """What the process has read from disks, for how long its main thread was ready and had no CPU, and, if it waited,
    the file systems over a network that hold Python's modules or the program."""
    found: dict[str, object] = {}
    try:
        with open("/proc/self/schedstat", encoding="ascii") as stream:
            found["delay"] = int(stream.read().split()[1])
        with open("/proc/self/io", encoding="ascii") as stream:
            found["read"] = int(stream.read().partition("read_bytes:")[2].split()[0])
        if waited >= _WAITED_NS:
            with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as stream:
                found["network"] = over_network(stream.read(), (os.__file__, script, *sys.path))
    except (OSError, ValueError, IndexError):  # a kernel without them, or without the right to read them
        return found
    return found


def over_network(mounts: str, paths: tuple[str, ...]) -> list[tuple[str, str]]:
    """(type, mount point) of those that hold one of ``paths``."""
    kinds: dict[str, str] = {}
    for line in mounts.splitlines():
        point, _, kind = line.partition(" - ")
        kinds[point.split()[4]] = kind.split()[0]
    found = []
    for path in paths:
        folders = [point for point in kinds if (path + "/").startswith(point.rstrip("/") + "/")]
        point = max(folders, key=len, default="")
        if point and kinds[point].startswith(_OVER_NETWORK) and (kinds[point], point) not in found:
            found.append((kinds[point], point))
    return found
