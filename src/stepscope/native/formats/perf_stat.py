"""Reads what ``perf stat -x ';'`` writes: a line for each event.

Source: perf-stat(1), "CSV FORMAT": value, unit, event, time for which it was counted, percentage of the time, more.
Older versions of perf write task-clock without its unit, in milliseconds.
"""

from __future__ import annotations

SEPARATOR = ";"
_FIELDS = 3
_TASK_CLOCK = "task-clock"
_NS = {"ns": 1.0, "nsec": 1.0, "msec": 1e6, "": 1e6}
"""Nanoseconds of the units of task-clock."""


def read(text: str) -> dict[str, int]:
    """Event, without its modifiers, to its number; task-clock in nanoseconds.

    Events that the processor lacks, or that never ran ("<not supported>", "<not counted>"), are missing. perf has
    scaled numbers of events that took turns. Of an event on several kinds of cores, the numbers are added.
    """
    found: dict[str, int] = {}
    for line in text.splitlines():
        fields = line.strip().split(SEPARATOR)
        if len(fields) < _FIELDS or line.startswith("#"):
            continue
        name = _name(fields[2])
        try:
            value = float(fields[0].replace(",", "."))
        except ValueError:
            continue
        if name == _TASK_CLOCK:
            value *= _NS.get(fields[1], 0.0)
        if 0 <= value < 1 << 63:
            found[name] = found.get(name, 0) + int(value)
    return found


def _name(event: str) -> str:
    """The event without its modifiers and its kind of core: cycles for cpu_core/cycles/u and cycles:u."""
    name = event.partition(":")[0]
    return name.split("/")[1] if "/" in name else name
