"""The use case ``memory``: the address space of a running process, or of the processes in a session."""

from __future__ import annotations

import platform
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from stepscope.causes.system import translation
from stepscope.derive.machine import address_space
from stepscope.derive.view import SessionView
from stepscope.launcher import mask
from stepscope.machine import calibration
from stepscope.native.memory import hardware_counters, memory_look
from stepscope.native.memory.hardware_counters import Counting
from stepscope.report.memory import memory_text
from stepscope.tables.errors import SessionError, TargetError

if TYPE_CHECKING:
    from stepscope.model.report.machine.memory_map import MemoryMap


def memory(target: str, seconds: float) -> tuple[MemoryMap, ...]:
    """The maps of ``target``, a pid or a session; of a process, two snapshots are taken ``seconds`` apart.

    Raises:
        TargetError: there is no such process, or we may not read it.
        SessionError: there is no session, it is damaged, or it has no memory snapshots.
    """
    return (_of_process(int(target), seconds),) if target.isdigit() else _of_session(Path(target))


def to_json(maps: tuple[MemoryMap, ...]) -> str:
    """For programs: a list, each of schema ``stepscope.memory/1``."""
    return msgspec.json.format(msgspec.json.encode(maps), indent=1).decode()


def to_text(maps: tuple[MemoryMap, ...], *, width: int) -> str:
    """For people."""
    return memory_text.render(maps, width=width)


def _of_process(pid: int, seconds: float) -> MemoryMap:
    origin = time.monotonic_ns()
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        looks = [memory_look.look(pid, origin)]
        counting = Counting(pid, seconds) if hardware_counters.possible() else None
        time.sleep(seconds)
        looks.append(memory_look.look(pid, origin))
        if counting is not None:
            looks[-1] = replace(looks[-1], hardware=counting.result())
    except (FileNotFoundError, ProcessLookupError):
        raise TargetError(
            f"{pid}: no such process, or it has ended; expected a pid listed by `ps`, or a session"
        ) from None
    except OSError as error:
        raise TargetError(
            f"{pid} cannot be read: {error.strerror}; expected one of your own processes, else run: "
            f"sudo stepscope memory {pid}"
        ) from error
    if not len(looks[-1].mappings):
        raise TargetError(f"{pid} has no memory to show: it is a kernel thread, or has ended")
    command = tuple(mask.mask_command([word for word in words if word]))
    found = address_space.build(looks, command=command, kernel=platform.release())
    walks = calibration.load_page_walks()
    return translation.of_counters(found, walks) if walks is not None else found


def _of_session(path: Path) -> tuple[MemoryMap, ...]:
    from stepscope.sessions.bundle import open_session

    maps = SessionView(open_session(path)).get(translation.maps)
    if not maps:
        raise SessionError(
            f"{path}: it has no memory snapshot: the job ended within a minute, or an older stepscope ran it. "
            "For a running job: stepscope memory PID"
        )
    return maps
