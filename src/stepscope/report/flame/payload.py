"""The data of the page: a tree of stacks, and rows of samples, as gzipped JSON in base64.

Base64 contains no markup, so no name from a session can close the element around it.
"""

from __future__ import annotations

import base64
import gzip
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec.structs import replace

from stepscope.derive.stacks.drawn_tree import SMALL, Cut, cut
from stepscope.report.flame.words import per_text, shown_bases
from stepscope.report.words import printable
from stepscope.tables.stacks import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.report.flame.graph import ComparedProfiles, Graph
    from stepscope.tables.records import F64, I64
    from stepscope.tables.stacks import SampleTable, StackProfile, Thread

MAX_STACKS = 60_000
"""Stacks in a page: keeps it below 1.5 MB, so that it opens without delay."""
MAX_ROWS = 200_000
"""Timed samples in a page; beyond this, samples of the same moment and stack are summed."""
_BINS_NS = (1_000_000, 5_000_000, 20_000_000, 100_000_000)
"""Candidate lengths of such a moment; the shortest that fits is used."""
_MAX_NAME = 2_000
"""Maximum characters of a name."""


def of_graph(shown: Graph) -> tuple[str, Cut | None]:
    """Data of one profile, and what was merged to make it small."""
    profile, _, merged = cut(shown.profile, shown.profile.samples.weight, MAX_STACKS)
    rows = _rows(profile.samples)
    data: dict[str, object] = _tree(profile) | {
        "threads": _threads(profile),
        "rows": {
            "stack": rows.stack.tolist(),
            "thread": rows.thread.tolist(),
            "weight": _numbers(rows.weight),
            "at": (rows.at_ns // 1000).tolist() if bool(np.any(rows.at_ns >= 0)) else None,
        },
    }
    return _packed(data), merged


def summed(profile: StackProfile) -> tuple[dict[str, object], Sequence[float], Cut | None]:
    """The tree of a prepared profile and the weight that ends in each of its stacks, of all threads and times."""
    profile, _, merged = cut(profile, profile.samples.weight, MAX_STACKS)
    own = np.bincount(profile.samples.stack, profile.samples.weight, minlength=len(profile.stacks)).astype(np.float64)
    return _tree(profile), _numbers(own), merged


def of_compared(compared: ComparedProfiles) -> tuple[str, Cut | None]:
    """Data of two profiles: weights of the rows are of the second, ``before`` of the first, both as they are shown."""
    found = compared.difference
    one_base, other_base, unit = shown_bases(compared)
    before, after = compared.before.profile, compared.after.profile
    both = np.concatenate([before.samples.weight / one_base, after.samples.weight / other_base])
    stacks = np.concatenate([before.samples.stack, after.samples.stack])
    one = replace(
        after,
        threads=(),
        samples=replace(
            type(after.samples).concat([before.samples, after.samples]),
            stack=stacks,
            thread=np.full(len(stacks), UNKNOWN, np.int64),
        ),
    )
    profile, numbers, merged = cut(one, both, MAX_STACKS)
    size = len(profile.stacks)
    split = len(before.samples)
    sums = [
        np.bincount(profile.samples.stack[part], both[part], minlength=size).astype(np.float64)
        for part in (slice(0, split), slice(split, None))
    ]
    used = np.flatnonzero(sums[0] + sums[1])
    p_values = np.ones(size)
    p_values[numbers] = found.p_values
    p_values[[profile.frames[frame] is SMALL for frame in profile.stacks.frame.tolist()]] = 1.0
    changed = {change.function for change in found.functions if change.own.significant}
    data = _tree(profile) | {
        "unit": unit,
        "per": per_text(compared),
        "speed": found.speed,
        "threads": [],
        "rows": {
            "stack": used.tolist(),
            "thread": [UNKNOWN] * len(used),
            "weight": _numbers(sums[1][used]),
            "before": _numbers(sums[0][used]),
            "at": None,
        },
        "p": [float(f"{p:.3g}") for p in p_values.tolist()],
        "changed": [i for i, frame in enumerate(profile.frames) if frame in changed],
    }
    return _packed(data), merged


def _tree(profile: StackProfile) -> dict[str, object]:
    strings: dict[str, int] = {}

    def text(words: str) -> int:
        return strings.setdefault(printable(words)[:_MAX_NAME], len(strings))

    frames = [
        [text(f.function), text(f.file), f.line, text(f.module), int(f.kind), int(f.resolved)] for f in profile.frames
    ]
    return {
        "unit": profile.unit,
        "frames": frames,
        "strings": list(strings),
        "parent": profile.stacks.parent.tolist(),
        "frame": profile.stacks.frame.tolist(),
    }


def _threads(profile: StackProfile) -> list[str]:
    return [thread_text(thread) for thread in profile.threads]


def thread_text(thread: Thread) -> str:
    """Display name of a thread."""
    number = f"{thread.pid}/{thread.tid}" if thread.pid and thread.tid != thread.pid else f"{thread.tid or thread.pid}"
    name = printable(thread.name)[:_MAX_NAME] or "thread"
    return f"{name} {number}" if thread.pid or thread.tid else name


def _rows(samples: SampleTable) -> SampleTable:
    """Rows of a page: summed if samples have no times or are too many."""
    if not np.any(samples.at_ns >= 0):
        return samples.summed()
    if len(samples) <= MAX_ROWS:
        return samples
    for width in _BINS_NS:
        moments = np.where(samples.at_ns >= 0, samples.at_ns // width, UNKNOWN)
        binned = _summed_by(samples, moments)
        if len(binned) <= MAX_ROWS:
            break
    return replace(binned, at_ns=np.where(binned.at_ns >= 0, binned.at_ns * width + width // 2, UNKNOWN))


def _summed_by(samples: SampleTable, moments: I64) -> SampleTable:
    """One row for each moment, thread and stack; ``at_ns`` is the moment."""
    keys = np.stack([moments, samples.thread, samples.stack])
    unique, place = np.unique(keys, axis=1, return_inverse=True)
    size = unique.shape[1]
    place = place.reshape(-1)
    return type(samples)(
        at_ns=unique[0],
        thread=unique[1],
        stack=unique[2],
        weight=np.bincount(place, samples.weight, minlength=size).astype(np.float64),
        count=np.bincount(place, samples.count, minlength=size).astype(np.int64),
        flags=np.zeros(size, np.int64),
        op_thread=np.zeros(size, np.int64),
    )


def _numbers(weights: F64) -> list[float | int]:
    return [int(w) if w == int(w) else float(f"{w:.6g}") for w in weights.tolist()]


def _packed(data: dict[str, object]) -> str:
    return base64.b64encode(gzip.compress(msgspec.json.encode(data), mtime=0)).decode()
