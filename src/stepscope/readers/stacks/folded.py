"""Folded stacks, as stackcollapse scripts write them and flamegraph.pl reads them: ``root;caller;leaf WEIGHT``.

The format has no unit, times or threads; ``readers.stacks.labels`` knows the conventions of names. A line that does not
end in a number is not a stack and is counted. Lines that begin with ``# `` are comments: austin's and perf's.

Source: stackcollapse-perf.pl, stackcollapse.pl and flamegraph.pl of https://github.com/brendangregg/FlameGraph.
"""

from __future__ import annotations

import codecs
import math
from typing import TYPE_CHECKING

import numpy as np

from stepscope.readers.stacks.chains import FrameChains, split_truncated
from stepscope.readers.stacks.labels import UNREADABLE, clean, frame_of, label_of
from stepscope.tables.errors import FormatError
from stepscope.tables.findings import Diagnostic
from stepscope.tables.stacks import UNKNOWN, SampleTable, StackBuilder, StackProfile

if TYPE_CHECKING:
    from collections.abc import Sequence

_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_COMMENT = "# "
_EXPECTED = "expected lines like `main;train;matmul 12` (of perf the text of perf script, not of perf report)"
_MOST_STRANGE = 0.05
"""Share of characters that are none, above which a file is binary. Names of functions in another encoding are fewer."""
_QUOTED = 60
"""Maximum number of characters quoted from a line."""


def text_of(data: bytes) -> str:
    """The text of a file: UTF-8, or UTF-16 as redirection by PowerShell writes it, with or without a byte order mark.

    Invalid UTF-8 becomes replacement characters: function names come from many sources.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    if data[1:2] == b"\0" != data[:1]:
        return data.decode("utf-16-le", "replace")
    if data[:1] == b"\0" != data[1:2]:
        return data.decode("utf-16-be", "replace")
    return data.decode("utf-8", "replace")


def read(data: bytes, *, where: str) -> StackProfile:
    """Read folded stacks; ``where`` names the file in messages. One row per line, in order.

    Raises:
        FormatError: no line is a stack.
    """
    builder = StackBuilder()
    known: dict[str, tuple[int, int]] = {}
    flags: list[int] = []
    stacks: list[int] = []
    weights: list[float] = []
    strange: list[tuple[int, str]] = []
    lines = text_of(data).split("\n")
    for number, line in enumerate(lines, 1):
        if line.startswith(_COMMENT):
            strange.append((number, line))
            continue
        stack, _, amount = line.rstrip().rpartition(" ")
        weight = _weight(amount)
        if weight is None or not stack.strip():
            if line.strip():
                strange.append((number, line))
            continue
        found = known.get(stack)
        if found is None:
            flag, chain = split_truncated([frame_of(name) for name in stack.strip().split(";")])
            found = known[stack] = builder.stack_of(chain), flag
        stacks.append(found[0])
        flags.append(found[1])
        weights.append(weight)
    wrong = [(number, line) for number, line in strange if not line.lstrip().startswith(("#", "//"))]
    if len(wrong) > len(stacks) > 0:
        number, line = wrong[0]
        raise FormatError(
            f"{where}: {len(wrong):,} of {len(wrong) + len(stacks):,} lines are no folded stacks: line {number} is "
            f"{line.strip()[:_QUOTED]!r}; {_EXPECTED}"
        )
    if not stacks:
        got = f"line {strange[0][0]} is {strange[0][1].strip()[:_QUOTED]!r}" if strange else "it is empty"
        raise FormatError(f"{where}: it has no folded stacks: {got}; {_EXPECTED}")
    return StackProfile(
        event="",
        unit="",
        frames=builder.frames,
        stacks=builder.stacks,
        samples=samples_of(stacks, weights, flags),
        unread=len(strange),
        diagnostics=_complaints(wrong, where),
    )


def is_binary(head: bytes) -> bool:
    """Whether a file that begins so is no text: characters that cannot be seen, or that are none, are rare in text."""
    text = text_of(head)
    strange = sum(char == "\ufffd" or not (char.isprintable() or char in "\t\n\r\f\x1b") for char in text)
    return strange > _MOST_STRANGE * len(text)


def share(head: bytes, *, lone: bool = False) -> float:
    """The share of lines that are folded stacks, some with a caller unless ``lone``; the last line may be cut."""
    lines = [line.strip() for line in text_of(head).split("\n")]
    whole = [line for line in (lines[:-1] or lines) if line and not line.startswith(("#", "//"))]
    stacks = [
        line for line in whole if _weight(line.rpartition(" ")[2]) is not None and line.rpartition(" ")[0].strip()
    ]
    return len(stacks) / len(whole) if whole and (lone or any(";" in line for line in stacks)) else 0.0


def samples_of(stacks: Sequence[int], weights: Sequence[float], flags: Sequence[int]) -> SampleTable:
    """Rows without time and thread, each of an unknown number of samples."""
    unknown = np.full(len(stacks), UNKNOWN, np.int64)
    return SampleTable(
        at_ns=unknown,
        thread=unknown,
        stack=np.array(stacks, np.int64),
        weight=np.array(weights, np.float64),
        count=np.zeros(len(stacks), np.int64),
        flags=np.array(flags, np.int64),
        op_thread=np.zeros(len(stacks), np.int64),
    )


def _weight(text: str) -> float | None:
    """A weight that is finite and not negative; None otherwise."""
    try:
        weight = float(text)
    except ValueError:
        return None
    return weight if 0 <= weight < math.inf and text[-1:].isdigit() and "_" not in text else None


def _complaints(wrong: Sequence[tuple[int, str]], where: str) -> tuple[Diagnostic, ...]:
    if not wrong:
        return ()
    number, line = wrong[0]
    more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
    text = f"{where}, line {number}: {line.strip()[:_QUOTED]!r} is no folded stack and is left out{more}"
    return (Diagnostic(code=UNREADABLE, text=text),)


def write(profile: StackProfile) -> bytes:
    """A profile as folded stacks, one line for each thread name and stack, in order of first appearance.

    Thread names are the outermost frame, as in stackcollapse-perf.pl; a thread without a name adds none. Samples
    without frames are ``[unknown]``. Times, flags and line numbers that the format cannot hold are lost.
    """
    samples = profile.samples.summed()
    chains = FrameChains(profile)
    labels = [label_of(frame) for frame in chains.frames]
    roots = [clean(thread.name) for thread in profile.threads] + [""]
    lines: dict[str, float] = {}
    stacks: dict[tuple[int, int], str] = {}
    columns = (samples.thread, samples.stack, samples.flags, samples.weight)
    for thread, stack, flags, weight in zip(*(column.tolist() for column in columns), strict=True):
        line = stacks.get((stack, flags))
        if line is None:
            line = stacks[stack, flags] = ";".join([labels[frame] for frame in chains.of(stack, flags)])
        line = f"{roots[thread]};{line}" if roots[thread] else line
        lines[line] = lines.get(line, 0.0) + weight
    return "".join(f"{line} {number_text(weight)}\n" for line, weight in lines.items()).encode("utf-8", "replace")


def number_text(weight: float) -> str:
    """A weight in its shortest form: "14", "0.5"."""
    return f"{weight:.0f}" if weight == int(weight) else repr(weight)
