"""State, start and end of a process, from /proc/PID/stat."""

from __future__ import annotations

from pathlib import Path

_EXIT_CODE = 49
"""Position in /proc/PID/stat after the command's closing bracket (field number minus 3)."""


def _stat(pid: int) -> list[bytes]:
    """The fields of /proc/PID/stat after the command, from the state on; none if there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return []
    return stat[stat.rindex(b")") + 2 :].split()


def start_ticks(pid: int) -> int:
    """Start of a process in clock ticks since boot, 0 if there is none; together with the pid it identifies a
    process.
    """
    fields = _stat(pid)
    return int(fields[19]) if fields else 0


def state(pid: int) -> str:
    """State letter of a process (R, S, T, Z ...), empty if there is none."""
    fields = _stat(pid)
    return fields[0].decode() if fields else ""


def exit_status(pid: int) -> int | None:
    """Status, as of ``wait``, of a process that has ended and whose parent has not asked for it yet; None of others."""
    fields = _stat(pid)
    return int(fields[_EXIT_CODE]) if len(fields) > _EXIT_CODE and fields[0] == b"Z" else None


def alive(pid: int, ticks: int) -> bool:
    """Whether the process that started at ``ticks`` still runs; a zombie does not."""
    fields = _stat(pid)
    return bool(fields) and int(fields[19]) == ticks and fields[0] not in (b"Z", b"X")
