"""Makes a large kineto trace from a real one: the same events repeated, one copy after the other in time.

Every copy is shifted by the length of the capture, its steps are counted on, and the ids that link its events are
unique to it, so that a reader finds one long capture. The text of the events stays as the profiler wrote it. It is
written copy by copy, so only the disk limits the size.
"""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

_BETWEEN = re.compile(r'\}\s*,\s*(?=\{\s*"(?:ph|name)"\s*:)')
_NAMES = re.compile(r'"ph":\s*"M"')
_CHANGING = re.compile(
    r'("(?:ts|id|correlation|External id|external id|Ev Idx|Record function id|Python id|Python parent id)":\s*'
    r"|\"name\":\s*\"ProfilerStep#)(\d+)"
)
_IDS = 1_000_000_000
"""Offset of the ids of one copy from those of the one before, divided by the number of copies."""
_STEPS = 1_000
_SPACE_US = 1_000


class Capture:
    """A real file, split into what is written once and what each copy changes."""

    def __init__(self, source: Path) -> None:
        """Read a file, gzipped or not."""
        content = source.read_bytes()
        text = (gzip.decompress(content) if source.suffix == ".gz" else content).decode()
        opened = re.search(r'"traceEvents"\s*:\s*\[\s*', text)
        if opened is None:
            raise ValueError(f"{source}: it has no traceEvents")
        last = text.rindex("}", 0, text.rindex("]"))
        whole = _BETWEEN.sub("}\0", text[opened.end() : last + 1]).split("\0")
        events = [one for one in whole if not _NAMES.search(one)]
        self.once = [one for one in whole if _NAMES.search(one)]
        self.before, self.after = text[: opened.end()], text[last + 1 :]
        self.events = len(events)
        self.pieces = [_CHANGING.split(one) for one in events]
        times = [json.loads(one) for one in events]
        first = min(float(one["ts"]) for one in times)
        self.period_us = int(max(float(one["ts"]) + float(one.get("dur", 0)) for one in times) - first) + _SPACE_US
        self.id_step = 1 + max(
            int(number)
            for pieces in self.pieces
            for before, number in zip(pieces[1::3], pieces[2::3], strict=True)
            if "ts" not in before and int(number) < _IDS
        )

    def copy(self, number: int) -> list[str]:
        """The events of one copy."""
        moves = {"ts": number * self.period_us, "name": number * _STEPS}
        found = []
        for pieces in self.pieces:
            text = list(pieces)
            for i in range(1, len(pieces), 3):
                move = moves.get(pieces[i].split('"')[1], number * self.id_step)
                text[i + 1] = str(int(pieces[i + 1]) + move)
            found.append("".join(text))
        return found


def write(source: Path, target: Path, size: int) -> int:
    """Write copies of ``source`` until the file has ``size`` bytes; returns the number of events."""
    capture = Capture(source)
    with target.open("w", encoding="utf-8") as sink:
        sink.write(capture.before)
        sink.write(",\n  ".join([*capture.once, *capture.copy(0)]))
        number = 1
        while sink.tell() < size:
            sink.write("".join(f",\n  {one}" for one in capture.copy(number)))
            number += 1
        sink.write(capture.after)
    return len(capture.once) + number * capture.events
